/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
 * How many mappings regions take, and leave behind when they are deregistered; a peer writes to some of them meanwhile.
 *
 *   many_mappings MODE COUNT [thread]      thread: the program has a second one
 *   random   COUNT rounds; in each the oldest of 64 regions, at random places of one buffer, is replaced
 *   second   COUNT regions: every second page of a buffer, deregistered in random order
 *   arena    COUNT regions, blocks of malloc(), of which half are freed and allocated again
 *   crowded  COUNT regions, in a program with more than half of vm.max_map_count
 *   same     COUNT regions that begin at one address, deregistered in random order
 * prints: MODE: most NUMBER mappings more, NUMBER left, NUMBER wrong pages */
#define _GNU_SOURCE
#include "two_sides.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>

enum { PAGE = 4096, KEPT = 64, ACCESS = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE };

static struct side own;
static unsigned long state = 34;
static int most;
static long wrong;

static unsigned long next(void) {
  state = state * 6364136223846793005ul + 1442695040888963407ul;
  return state >> 33;
}

static int mappings(void) {
  static char text[65536];
  const int maps = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
  int lines = 0;
  for (ssize_t got; (got = read(maps, text, sizeof text)) > 0;) {
    for (ssize_t i = 0; i < got; ++i) lines += text[i] == '\n';
  }
  close(maps);
  if (lines > most) most = lines;
  return lines;
}

static unsigned char* map(size_t pages) {
  unsigned char* memory = mmap(NULL, pages * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) die("mmap");
  return memory;
}

/* Each page holds one value all over: its number's, or what the peer wrote. */
static void fill_pages(unsigned char* memory, size_t pages) {
  for (size_t i = 0; i < pages; ++i) memset(memory + i * PAGE, (int)(i % 251), PAGE);
}

static void check_pages(const unsigned char* memory, size_t pages) {
  for (size_t i = 0; i < pages; ++i) {
    const unsigned char* at = memory + i * PAGE;
    wrong += at[0] != i % 251 || memcmp(at, at + 1, PAGE - 1) != 0;
  }
}

static struct ibv_mr* reg(void* at, size_t length) {
  struct ibv_mr* mr = ibv_reg_mr(own.pd, at, length, ACCESS);
  if (!mr) die("ibv_reg_mr");
  return mr;
}

static void dereg(struct ibv_mr* mr) {
  if (mr && ibv_dereg_mr(mr)) die("ibv_dereg_mr");
}

/* The peer writes a page; the program sees it, and puts back what was there. */
static void use(const struct ibv_mr* mr, unsigned char* page) {
  const int before = page[0];
  if (order_peer(&own, WRITE, mr->rkey, page, PAGE, 0xfe, NULL).status) die("WRITE");
  wrong += page[0] != 0xfe || memcmp(page, page + 1, PAGE - 1) != 0;
  memset(page, before, PAGE);
}

static void dereg_shuffled(struct ibv_mr** mr, int count) {
  for (int i = count - 1; i > 0; --i) {
    const unsigned long other = next() % (unsigned long)(i + 1);
    struct ibv_mr* swapped = mr[i];
    mr[i] = mr[other];
    mr[other] = swapped;
  }
  for (int i = 0; i < count; ++i) dereg(mr[i]);
}

static void play_random(int rounds) {
  const size_t pages = 16384;
  unsigned char* memory = map(pages);
  struct ibv_mr* mr[KEPT] = {NULL};
  fill_pages(memory, pages);
  for (int round = 0; round < rounds; ++round) {
    struct ibv_mr** place = &mr[round % KEPT];
    dereg(*place);
    const size_t first = next() % (pages - 20), length = PAGE + next() % (16 * PAGE);
    *place = reg(memory + first * PAGE + next() % PAGE, length + PAGE);
    if (round % 16 == 0) use(*place, memory + (first + 1) * PAGE);
    if (round % 256 == 255) mappings();
  }
  dereg_shuffled(mr, KEPT);
  check_pages(memory, pages);
}

