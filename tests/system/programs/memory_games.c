/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
 * Changes that a program may make to memory that it has registered, and the bytes that it and its peer then see: a line
 * "game: outcome" each. memory_test.py has the right outcomes, and writes them into docs/memory.md. */
#define _GNU_SOURCE
#include "two_sides.h"

#include <fcntl.h>
#include <liburing.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#ifndef MADV_WIPEONFORK
#define MADV_WIPEONFORK 18
#endif

enum { PAGE = 4096, SIZE = 16 * PAGE, OLD = 0x11, NEW = 0x22, PEERS = 0x33 };
enum { ACCESS = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE };

static struct side own;
static unsigned char* memory; /* of SIZE bytes */
static size_t room;           /* bytes from there on that belong to this game */
static struct ibv_mr* mr;

static void outcome(const char* game, const char* text) {
  printf("%s: %s\n", game, text);
  fflush(stdout);
}

static struct ibv_mr* reg(void* at, size_t size) {
  struct ibv_mr* made = ibv_reg_mr(own.pd, at, size, ACCESS);
  if (!made) die("ibv_reg_mr");
  return made;
}

/* Registers fresh memory with OLD in it, which the peer then uses. */
static void begin_with(unsigned char* fresh) {
  memory = fresh;
  room = SIZE;
  memset(memory, OLD, SIZE);
  mr = reg(memory, SIZE);
  if (order_peer(&own, READ, mr->rkey, memory, SIZE, 0, NULL).first != OLD) die("the first READ is wrong");
}

static void begin(void) { begin_with(map_at(NULL, SIZE)); }
/* For games that need free addresses. */
static void begin_apart(void) { begin_with(map_apart(SIZE)); }

static void end(void) {
  if (mr && ibv_dereg_mr(mr)) die("ibv_dereg_mr");
  mr = NULL;
  munmap(memory, room);
}

static const char* read_text(struct answer_message a) {
  static char text[64];
  if (a.status) snprintf(text, sizeof text, "error %u", a.status);
  else if (!a.same) return "MIXED bytes";
  else if (a.first == OLD) return "the old bytes";
  else if (a.first == NEW) return "the new bytes";
  else if (a.first == 0) return "zeros";
  else if (a.first == PEERS) return "what the peer wrote";
  else snprintf(text, sizeof text, "OTHER bytes %#x", a.first);
  return text;
}
static const char* peer_reads(uint32_t rkey, const void* at) {
  return read_text(order_peer(&own, READ, rkey, at, SIZE, 0, NULL));
}
static const char* program_sees(const unsigned char* at) {
  struct answer_message a = {.first = at[0], .same = !memcmp(at, at + 1, SIZE - 1)};
  return read_text(a);
}
static const char* peer_writes(uint32_t rkey, const void* at, const unsigned char* seen_at) {
  static char text[64];
  struct answer_message a = order_peer(&own, WRITE, rkey, at, SIZE, PEERS, NULL);
  if (a.status) return read_text(a);
  snprintf(text, sizeof text, "success, the program sees %s", program_sees(seen_at));
  return text;
}

/* --- address space --- */

static void unmap_and_register_again(const char* what, size_t part) {
  char game[96];
  begin_apart();
  munmap(memory, part);
  map_at(memory, part);
  memset(memory, NEW, SIZE);
  struct ibv_mr* second = reg(memory, SIZE);
  snprintf(game, sizeof game, "%s, register again; READ by the new key", what);
  outcome(game, peer_reads(second->rkey, memory));
  snprintf(game, sizeof game, "%s, register again; WRITE by the new key", what);
  outcome(game, peer_writes(second->rkey, memory, memory));
  ibv_dereg_mr(second);
  end();
}

static void unmap_and_map(void) {
  begin_apart();
  munmap(memory, SIZE);
  memset(map_at(memory, SIZE), NEW, SIZE);
  outcome("munmap, mmap at the same address; READ by the old key", peer_reads(mr->rkey, memory));
  outcome("munmap, mmap at the same address; the program's new memory", program_sees(memory));
  end();
}

static void unmap(void) {
  begin_apart();
  munmap(memory, SIZE);
  outcome("munmap; READ", peer_reads(mr->rkey, memory));
  struct answer_message a = order_peer(&own, WRITE, mr->rkey, memory, SIZE, PEERS, NULL);
  outcome("munmap; WRITE", a.status ? read_text(a) : "success");
  end();
}

static void protect(int protection, const char* name) {
  char game[64];
  begin();
  if (mprotect(memory, SIZE, protection)) die("mprotect");
  snprintf(game, sizeof game, "mprotect(%s); READ", name);
  outcome(game, peer_reads(mr->rkey, memory));
  struct answer_message a = order_peer(&own, WRITE, mr->rkey, memory, SIZE, PEERS, NULL);
  mprotect(memory, SIZE, PROT_READ | PROT_WRITE);
  snprintf(game, sizeof game, "mprotect(%s); WRITE", name);
  outcome(game, a.status ? read_text(a) : "success");
  end();
}

