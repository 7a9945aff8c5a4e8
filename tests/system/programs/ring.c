/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* MPI: messages of 1 B to 4 MiB go around the ring of ranks, blocking, buffered in order and one-sided; every
 * byte is checked. Prints "ring ok" on rank 0, or the wrong byte and its message. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LARGEST = 4 << 20, TAG = 7, LAPS = 3, BURST = 64 };

static int rank, ranks;

static unsigned char expected(size_t index, size_t size, int lap, int from) {
  return (unsigned char)(index * 31 + size * 7 + (size_t)lap * 13 + (size_t)from * 101 + (index >> 8));
}

static void fill(unsigned char* data, size_t size, int lap) {
  for (size_t i = 0; i < size; ++i) data[i] = expected(i, size, lap, rank);
}

static void check(const unsigned char* data, size_t size, int lap, int from, const char* what) {
  for (size_t i = 0; i < size; ++i) {
    if (data[i] == expected(i, size, lap, from)) continue;
    fprintf(stderr, "rank %d: %s of %zu bytes from rank %d, lap %d: byte %zu is %u, expected %u\n", rank, what, size,
            from, lap, i, data[i], expected(i, size, lap, from));
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
}

/* 1, 3, 7 ... 1023, 4096, 16384 ... LARGEST. */
static size_t next_size(size_t size) { return size < 1023 ? size * 2 + 1 : size == 1023 ? 4096 : size * 4; }

static void send_around(unsigned char* out, unsigned char* in) {
  const int next = (rank + 1) % ranks, previous = (rank + ranks - 1) % ranks;
  for (size_t size = 1; size <= LARGEST; size = next_size(size)) {
    for (int lap = 0; lap < LAPS; ++lap) {
      MPI_Status status;
      int got = 0;
      fill(out, size, lap);
      memset(in, 0xee, size);
      MPI_Sendrecv(out, (int)size, MPI_BYTE, next, TAG, in, LARGEST, MPI_BYTE, previous, TAG, MPI_COMM_WORLD, &status);
      MPI_Get_count(&status, MPI_BYTE, &got);
      if ((size_t)got != size) {
        fprintf(stderr, "rank %d: %d bytes arrived, %zu were sent\n", rank, got, size);
        MPI_Abort(MPI_COMM_WORLD, 2);
      }
      check(in, size, lap, previous, "a message");
    }
  }
}

/* More messages than any queue holds, received in reverse order of their tags. */
static void burst(void) {
  const int next = (rank + 1) % ranks, previous = (rank + ranks - 1) % ranks;
  static int out[BURST], in[BURST];
  MPI_Request requests[2 * BURST];
  for (int i = 0; i < BURST; ++i) {
    out[i] = rank * 1000 + i;
    MPI_Isend(&out[i], 1, MPI_INT, next, i, MPI_COMM_WORLD, &requests[i]);
  }
  for (int i = BURST - 1; i >= 0; --i) {
    MPI_Irecv(&in[i], 1, MPI_INT, previous, i, MPI_COMM_WORLD, &requests[BURST + i]);
  }
  MPI_Waitall(2 * BURST, requests, MPI_STATUSES_IGNORE);
  for (int i = 0; i < BURST; ++i) {
    if (in[i] == previous * 1000 + i) continue;
    fprintf(stderr, "rank %d: message with tag %d is %d, expected %d\n", rank, i, in[i], previous * 1000 + i);
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
}

static void one_sided(void) {
  const int next = (rank + 1) % ranks, previous = (rank + ranks - 1) % ranks;
  const size_t size = 65536;
  unsigned char *window_data, *source = malloc(size);
  long *counter, one = 1, seen = 0;
  MPI_Win window, counters;
  MPI_Win_allocate((MPI_Aint)size, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &window_data, &window);
  MPI_Win_allocate(sizeof *counter, sizeof *counter, MPI_INFO_NULL, MPI_COMM_WORLD, &counter, &counters);
  *counter = 0;
  fill(source, size, 99);
  MPI_Win_fence(0, window);
  MPI_Put(source, (int)size, MPI_BYTE, next, 0, (int)size, MPI_BYTE, window);
  MPI_Win_fence(0, window);
  check(window_data, size, 99, previous, "a put");
  MPI_Win_fence(0, counters);
  for (int i = 0; i < 100; ++i) {
    MPI_Accumulate(&one, 1, MPI_LONG, 0, 0, 1, MPI_LONG, MPI_SUM, counters);
  }
  MPI_Win_fence(0, counters);
  if (rank == 0) seen = *counter;
  MPI_Bcast(&seen, 1, MPI_LONG, 0, MPI_COMM_WORLD);
  if (seen != 100L * ranks) {
    fprintf(stderr, "rank %d: the counter is %ld, expected %ld\n", rank, seen, 100L * ranks);
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  MPI_Win_free(&counters);
  MPI_Win_free(&window);
  free(source);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  unsigned char *out = malloc(LARGEST), *in = malloc(LARGEST);
  send_around(out, in);
  burst();
  if (argc < 2 || strcmp(argv[1], "--no-windows") != 0) one_sided();
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0) printf("ring ok: %d ranks\n", ranks);
  free(out);
  free(in);
  MPI_Finalize();
  return 0;
}
