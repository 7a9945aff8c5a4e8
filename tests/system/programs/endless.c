/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* MPI: messages of 1 MiB go around the ring of ranks without end. Each rank prints its process id
 * once the transfers are under way, and any wrong byte. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SIZE = 1 << 20, TAG = 3, WARM = 20 };

int main(int argc, char** argv) {
  int rank, ranks;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  unsigned char *out = malloc(SIZE), *in = malloc(SIZE);
  for (unsigned round = 0;; ++round) {
    memset(out, (int)(round + (unsigned)rank) & 0xff, SIZE);
    const int previous = (rank + ranks - 1) % ranks;
    MPI_Sendrecv(out, SIZE, MPI_BYTE, (rank + 1) % ranks, TAG, in, SIZE, MPI_BYTE, previous, TAG, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    for (size_t i = 0; i < SIZE; ++i) {
      if (in[i] == (unsigned char)(round + (unsigned)previous)) continue;
      fprintf(stderr, "rank %d: wrong byte in round %u\n", rank, round);
      MPI_Abort(MPI_COMM_WORLD, 2);
    }
    if (round == WARM) {
      printf("rank %d is process %d\n", rank, (int)getpid());
      fflush(stdout);
    }
  }
}
