/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* MPI, without end or until the file exists that the arguments name: in each round a message of 256 KiB goes around the
 * ring of ranks, and each sends blocks of 4 KiB to all. Every byte is checked. Each rank prints its process id once the
 * rounds are under way, and the first one, if they are to end, the rounds. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MESSAGE = 1 << 18, BLOCK = 1 << 12, TAG = 5, WARM = 10 };

static int rank, ranks;

static unsigned char expected(unsigned round, int from, int to) {
  return (unsigned char)(round * 7 + (unsigned)from * 31 + (unsigned)to * 101);
}

static void check(const unsigned char* data, size_t size, unsigned round, int from, const char* what) {
  for (size_t i = 0; i < size; ++i) {
    if (data[i] == expected(round, from, rank)) continue;
    fprintf(stderr, "rank %d: wrong byte: %zu of %s from rank %d, round %u\n", rank, i, what, from, round);
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
}

static void around_the_ring(unsigned char* out, unsigned char* in, unsigned round) {
  const int next = (rank + 1) % ranks, previous = (rank + ranks - 1) % ranks;
  memset(out, expected(round, rank, next), MESSAGE);
  memset(in, ~expected(round, previous, rank), MESSAGE);
  MPI_Sendrecv(out, MESSAGE, MPI_BYTE, next, TAG, in, MESSAGE, MPI_BYTE, previous, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  check(in, MESSAGE, round, previous, "a message");
}

static void to_all(unsigned char* out, unsigned char* in, unsigned round) {
  for (int to = 0; to < ranks; ++to) memset(out + to * BLOCK, expected(round, rank, to), BLOCK);
  MPI_Alltoall(out, BLOCK, MPI_BYTE, in, BLOCK, MPI_BYTE, MPI_COMM_WORLD);
  for (int from = 0; from < ranks; ++from) check(in + from * BLOCK, BLOCK, round, from, "alltoall");
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const size_t blocks = (size_t)ranks * BLOCK, size = blocks > MESSAGE ? blocks : MESSAGE;
  unsigned char *out = malloc(size), *in = malloc(size);
  int is_over = 0;
  unsigned round = 0;
  for (; !is_over; ++round) {
    around_the_ring(out, in, round);
    to_all(out, in, round);
    if (round == WARM) {
      printf("rank %d is process %d\n", rank, (int)getpid());
      fflush(stdout);
    }
    if (argc < 2) continue;
    if (rank == 0) {
      printf("round %u\n", round);
      fflush(stdout);
      is_over = access(argv[1], F_OK) == 0;
    }
    MPI_Bcast(&is_over, 1, MPI_INT, 0, MPI_COMM_WORLD);
  }
  if (rank == 0) printf("mpi_rounds ok: %d ranks, %u rounds\n", ranks, round);
  free(out);
  free(in);
  MPI_Finalize();
  return 0;
}
