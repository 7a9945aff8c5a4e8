/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
 * Reads from a file into memory that is registered, used by a peer and deregistered meanwhile; counts the rounds in
 * which the program or the peer does not see the content of the file.
 *
 *   memory_io MODE ROUNDS SEED      MODE: direct, uring, uring-fixed, buffered, or remap: the memory is unmapped and
 *                                   mapped again while it is registered, as with registration caches that deregister
 *                                   late; regions: ROUNDS small regions at once, and the mappings that they leave */
#define _GNU_SOURCE
#include "two_sides.h"

#include <fcntl.h>
#include <liburing.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/time.h>

enum { PAGE = 4096, FILE_PAGES = 256, ACCESS = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE };

static struct side own;
static unsigned char* content; /* of the file */
static int file;
static struct io_uring ring;
static volatile unsigned char* touched_by_handler;

struct job {
  unsigned char* at;
  size_t size, offset;
};

static void* read_directly(void* argument) {
  const struct job* job = argument;
  if (pread(file, job->at, job->size, (off_t)job->offset) != (ssize_t)job->size) die("pread");
  return NULL;
}

static void on_timer(int number) {
  (void)number;
  if (touched_by_handler) ++*touched_by_handler;
}

static unsigned long next(unsigned long* x) {
  *x = *x * 6364136223846793005ul + 1442695040888963407ul;
  return *x >> 33;
}

static void open_file(int direct) {
  char name[] = "/tmp/softib-io-XXXXXX";
  const int writer = mkstemp(name);
  content = malloc(FILE_PAGES * PAGE);
  for (size_t i = 0; i < FILE_PAGES * PAGE; ++i) content[i] = (unsigned char)(i * 31 + i / PAGE * 7 + 1);
  if (writer < 0 || write(writer, content, FILE_PAGES * PAGE) != FILE_PAGES * PAGE || fsync(writer)) die(name);
  file = open(name, O_RDONLY | O_CLOEXEC | (direct ? O_DIRECT : 0));
  if (file < 0) {
    printf("skipped: no direct I/O on /tmp: %s\n", strerror(errno));
    exit(77);
  }
  unlink(name);
  close(writer);
}

static int submit(const struct job* job, int fixed) {
  struct io_uring_sqe* sqe = io_uring_get_sqe(&ring);
  if (fixed) io_uring_prep_read_fixed(sqe, file, job->at, (unsigned)job->size, job->offset, 0);
  else io_uring_prep_read(sqe, file, job->at, (unsigned)job->size, job->offset);
  return io_uring_submit(&ring);
}

static void reap(size_t size) {
  struct io_uring_cqe* cqe;
  int error = 0;
  do error = io_uring_wait_cqe(&ring, &cqe);
  while (error == -EINTR);
  if (error != 0 || cqe->res != (int)size) {
    fprintf(stderr, "io_uring read: %s\n", strerror(error ? -error : -cqe->res));
    exit(2);
  }
  io_uring_cqe_seen(&ring, cqe);
}

/* Checks that the program's new memory at the address of registered memory keeps the bytes that the program writes. */
static int remap_rounds(int rounds, unsigned long x) {
  long wrong = 0;
  for (int round = 0; round < rounds; ++round) {
    const size_t size = (16 + next(&x) % 240) * PAGE;
    unsigned char* memory = map_apart(size);
    memset(memory, 0xee, size);
    struct ibv_mr* mr = ibv_reg_mr(own.pd, memory, size, ACCESS);
    if (!mr) die("ibv_reg_mr");
    if (order_peer(&own, WRITE, mr->rkey, memory, (uint32_t)size, 0x77, NULL).status) die("WRITE");
    for (unsigned long wait = next(&x) % 20000; wait > 0; --wait) __asm__ __volatile__("");
    munmap(memory, size);
    map_at(memory, size);
    const unsigned char mark = (unsigned char)(round | 1);
    memset(memory, mark, size);
    int changed = 0;
    for (int look = 0; look < 20 && !changed; ++look) changed = memory[0] != mark || memcmp(memory, memory + 1, size - 1);
    wrong += changed;
    if (ibv_dereg_mr(mr)) die("ibv_dereg_mr");
    munmap(memory, size);
  }
  end_peer();
  printf("remap: %d rounds, %ld wrong in the program, 0 at the peer\n", rounds, wrong);
  return wrong != 0;
}

static int mappings(void) {
  FILE* maps = fopen("/proc/self/maps", "r");
  int lines = 0;
  for (int c; (c = fgetc(maps)) != EOF;) lines += c == '\n';
  fclose(maps);
  return lines;
}

