/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* One-sided MPI: put, get, accumulate, get_accumulate, fetch_and_op and compare_and_swap on windows of each kind, of
 * 1 B to 4 MiB, by fences, by locks with flushes, and by lock_all. Every byte is checked, those beside the target too.
 * Prints "one_sided ok", or the wrong byte.
 *
 *   one_sided [--no-swap]
 *
 * --no-swap: without MPI_Compare_and_swap, in which osc rdma of OpenMPI 4.1 crashes over any transport. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LARGEST = 4 << 20, MARGIN = 64, UNTOUCHED = 0xa5, ADDS = 50 };

static int rank, ranks, use_swap = 1;

static void fail(const char* what, size_t size, size_t index, long got, long wanted) {
  fprintf(stderr, "rank %d: %s of %zu bytes: element %zu is %ld, expected %ld\n", rank, what, size, index, got, wanted);
  MPI_Abort(MPI_COMM_WORLD, 2);
}

static unsigned char expected(size_t index, size_t size, int from, int salt) {
  return (unsigned char)(index * 37 + (index >> 8) * 11 + size * 5 + (size_t)from * 89 + (size_t)salt * 59);
}

static void fill(unsigned char* data, size_t size, int from, int salt) {
  for (size_t i = 0; i < size; ++i) data[i] = expected(i, size, from, salt);
}

static void check(const unsigned char* data, size_t size, int from, int salt, const char* what) {
  for (size_t i = 0; i < size; ++i) {
    if (data[i] != expected(i, size, from, salt)) fail(what, size, i, data[i], expected(i, size, from, salt));
  }
}

static void check_untouched(const unsigned char* data, size_t first, size_t end, size_t size, const char* what) {
  for (size_t i = first; i < end; ++i) {
    if (data[i] != UNTOUCHED) fail(what, size, i, data[i], UNTOUCHED);
  }
}

/* The state of every round. A window of each rank has MARGIN bytes, the bytes of a message, and MARGIN bytes. */
struct sides {
  int next, previous;
  unsigned char *window, *out, *in;
  MPI_Win handle;
};

static void by_fence(const struct sides* s, size_t size) {
  memset(s->window, UNTOUCHED, size + 2 * MARGIN);
  fill(s->out, size, rank, 1);
  MPI_Win_fence(0, s->handle);
  MPI_Put(s->out, (int)size, MPI_BYTE, s->next, MARGIN, (int)size, MPI_BYTE, s->handle);
  MPI_Win_fence(0, s->handle);
  check(s->window + MARGIN, size, s->previous, 1, "a put, by fence");
  check_untouched(s->window, 0, MARGIN, size, "the bytes before a put");
  check_untouched(s->window, MARGIN + size, size + 2 * MARGIN, size, "the bytes behind a put");
  memset(s->in, UNTOUCHED, size);
  MPI_Win_fence(0, s->handle);
  MPI_Get(s->in, (int)size, MPI_BYTE, s->next, MARGIN, (int)size, MPI_BYTE, s->handle);
  MPI_Win_fence(0, s->handle);
  check(s->in, size, rank, 1, "a get, by fence");
}

static void accumulate_by_fence(const struct sides* s, size_t size) {
  MPI_Win_fence(0, s->handle);
  memset(s->window, 0, size + 2 * MARGIN);
  MPI_Win_fence(0, s->handle);
  fill(s->out, size, rank, 2);
  MPI_Accumulate(s->out, (int)size, MPI_BYTE, s->next, MARGIN, (int)size, MPI_BYTE, MPI_BXOR, s->handle);
  MPI_Accumulate(s->out, (int)size, MPI_BYTE, s->previous, MARGIN, (int)size, MPI_BYTE, MPI_BXOR, s->handle);
  MPI_Win_fence(0, s->handle);
  for (size_t i = 0; i < size; ++i) {
    const unsigned char wanted = expected(i, size, s->previous, 2) ^ expected(i, size, s->next, 2);
    if (s->window[MARGIN + i] != wanted) fail("two accumulates", size, i, s->window[MARGIN + i], wanted);
  }
}

