/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* MPI collectives with checks: alltoall and alltoallv of blocks of 4 B to 4 MiB, allreduce, allgather, bcast; and
 * alltoall of single bytes. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { LARGEST = 1 << 20, FEW = 1 << 18, ROUNDS = 5 };

static int rank, ranks;

static int element(int from, int to, int index, int round) { return from * 1000003 + to * 5077 + index * 17 + round; }

static void require(int good, const char* what, int size, int index, int got, int wanted) {
  if (good) return;
  fprintf(stderr, "rank %d: %s of %d ints: element %d is %d, expected %d\n", rank, what, size, index, got, wanted);
  MPI_Abort(MPI_COMM_WORLD, 2);
}

static void alltoall(int* out, int* in, int size, int round) {
  for (int to = 0; to < ranks; ++to) {
    for (int i = 0; i < size; ++i) out[to * size + i] = element(rank, to, i, round);
  }
  MPI_Alltoall(out, size, MPI_INT, in, size, MPI_INT, MPI_COMM_WORLD);
  for (int from = 0; from < ranks; ++from) {
    for (int i = 0; i < size; ++i) {
      const int wanted = element(from, rank, i, round);
      require(in[from * size + i] == wanted, "alltoall", size, i, in[from * size + i], wanted);
    }
  }
}

/* Rank a sends (a + b) % 3 * size elements to rank b. */
static void alltoallv(int* out, int* in, int size, int round) {
  int *counts = calloc((size_t)ranks * 4, sizeof(int)), *places = counts + ranks;
  int *in_counts = places + ranks, *in_places = in_counts + ranks;
  int at = 0, in_at = 0;
  for (int other = 0; other < ranks; ++other) {
    counts[other] = in_counts[other] = (rank + other) % 3 * size;
    places[other] = at;
    in_places[other] = in_at;
    for (int i = 0; i < counts[other]; ++i) out[at + i] = element(rank, other, i, round);
    at += counts[other];
    in_at += in_counts[other];
  }
  MPI_Alltoallv(out, counts, places, MPI_INT, in, in_counts, in_places, MPI_INT, MPI_COMM_WORLD);
  for (int from = 0; from < ranks; ++from) {
    for (int i = 0; i < in_counts[from]; ++i) {
      const int wanted = element(from, rank, i, round), got = in[in_places[from] + i];
      require(got == wanted, "alltoallv", size, i, got, wanted);
    }
  }
  free(counts);
}

static void others(int* out, int* in, int size, int round) {
  for (int i = 0; i < size; ++i) out[i] = rank + i + round;
  MPI_Allreduce(out, in, size, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  for (int i = 0; i < size; ++i) {
    const int wanted = ranks * (ranks - 1) / 2 + ranks * (i + round);
    require(in[i] == wanted, "allreduce", size, i, in[i], wanted);
  }
  MPI_Allgather(out, size, MPI_INT, in, size, MPI_INT, MPI_COMM_WORLD);
  for (int from = 0; from < ranks; ++from) {
    for (int i = 0; i < size; ++i) {
      const int wanted = from + i + round;
      require(in[from * size + i] == wanted, "allgather", size, i, in[from * size + i], wanted);
    }
  }
  MPI_Bcast(out, size, MPI_INT, round % ranks, MPI_COMM_WORLD);
  for (int i = 0; i < size; ++i) {
    const int wanted = round % ranks + i + round;
    require(out[i] == wanted, "bcast", size, i, out[i], wanted);
  }
}

static void bytes(unsigned char* out, unsigned char* in) {
  for (int to = 0; to < ranks; ++to) out[to] = (unsigned char)element(rank, to, 0, 0);
  MPI_Alltoall(out, 1, MPI_BYTE, in, 1, MPI_BYTE, MPI_COMM_WORLD);
  for (int from = 0; from < ranks; ++from) {
    const unsigned char wanted = (unsigned char)element(from, rank, 0, 0);
    require(in[from] == wanted, "alltoall of bytes", 0, from, in[from], wanted);
  }
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const size_t most = (size_t)LARGEST * (size_t)ranks * 3;
  int *out = malloc(most * sizeof(int)), *in = malloc(most * sizeof(int));
  bytes((unsigned char*)out, (unsigned char*)in);
  for (int size = 1; size <= LARGEST; size *= 4) {
    for (int round = 0; round < (size < FEW ? ROUNDS : 1); ++round) {
      alltoall(out, in, size, round);
      alltoallv(out, in, size, round);
      others(out, in, size, round);
    }
  }
  if (rank == 0) printf("alltoall ok: %d ranks\n", ranks);
  free(out);
  free(in);
  MPI_Finalize();
  return 0;
}
