/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* MPI: ping-pong between two ranks, each pinned to a core. The sender writes every cache line of its message, the
 * receiver reads and checks each. Compiled by bench/mpi.py with the compilers of both MPIs.
 *
 *   mpi_pingpong CORE CORE SIZE...
 *
 * Prints {"SIZE": us, ...}: of the fastest batch, half of the way there and back. */
#define _GNU_SOURCE
#include <mpi.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LINE = 64, BATCHES = 101, TAG = 1 };

static int rank;

static void fail(const char* what) {
  fprintf(stderr, "mpi_pingpong, rank %d: %s\n", rank, what);
  MPI_Abort(MPI_COMM_WORLD, 2);
}

static void touch(unsigned char* data, size_t size, unsigned char value) {
  for (size_t i = 0; i < size; i += LINE) data[i] = (unsigned char)(value + i / LINE);
}

static void check(const unsigned char* data, size_t size, unsigned char value) {
  unsigned wrong = 0;
  for (size_t i = 0; i < size; i += LINE) wrong |= data[i] ^ (unsigned char)(value + i / LINE);
  if (wrong) fail("a message has wrong bytes");
}

static void give(unsigned char* data, size_t size, unsigned char value) {
  touch(data, size, value);
  MPI_Send(data, (int)size, MPI_BYTE, 1 - rank, TAG, MPI_COMM_WORLD);
}

static void take(unsigned char* data, size_t size, unsigned char value) {
  MPI_Recv(data, (int)size, MPI_BYTE, 1 - rank, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  check(data, size, value);
}

static double batch(unsigned char* out, unsigned char* in, size_t size, int rounds) {
  MPI_Barrier(MPI_COMM_WORLD);
  const double start = MPI_Wtime();
  for (int i = 0; i < rounds; ++i) {
    if (rank == 0) {
      give(out, size, (unsigned char)i);
      take(in, size, (unsigned char)(i + 1));
    } else {
      take(in, size, (unsigned char)i);
      give(out, size, (unsigned char)(i + 1));
    }
  }
  return (MPI_Wtime() - start) * 1e6 / rounds / 2;
}

static double fastest(size_t size) {
  const int rounds = size < 4096 ? 1000 : size <= 65536 ? 100 : 4;
  double best;
  unsigned char *out = NULL, *in = NULL;
  if (posix_memalign((void**)&out, 4096, size) || posix_memalign((void**)&in, 4096, size)) fail("no memory");
  memset(out, 0, size);
  memset(in, 0, size);
  batch(out, in, size, rounds); /* connections, registrations, caches */
  best = batch(out, in, size, rounds);
  for (int i = 1; i < BATCHES; ++i) {
    const double us = batch(out, in, size, rounds);
    if (us < best) best = us;
  }
  free(out);
  free(in);
  return best;
}

int main(int argc, char** argv) {
  int ranks;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (ranks != 2 || argc < 4) fail("usage: two ranks, CORE CORE SIZE...");
  cpu_set_t core;
  CPU_ZERO(&core);
  CPU_SET(atoi(argv[1 + rank]), &core);
  if (sched_setaffinity(0, sizeof core, &core) != 0) fail("cannot run on that core");
  for (int i = 3; i < argc; ++i) {
    const double us = fastest(strtoull(argv[i], NULL, 10));
    if (rank == 0) printf("%s\"%s\": %.4f%s", i == 3 ? "{" : ", ", argv[i], us, i + 1 == argc ? "}\n" : "");
  }
  MPI_Finalize();
  return 0;
}