/* The program's own requests, which its own processor executes with loads and stores. */
static void own_requests(const char* what, int protection, int map_again) {
  static const struct {
    enum order order;
    const char* name;
  } kinds[] = {{WRITE, "the program's own WRITE from it"}, {READ, "the program's own READ into it"}};
  for (int i = 0; i < 2; ++i) {
    char game[96], text[32];
    begin_apart();
    for (int k = 0; k < 2; ++k) {
      if (order_own(&own, kinds[k].order, mr->lkey, memory, SIZE)) die("the program's first request");
    }
    if (protection >= 0 ? mprotect(memory, SIZE, protection) : munmap(memory, SIZE)) die(what);
    if (map_again) map_at(memory, SIZE);
    const uint32_t status = order_own(&own, kinds[i].order, mr->lkey, memory, SIZE);
    if (protection >= 0) mprotect(memory, SIZE, PROT_READ | PROT_WRITE);
    snprintf(game, sizeof game, "%s; %s", what, kinds[i].name);
    snprintf(text, sizeof text, "error %u", status);
    outcome(game, status ? text : "success");
    end();
  }
}

static void grow(void) {
  begin_apart();
  unsigned char* grown = mremap(memory, SIZE, 2 * SIZE, 0);
  if (grown == MAP_FAILED) die("mremap");
  room = 2 * SIZE;
  for (size_t i = SIZE; i < 2 * SIZE; ++i)
    if (grown[i] != 0) die("memory that mremap() added is not zero");
  memset(grown + SIZE, NEW, SIZE);
  outcome("mremap() grows it; the program uses the new part", program_sees(grown + SIZE));
  outcome("mremap() grows it; READ", peer_reads(mr->rkey, memory));
  end();
}

static void move(void) {
  begin_apart();
  unsigned char* target = map_at(NULL, SIZE);
  if (mremap(memory, SIZE, SIZE, MREMAP_MAYMOVE | MREMAP_FIXED, target) != target) die("mremap");
  memset(target, NEW, SIZE);
  outcome("mremap() moves it; READ by the old address", peer_reads(mr->rkey, memory));
  const pid_t child = fork();
  if (child == 0) {
    memset(target, PEERS, SIZE);
    _exit(0);
  }
  waitpid(child, NULL, 0);
  outcome("mremap() moves it, fork(), the child writes; the parent", program_sees(target));
  munmap(target, SIZE);
  ibv_dereg_mr(mr);
  mr = NULL;
}

/* --- advice --- */

static void advise(int advice, const char* name) {
  char game[96];
  begin();
  int result = madvise(memory, SIZE, advice);
  snprintf(game, sizeof game, "madvise(%s) while registered; the program", name);
  outcome(game, result ? strerror(errno) : program_sees(memory));
  snprintf(game, sizeof game, "madvise(%s) while registered; READ", name);
  outcome(game, peer_reads(mr->rkey, memory));
  ibv_dereg_mr(mr);
  mr = NULL;
  memset(memory, NEW, SIZE);
  result = madvise(memory, SIZE, advice);
  snprintf(game, sizeof game, "madvise(%s) after deregistration; the program", name);
  outcome(game, result ? strerror(errno) : program_sees(memory));
  end();
}

/* --- processes --- */

static pid_t raw_fork(void) { return (pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL); }

static void forked(pid_t (*how)(void), const char* name) {
  char game[96];
  begin();
  int ends[2];
  if (pipe(ends)) die("pipe");
  const pid_t child = how();
  if (child < 0) die(name);
  if (child == 0) {
    char byte;
    if (read(ends[0], &byte, 1) != 1) _exit(9);
    const int sees = memory[5]; /* after the parent has written */
    memset(memory, PEERS, SIZE);
    _exit(sees == OLD ? 0 : sees == NEW ? 1 : 2);
  }
  memset(memory, NEW, SIZE);
  int status = 0;
  if (write(ends[1], "x", 1) != 1 || waitpid(child, &status, 0) != child) die("the child");
  snprintf(game, sizeof game, "%s, the parent writes; the child", name);
  outcome(game, WIFSIGNALED(status) ? strsignal(WTERMSIG(status)) : WEXITSTATUS(status) == 0 ? "the old bytes" : "the new bytes");
  snprintf(game, sizeof game, "%s, the child writes; the parent", name);
  outcome(game, program_sees(memory));
  snprintf(game, sizeof game, "%s; READ", name);
  outcome(game, peer_reads(mr->rkey, memory));
  close(ends[0]);
  close(ends[1]);
  end();
}