/* Many small regions, each used by the peer: prints how many mappings they leave and how many bytes were wrong. */
static int many_regions(int count) {
  const size_t size = 2 * PAGE;
  const int before = mappings();
  unsigned char* memory = mmap(NULL, (size_t)count * size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  struct ibv_mr** mr = calloc((size_t)count, sizeof *mr);
  long wrong = 0;
  if (memory == MAP_FAILED || !mr) die("memory");
  memset(memory, 0xee, (size_t)count * size);
  for (int i = 0; i < count; ++i) {
    if (!(mr[i] = ibv_reg_mr(own.pd, memory + (size_t)i * size, size, ACCESS))) die("ibv_reg_mr");
    const unsigned fill = (unsigned)i & 0xff;
    if (order_peer(&own, WRITE, mr[i]->rkey, memory + (size_t)i * size, size, fill, NULL).status) die("WRITE");
  }
  for (int i = 0; i < count; ++i) {
    const unsigned char* at = memory + (size_t)i * size;
    wrong += at[0] != (i & 0xff) || memcmp(at, at + 1, size - 1) != 0;
    if (ibv_dereg_mr(mr[i])) die("ibv_dereg_mr");
  }
  end_peer();
  printf("regions: %d, %d mappings left, %ld wrong\n", count, mappings() - before, wrong);
  return wrong != 0;
}

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  const char* mode = argv[1];
  const int uring = !strncmp(mode, "uring", 5), fixed = !strcmp(mode, "uring-fixed");
  unsigned long x = strtoul(argv[3], NULL, 10);
  start_peer();
  open_side(&own);
  connect_peer(&own);
  if (!strcmp(mode, "regions")) return many_regions(atoi(argv[2]));
  if (!strcmp(mode, "remap")) return remap_rounds(atoi(argv[2]), x);
  open_file(strcmp(mode, "buffered") != 0);
  if (uring && io_uring_queue_init(8, &ring, 0)) {
    puts("skipped: io_uring is not permitted");
    end_peer();
    return 77;
  }
  struct sigaction action = {.sa_handler = on_timer, .sa_flags = SA_RESTART};
  sigaction(SIGALRM, &action, NULL);
  struct itimerval often = {{0, 500}, {0, 500}};
  setitimer(ITIMER_REAL, &often, NULL);
  long wrong_here = 0, wrong_there = 0;
  unsigned char* seen = malloc(MOST);
  const int rounds = atoi(argv[2]);
  for (int round = 0; round < rounds; ++round) {
    const size_t pages = 1 + next(&x) % 24, first = next(&x) % (FILE_PAGES - pages);
    struct job job = {NULL, pages * PAGE, first * PAGE};
    unsigned char* memory = mmap(NULL, job.size + PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) die("mmap");
    memset(memory, 0xee, job.size + PAGE);
    job.at = memory;
    touched_by_handler = memory + job.size; /* its own page, registered like the others */
    struct iovec buffer = {memory, job.size};
    if (fixed && io_uring_register_buffers(&ring, &buffer, 1)) die("io_uring_register_buffers");
    pthread_t thread;
    /* The read is under way at one of three moments. */
    const int when = (int)(next(&x) % 3);
    if (when == 0 && uring) submit(&job, fixed);
    if (when == 0 && !uring) pthread_create(&thread, NULL, read_directly, &job);
    struct ibv_mr* mr = ibv_reg_mr(own.pd, memory, job.size + PAGE, ACCESS);
    if (!mr) die("ibv_reg_mr");
    if (when == 1 && uring) submit(&job, fixed);
    if (when == 1 && !uring) pthread_create(&thread, NULL, read_directly, &job);
    if (order_peer(&own, WRITE, mr->rkey, memory + job.size, 1024, 0x77, NULL).status) die("WRITE");
    if (when == 2 && uring) submit(&job, fixed);
    if (when == 2 && !uring) pthread_create(&thread, NULL, read_directly, &job);
    const int early = (int)(next(&x) % 2); /* deregistered while the read may be under way */
    if (early && ibv_dereg_mr(mr)) die("ibv_dereg_mr");
    if (uring) reap(job.size);
    else pthread_join(thread, NULL);
    wrong_here += memcmp(memory, content + job.offset, job.size) != 0;
    if (!early) {
      order_peer(&own, READ, mr->rkey, memory, (uint32_t)job.size, 0, seen);
      wrong_there += memcmp(seen, content + job.offset, job.size) != 0;
      if (ibv_dereg_mr(mr)) die("ibv_dereg_mr");
    }
    touched_by_handler = NULL;
    if (fixed) io_uring_unregister_buffers(&ring);
    munmap(memory, job.size + PAGE);
  }
  setitimer(ITIMER_REAL, &(struct itimerval){{0, 0}, {0, 0}}, NULL);
  end_peer();
  printf("%s: %d rounds, %ld wrong in the program, %ld at the peer\n", mode, rounds, wrong_here, wrong_there);
  return wrong_here || wrong_there;
}
