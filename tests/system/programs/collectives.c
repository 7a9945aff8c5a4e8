/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
 * Checked MPI_Reduce, Allreduce, Alltoall and Bcast of 64 KiB to 1 MiB, with buffers that are allocated and freed for
 * each size, as programs do: registration caches then meet fresh memory at old addresses. Prints the errors.
 *
 *   collectives [ROUNDS] */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { REPEATS = 8 };

static int rank, ranks;
static long wrong;

static float input(size_t i, int of) { return (float)((i * 2654435761u >> 20 & 0xfff) + (unsigned)of); }

static float sum(size_t i) {
  float all = 0;
  for (int r = 0; r < ranks; ++r) all += input(i, r);
  return all;
}

static void compare(const char* what, size_t bytes, size_t i, float got, float want) {
  if (got == want) return;
  if (++wrong <= 5) printf("rank %d, %s of %zu bytes, element %zu: %g, not %g\n", rank, what, bytes, i, got, want);
}

static void one_size(size_t bytes) {
  const size_t count = bytes / sizeof(float), part = count / (size_t)ranks;
  float *in = malloc(bytes), *out = malloc(bytes);
  for (size_t i = 0; i < count; ++i) in[i] = input(i, rank);
  for (int repeat = 0; repeat < REPEATS; ++repeat) {
    const int root = repeat % ranks;
    memset(out, 0, bytes);
    MPI_Reduce(in, out, (int)count, MPI_FLOAT, MPI_SUM, root, MPI_COMM_WORLD);
    for (size_t i = 0; rank == root && i < count; ++i) compare("reduce", bytes, i, out[i], sum(i));
    memset(out, 0, bytes);
    MPI_Allreduce(in, out, (int)count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    for (size_t i = 0; i < count; ++i) compare("allreduce", bytes, i, out[i], sum(i));
    memset(out, 0, bytes);
    MPI_Alltoall(in, (int)part, MPI_FLOAT, out, (int)part, MPI_FLOAT, MPI_COMM_WORLD);
    for (size_t i = 0; i < part * (size_t)ranks; ++i)
      compare("alltoall", bytes, i, out[i], input((size_t)rank * part + i % part, (int)(i / part)));
    float* copy = malloc(bytes);
    memcpy(copy, in, bytes);
    MPI_Bcast(copy, (int)count, MPI_FLOAT, root, MPI_COMM_WORLD);
    for (size_t i = 0; i < count; ++i) compare("bcast", bytes, i, copy[i], input(i, root));
    free(copy);
  }
  free(in);
  free(out);
}

int main(int argc, char** argv) {
  long all = 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  for (int round = 0; round < (argc > 1 ? atoi(argv[1]) : 3); ++round) {
    for (size_t bytes = 64 << 10; bytes <= 1 << 20; bytes *= 2) one_size(bytes);
  }
  MPI_Allreduce(&wrong, &all, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
  if (rank == 0) printf(all == 0 ? "collectives ok: %d ranks\n" : "collectives: %d ranks, %ld wrong\n", ranks, all);
  MPI_Finalize();
  return all != 0;
}