/* --- the kernel holds pages --- */

static int new_file(void) {
  char name[] = "/tmp/softib-games-XXXXXX";
  const int file = mkstemp(name);
  unsigned char bytes[SIZE];
  memset(bytes, NEW, SIZE);
  if (file < 0 || write(file, bytes, SIZE) != SIZE) die(name);
  unlink(name);
  return file;
}

static void read_fixed(struct io_uring* ring, int file) {
  struct io_uring_sqe* sqe = io_uring_get_sqe(ring);
  struct io_uring_cqe* cqe;
  io_uring_prep_read_fixed(sqe, file, memory, SIZE, 0, 0);
  if (io_uring_submit(ring) != 1 || io_uring_wait_cqe(ring, &cqe) || cqe->res != SIZE) die("io_uring read");
  io_uring_cqe_seen(ring, cqe);
}

static void uring(void) {
  struct io_uring ring;
  const int error = io_uring_queue_init(4, &ring, 0);
  if (error) {
    printf("skipped: io_uring: %s\n", strerror(-error));
    return;
  }
  const int file = new_file();
  memory = map_at(NULL, SIZE);
  room = SIZE;
  memset(memory, OLD, SIZE);
  struct iovec buffer = {memory, SIZE};
  if (io_uring_register_buffers(&ring, &buffer, 1)) die("io_uring_register_buffers");
  mr = reg(memory, SIZE);
  outcome("io_uring buffers, then registered; READ before", peer_reads(mr->rkey, memory));
  read_fixed(&ring, file);
  outcome("io_uring buffers, then registered, a read into them; the program", program_sees(memory));
  outcome("io_uring buffers, then registered, a read into them; READ", peer_reads(mr->rkey, memory));
  io_uring_unregister_buffers(&ring);
  end();

  begin();
  buffer.iov_base = memory;
  if (io_uring_register_buffers(&ring, &buffer, 1)) die("io_uring_register_buffers");
  read_fixed(&ring, file);
  outcome("registered, then io_uring buffers, a read into them; READ", peer_reads(mr->rkey, memory));
  ibv_dereg_mr(mr);
  mr = NULL;
  memset(memory, OLD, SIZE);
  read_fixed(&ring, file);
  outcome("io_uring buffers, deregistered, a read into them; the program", program_sees(memory));
  io_uring_queue_exit(&ring);
  end();
  close(file);
}

/* Pages in a pipe follow what the program writes until they are read. */
static void splice_pages(int registered_first) {
  const char* game = registered_first ? "registered, vmsplice, deregistered, the program writes; the pipe's reader"
                                      : "vmsplice, registered, the program writes; the pipe's reader";
  int ends[2];
  unsigned char bytes[SIZE];
  if (pipe(ends)) die("pipe");
  memory = map_at(NULL, SIZE);
  room = SIZE;
  memset(memory, OLD, SIZE);
  struct iovec piece = {memory, SIZE};
  if (registered_first) mr = reg(memory, SIZE);
  const ssize_t spliced = vmsplice(ends[1], &piece, 1, 0);
  if (spliced < PAGE) die("vmsplice");
  if (registered_first) {
    ibv_dereg_mr(mr);
    mr = NULL;
  } else {
    mr = reg(memory, SIZE);
  }
  memset(memory, NEW, SIZE);
  if (read(ends[0], bytes, (size_t)spliced) != spliced) die("read");
  struct answer_message a = {.first = bytes[0], .same = !memcmp(bytes, bytes + 1, (size_t)spliced - 1)};
  outcome(game, read_text(a));
  close(ends[0]);
  close(ends[1]);
  end();
}

int main(void) {
  start_peer();
  open_side(&own);
  connect_peer(&own);
  unmap_and_register_again("munmap, mmap at the same address", SIZE);
  unmap_and_register_again("munmap of half, mmap there", SIZE / 2);
  unmap_and_map();
  unmap();
  protect(PROT_READ, "PROT_READ");
  protect(PROT_NONE, "PROT_NONE");
  own_requests("munmap", -1, 0);
  own_requests("munmap, mmap at the same address", -1, 1);
  own_requests("mprotect(PROT_READ)", PROT_READ, 0);
  own_requests("mprotect(PROT_NONE)", PROT_NONE, 0);
  grow();
  move();
  advise(MADV_DONTNEED, "MADV_DONTNEED");
  advise(MADV_FREE, "MADV_FREE");
  advise(MADV_WIPEONFORK, "MADV_WIPEONFORK");
  forked(fork, "fork()");
  forked(_Fork, "_Fork()");
  forked(raw_fork, "clone by number");
  uring();
  /* Last: splicing changes how the process registers memory from then on. */
  splice_pages(1);
  splice_pages(0);
  end_peer();
  puts("done");
  return 0;
}
