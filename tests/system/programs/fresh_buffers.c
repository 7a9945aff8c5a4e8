/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* MPI: buffers that are freed after an exchange, and others that are allocated for the next one. libc gives large
 * aligned ones back to the kernel within free() and often gets the same address again: an MPI that caches registrations
 * must notice that, or it sends from the pages of before and receives into these. */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { LINE = 64, ROUNDS = 6, TAG = 1 };

static const size_t sizes[] = {192 << 10, 1 << 20, 4 << 20, 9 << 20};
enum { SIZES = sizeof sizes / sizeof sizes[0] };
static int rank, ranks;

static unsigned char value(int from, int round, size_t at) {
  return (unsigned char)(from * 53 + round * 29 + (int)(at / LINE) + 1);
}

static void fill(unsigned char* data, size_t size, int round) {
  for (size_t i = 0; i < size; i += LINE) data[i] = value(rank, round, i);
}

static void check(const unsigned char* data, size_t size, int from, int round) {
  for (size_t i = 0; i < size; i += LINE) {
    if (data[i] == value(from, round, i)) continue;
    fprintf(stderr, "rank %d: %zu bytes of rank %d, round %d: wrong byte at %zu\n", rank, size, from, round, i);
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
}

static void* allocate(size_t size) {
  void* data = NULL;
  if (posix_memalign(&data, 4096, size) != 0) MPI_Abort(MPI_COMM_WORLD, 3);
  return data;
}

/* Returns whether both buffers are where those of the round before were. */
static int exchange(size_t size, int round, uintptr_t before[2]) {
  unsigned char *out = allocate(size), *in = allocate(size);
  const int right = (rank + 1) % ranks, left = (rank + ranks - 1) % ranks;
  const int same = before[0] == (uintptr_t)out && before[1] == (uintptr_t)in;
  before[0] = (uintptr_t)out;
  before[1] = (uintptr_t)in;
  for (int again = 0; again < 2; ++again) { /* the second time by the cache */
    fill(out, size, 2 * round + again);
    MPI_Sendrecv(out, (int)size, MPI_BYTE, right, TAG, in, (int)size, MPI_BYTE, left, TAG, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    check(in, size, left, 2 * round + again);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  free(in);
  free(out);
  return same;
}

int main(int argc, char** argv) {
  int same = 0, all = 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  for (int s = 0; s < SIZES; ++s) {
    uintptr_t before[2] = {0, 0};
    for (int round = 0; round < ROUNDS; ++round) same += exchange(sizes[s], round, before);
  }
  MPI_Allreduce(&same, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  if (rank == 0 && all < ranks) {
    fprintf(stderr, "the buffers have come back at the same addresses only %d times\n", all);
    MPI_Abort(MPI_COMM_WORLD, 4);
  }
  MPI_Finalize();
  if (rank == 0) printf("fresh_buffers ok: %d ranks, %d times at the same addresses\n", ranks, all);
  return 0;
}