static void play_second(int count, struct ibv_mr** mr) {
  unsigned char* memory = map(2 * (size_t)count);
  fill_pages(memory, 2 * (size_t)count);
  for (int round = 0; round < 2; ++round) {
    for (int i = 0; i < count; ++i) {
      unsigned char* page = memory + 2 * (size_t)i * PAGE;
      mr[i] = reg(page, PAGE);
      if (i % 64 == 0) use(mr[i], page);
    }
    mappings();
    dereg_shuffled(mr, count);
    mappings();
  }
  check_pages(memory, 2 * (size_t)count);
}

static void play_arena(int count, struct ibv_mr** mr) {
  unsigned char** block = calloc((size_t)count, sizeof *block);
  if (!block) die("calloc");
  for (int i = 0; i < count; ++i) {
    if (!(block[i] = malloc(2 * PAGE))) die("malloc");
    memset(block[i], i % 251, 2 * PAGE);
    mr[i] = reg(block[i], 2 * PAGE);
  }
  mappings();
  for (int i = 0; i < count; i += 2) {
    dereg(mr[i]);
    free(block[i]);
  }
  for (int i = 0; i < count; i += 2) {
    if (!(block[i] = calloc(2, PAGE))) die("calloc");
    wrong += block[i][0] != 0 || memcmp(block[i], block[i] + 1, 2 * PAGE - 1) != 0;
    memset(block[i], i % 251, 2 * PAGE);
    mr[i] = reg(block[i], 2 * PAGE);
  }
  mappings();
  dereg_shuffled(mr, count);
  for (int i = 0; i < count; ++i) {
    wrong += block[i][0] != i % 251 || memcmp(block[i], block[i] + 1, 2 * PAGE - 1) != 0;
    free(block[i]);
  }
}

static void play_crowded(int count, struct ibv_mr** mr) {
  unsigned char* memory = map(2 * (size_t)count);
  fill_pages(memory, 2 * (size_t)count);
  for (int i = 0; i < count; ++i) {
    unsigned char* page = memory + 2 * (size_t)i * PAGE;
    mr[i] = reg(page, PAGE);
    if (i % 64 == 0) use(mr[i], page);
  }
  mappings();
  dereg_shuffled(mr, count);
  check_pages(memory, 2 * (size_t)count);
}

static void play_same(int count, struct ibv_mr** mr) {
  unsigned char* memory = map(2);
  fill_pages(memory, 2);
  for (int i = 0; i < count; ++i) mr[i] = reg(memory, PAGE + (size_t)i % PAGE);
  use(mr[count / 2], memory);
  dereg_shuffled(mr, count);
  check_pages(memory, 2);
}

/* Of every second page another mapping; more than half of the most that the process may have. */
static void crowd(void) {
  long limit = 65530;
  FILE* file = fopen("/proc/sys/vm/max_map_count", "r");
  if (file) {
    if (fscanf(file, "%ld", &limit) != 1) die("max_map_count");
    fclose(file);
  }
  const size_t pages = (size_t)limit / 2 + 1000;
  unsigned char* memory = map(pages);
  for (size_t i = 0; i < pages; i += 2) {
    if (mprotect(memory + i * PAGE, PAGE, PROT_READ)) die("mprotect");
  }
}

static void* wait_for_end(void* unused) {
  for (;;) pause();
  return unused;
}

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  const char* mode = argv[1];
  const int count = atoi(argv[2]);
  pthread_t thread;
  start_peer();
  open_side(&own);
  connect_peer(&own);
  if (argc > 3 && pthread_create(&thread, NULL, wait_for_end, NULL)) die("pthread_create");
  if (!strcmp(mode, "crowded")) crowd();
  struct ibv_mr** mr = calloc((size_t)count, sizeof *mr);
  if (!mr) die("calloc");
  const int before = mappings();
  if (!strcmp(mode, "random")) play_random(count);
  else if (!strcmp(mode, "second")) play_second(count, mr);
  else if (!strcmp(mode, "arena")) play_arena(count, mr);
  else if (!strcmp(mode, "crowded")) play_crowded(count, mr);
  else if (!strcmp(mode, "same")) play_same(count, mr);
  else return 2;
  const int left = mappings() - before;
  end_peer();
  printf("%s: most %d mappings more, %d left, %ld wrong pages\n", mode, most - before, left, wrong);
  return wrong != 0;
}
