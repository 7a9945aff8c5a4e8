/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
 * Programs with umad files that come and go. Each sends to itself, to another node and to nobody,
 * in some order, with several agents and files, and ends in the middle of it: half of them clean
 * up, half are killed.
 *
 * umad_storm CLIENTS SEED LID     "CLIENTS clients, K killed" */
#include "umad_port.h"

enum { AT_A_TIME = 16, FILES = 3, MOST_LONG = 20000 };

static uint32_t state;
static unsigned any(unsigned limit) {
  state = state * 1664525u + 1013904223u;
  return (state >> 8) % limit;
}

static void one_file(int fd, const struct place* self, const struct place* other) {
  const int agents[] = {add_agent(fd, 1, VENDOR, 1, 0, 0), add_agent(fd, 1, SA, 2, 0, 1),
                        add_agent(fd, 0, SUBNET_ROUTE, 1, 0, 0),
                        add_agent(fd, 1, VENDOR_OUI, 1, any(2) << GET, any(2))};
  const struct place nobody = {.lid = 0x4000};
  static unsigned char longer[HEADER + MOST_LONG];
  for (unsigned i = 0, last = any(40); i < last; ++i) {
    const struct place* const to[] = {self, other, &nobody};
    const unsigned classes[] = {VENDOR, SA, SUBNET_ROUTE, VENDOR_OUI};
    const unsigned which = any(4);
    const struct mad mad = make_mad(agents[which], any(3) * 500, any(3), classes[which],
                                    any(2) ? GET : GET_TABLE, any(0x40), any(1000), to[any(3)]);
    memcpy(longer, &mad, sizeof mad);
    const unsigned size = which == 1 && any(2) ? HEADER + 100 + any(MOST_LONG - 100) : WHOLE;
    if (size > WHOLE) set_rmpp(longer + HEADER);
    if (write(fd, longer, size) < 0 && errno != EINVAL && errno != EIO) exit(3);
    if (any(4) == 0 && wait_for(fd, 0) && read(fd, longer, sizeof longer) < 0) exit(4);
    if (any(20) == 0) remove_agent(fd, agents[any(4)]);
  }
}

static void client(const struct place* self, const struct place* other) {
  for (unsigned i = 0, last = 1 + any(FILES); i < last; ++i) one_file(open_umad(O_NONBLOCK), self, other);
  if (any(4) == 0) (void)!open("/dev/infiniband/issm0", O_RDWR | O_NONBLOCK);
  if (any(2) == 0) raise(SIGKILL);
  exit(0);
}

int main(int count, char** words) {
  if (count != 4) return 2;
  const unsigned clients = (unsigned)atoi(words[1]), seed = (unsigned)atoi(words[2]);
  const struct place self = own_place(), other = {.lid = (unsigned)atoi(words[3])};
  unsigned running = 0, killed = 0;
  for (unsigned i = 0; i < clients || running > 0;) {
    if (i < clients && running < AT_A_TIME) {
      const pid_t child = fork();
      need(child >= 0, "fork");
      state = seed * 7919u + i;
      if (child == 0) client(&self, &other);
      ++running;
      ++i;
      continue;
    }
    int status = 0;
    wait(&status);
    --running;
    if (WIFSIGNALED(status)) {
      ++killed;
    } else if (WEXITSTATUS(status) != 0) {
      printf("a client ended with %d\n", WEXITSTATUS(status));
      return 1;
    }
  }
  printf("%u clients, %u killed\n", clients, killed);
  return 0;
}
