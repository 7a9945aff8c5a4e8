/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
 * Clients of the subnet administrator, all at once: each sends all its requests for path records in
 * one go, without a retry, and counts the answers.
 *
 * umad_queries CLIENTS REQUESTS LID...     "N answers of M, R a second"; LID: the far ends, in turn */
#include "umad_port.h"

enum { PATH_RECORD = 0x35, COMPONENTS = 48, DLID = 40, SLID = 42, LIMIT_MS = 60000 };

static void put_lid(unsigned char* at, unsigned lid) {
  at[0] = (unsigned char)(lid >> 8);
  at[1] = (unsigned char)lid;
}

/* Returns how many were answered with the path of this very request. */
static unsigned ask(int fd, int agent, unsigned requests, unsigned own, char** lids, unsigned count) {
  const struct place manager = {.lid = read_number("/sys/class/infiniband/softib0/ports/1/sm_lid")};
  for (unsigned i = 0; i < requests; ++i) {
    struct mad mad = make_mad(agent, LIMIT_MS, 0, SA, GET, PATH_RECORD, i + 1, &manager);
    mad.bytes[COMPONENTS + 7] = 0x30; /* DLID, SLID */
    put_lid(mad.bytes + SA_HEADER + DLID, (unsigned)atoi(lids[i % count]));
    put_lid(mad.bytes + SA_HEADER + SLID, own);
    need(write(fd, &mad, sizeof mad) == sizeof mad, "write");
  }
  unsigned answers = 0;
  for (unsigned i = 0; i < requests && wait_for(fd, LIMIT_MS); ++i) {
    struct mad mad;
    const ssize_t size = read(fd, &mad, sizeof mad);
    need(size == sizeof mad, "read");
    const unsigned which = (unsigned)(tid_of(&mad) & 0xffffffffu) - 1;
    const int is_good = mad.head.status == 0 && mad.bytes[4] == 0 && mad.bytes[5] == 0;
    unsigned char wanted[2];
    put_lid(wanted, (unsigned)atoi(lids[which % count]));
    answers += is_good && which < requests && !memcmp(mad.bytes + SA_HEADER + DLID, wanted, 2);
  }
  return answers;
}

static void client(int begin, int result, unsigned requests, unsigned own, char** lids,
                   unsigned count) {
  const int fd = open_umad(0);
  const int agent = add_agent(fd, 1, SA, 2, 0, 1);
  need(agent >= 0, "an agent");
  char byte = 0;
  need(write(result, &own, sizeof own) == sizeof own, "ready");
  (void)!read(begin, &byte, 1); /* its end: all are ready */
  const unsigned answers = ask(fd, agent, requests, own, lids, count);
  need(write(result, &answers, sizeof answers) == sizeof answers, "result");
  exit(0);
}

int main(int count, char** words) {
  if (count < 4) return 2;
  const unsigned clients = (unsigned)atoi(words[1]), requests = (unsigned)atoi(words[2]);
  const unsigned own = own_place().lid;
  int begin[2], result[2];
  need(pipe(begin) == 0 && pipe(result) == 0, "pipe");
  for (unsigned i = 0; i < clients; ++i) {
    const pid_t child = fork();
    need(child >= 0, "fork");
    if (child != 0) continue;
    close(begin[1]);
    client(begin[0], result[1], requests, own, words + 3, (unsigned)count - 3);
  }
  unsigned value = 0, answers = 0;
  for (unsigned i = 0; i < clients; ++i) need(read(result[0], &value, sizeof value) == sizeof value, "ready");
  const double started = now();
  close(begin[0]);
  close(begin[1]);
  for (unsigned i = 0; i < clients; ++i) {
    need(read(result[0], &value, sizeof value) == sizeof value, "result");
    answers += value;
  }
  const double seconds = now() - started;
  while (wait(NULL) > 0) continue;
  printf("%u answers of %u, %.0f a second\n", answers, clients * requests,
         (double)answers / seconds);
  return answers != clients * requests;
}