/* The target takes no part between the barriers. */
static void by_lock(const struct sides* s, size_t size, int lock_all) {
  const int kind = size % 2 ? MPI_LOCK_SHARED : MPI_LOCK_EXCLUSIVE;
  MPI_Win_lock(MPI_LOCK_EXCLUSIVE, rank, 0, s->handle);
  memset(s->window, UNTOUCHED, size + 2 * MARGIN);
  MPI_Win_unlock(rank, s->handle);
  fill(s->out, size, rank, 3);
  memset(s->in, UNTOUCHED, size);
  MPI_Barrier(MPI_COMM_WORLD);
  if (lock_all)
    MPI_Win_lock_all(0, s->handle);
  else
    MPI_Win_lock(kind, s->next, 0, s->handle);
  MPI_Put(s->out, (int)size, MPI_BYTE, s->next, MARGIN, (int)size, MPI_BYTE, s->handle);
  MPI_Win_flush(s->next, s->handle);
  MPI_Get(s->in, (int)size, MPI_BYTE, s->next, MARGIN, (int)size, MPI_BYTE, s->handle);
  MPI_Win_flush_local(s->next, s->handle);
  check(s->in, size, rank, 3, lock_all ? "a get after flush, by lock_all" : "a get after flush, by lock");
  memset(s->in, UNTOUCHED, size);
  fill(s->out, size, rank, 4);
  MPI_Get_accumulate(s->out, (int)size, MPI_BYTE, s->in, (int)size, MPI_BYTE, s->next, MARGIN, (int)size, MPI_BYTE,
                     MPI_REPLACE, s->handle);
  if (lock_all)
    MPI_Win_unlock_all(s->handle);
  else
    MPI_Win_unlock(s->next, s->handle);
  check(s->in, size, rank, 3, "the old bytes of a get_accumulate");
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, s->handle);
  for (size_t i = 0; i < size; ++i) {
    const unsigned char wanted = expected(i, size, s->previous, 4);
    if (s->window[MARGIN + i] != wanted) fail("a get_accumulate", size, i, s->window[MARGIN + i], wanted);
  }
  check_untouched(s->window, 0, MARGIN, size, "the bytes before");
  check_untouched(s->window, MARGIN + size, size + 2 * MARGIN, size, "the bytes behind");
  MPI_Win_unlock(rank, s->handle);
  MPI_Barrier(MPI_COMM_WORLD);
}

static void every_size(struct sides* s) {
  for (size_t size = 1; size <= LARGEST; size *= 4) {
    for (size_t some = size; some <= size + (size > 1 && size < LARGEST); ++some) { /* 4 and 5, 16 and 17 ... */
      by_fence(s, some);
      accumulate_by_fence(s, some);
      MPI_Win_fence(MPI_MODE_NOSUCCEED, s->handle);
      by_lock(s, some, 0);
      by_lock(s, some, 1);
    }
  }
}

/* All ranks change the same two words of rank 0 at the same time. */
static void atomics(void) {
  long *words, one = 1, old, sum = 0, all;
  MPI_Win window;
  MPI_Win_allocate(rank == 0 ? 2 * sizeof(long) : 0, sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &words, &window);
  if (rank == 0) {
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, window);
    words[0] = words[1] = 0;
    MPI_Win_unlock(0, window);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Win_lock_all(0, window);
  for (int i = 0; i < ADDS; ++i) {
    MPI_Fetch_and_op(&one, &old, MPI_LONG, 0, 0, MPI_SUM, window);
    MPI_Win_flush(0, window);
    sum += old;
  }
  for (int done = 0; use_swap && done < ADDS;) { /* adds one by compare and swap, against the others */
    long seen, next;
    MPI_Fetch_and_op(&one, &seen, MPI_LONG, 0, 1, MPI_NO_OP, window); /* osc rdma of OpenMPI 4.1 reads "one" */
    MPI_Win_flush(0, window);
    next = seen + 1;
    MPI_Compare_and_swap(&next, &seen, &old, MPI_LONG, 0, 1, window);
    MPI_Win_flush(0, window);
    done += old == seen;
  }
  MPI_Win_unlock_all(window);
  /* Each value from 0 on was the old one once. */
  const long count = (long)ADDS * ranks;
  MPI_Allreduce(&sum, &all, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
  if (all != count * (count - 1) / 2) fail("the sum of old values", sizeof(long), 0, all, count * (count - 1) / 2);
  if (rank == 0) {
    MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, window);
    for (size_t i = 0; i < 1 + (size_t)use_swap; ++i) {
      if (words[i] != count) fail("a counter", sizeof(long), i, words[i], count);
    }
    MPI_Win_unlock(0, window);
  }
  MPI_Win_free(&window);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  use_swap = argc < 2 || strcmp(argv[1], "--no-swap") != 0;
  const size_t whole = LARGEST + 2 * MARGIN;
  struct sides s = {.next = (rank + 1) % ranks, .previous = (rank + ranks - 1) % ranks};
  s.out = malloc(LARGEST);
  s.in = malloc(LARGEST);
  unsigned char* own = malloc(whole);
  s.window = own;
  MPI_Win_create(own, (MPI_Aint)whole, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &s.handle);
  every_size(&s);
  MPI_Win_free(&s.handle);
  free(own);
  MPI_Win_allocate((MPI_Aint)whole, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &s.window, &s.handle);
  every_size(&s);
  MPI_Win_free(&s.handle);
  atomics();
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0) printf("one_sided ok: %d ranks\n", ranks);
  free(s.out);
  free(s.in);
  MPI_Finalize();
  return 0;
}
