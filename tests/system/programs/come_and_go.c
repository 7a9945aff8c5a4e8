/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
 * A process that stays beside ROUNDS peers that come and go, one after the other: it writes to the
 * memory of each and wakes it through its completion channel. Half of them clean up, half are
 * killed. Then nothing of theirs may be left in it: no mapping of their pages, no end of a pipe.
 *
 * come_and_go ROUNDS     ends with 0, or prints what is left. Memory that the kernel cannot move
 * into files is not mapped, so only pipes count then. */
#include "two_sides.h"

#include <dirent.h>

enum { BYTES = 1 << 20, FEW = 6, PATIENCE = 30 };

static void check(int right, const char* what) {
  if (right) return;
  fprintf(stderr, "%s\n", what);
  _exit(1);
}

/* One that comes and goes. */
static void owner(int cleans_up) {
  struct side s = {0};
  struct ibv_comp_channel* channel = open_side_with_channel(&s);
  unsigned char* memory = NULL;
  if (posix_memalign((void**)&memory, 4096, BYTES)) die("memory");
  memset(memory, 1, BYTES);
  const int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE;
  struct ibv_mr* mr = ibv_reg_mr(s.pd, memory, BYTES, access);
  if (!mr) die("ibv_reg_mr");
  connect_peer(&s);
  expect_event(&s, memory, 64, mr->lkey);
  check(order_peer(&s, WRITE, mr->rkey, memory, BYTES, 7, NULL).status == 0, "WRITE failed");
  check(memory[0] == 7 && memory[BYTES - 1] == 7, "WRITE has not changed the memory");
  check(order_peer(&s, SEND, 0, NULL, 64, 0, NULL).status == 0, "SEND failed");
  struct ibv_cq* cq = NULL;
  void* cookie = NULL;
  if (ibv_get_cq_event(channel, &cq, &cookie)) die("ibv_get_cq_event");
  check(cq == s.cq, "an event of another queue");
  if (!cleans_up) kill(getpid(), SIGKILL);
  ibv_ack_cq_events(cq, 1);
  const int failed = ibv_destroy_qp(s.qp) || ibv_destroy_cq(s.cq) || ibv_dereg_mr(mr) ||
                     ibv_destroy_comp_channel(channel) || ibv_dealloc_pd(s.pd) ||
                     ibv_close_device(s.context);
  check(!failed, "an object cannot be destroyed");
  exit(0);
}

static int mappings_of_peer(void) {
  char name[64], line[512];
  snprintf(name, sizeof name, "/proc/%d/maps", peer_pid);
  FILE* file = fopen(name, "r");
  if (!file) die(name);
  int count = 0;
  while (fgets(line, sizeof line, file)) count += strstr(line, "softib-pages") != NULL;
  fclose(file);
  return count;
}

static int pipe_ends_of_peer(void) {
  char name[64], path[512], target[64];
  snprintf(name, sizeof name, "/proc/%d/fd", peer_pid);
  DIR* directory = opendir(name);
  if (!directory) die(name);
  int count = 0;
  for (const struct dirent* entry; (entry = readdir(directory));) {
    snprintf(path, sizeof path, "%s/%s", name, entry->d_name);
    const ssize_t length = readlink(path, target, sizeof target - 1);
    if (length <= 0) continue;
    target[length] = 0;
    count += strncmp(target, "pipe:", 5) == 0;
  }
  closedir(directory);
  return count;
}

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? atoi(argv[1]) : 40;
  start_peer();
  for (int i = 0; i < rounds; ++i) {
    const pid_t pid = fork();
    if (pid < 0) die("fork");
    if (pid == 0) owner(i % 2 == 0);
    int status = 0;
    waitpid(pid, &status, 0);
    const int right = i % 2 == 0 ? status == 0 : WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
    if (!right) die("a process that came");
  }
  int mappings = 0, ends = 0;
  const time_t give_up = time(NULL) + PATIENCE;
  do {
    const struct timespec pause = {0, 50 * 1000 * 1000};
    nanosleep(&pause, NULL);
    mappings = mappings_of_peer();
    ends = pipe_ends_of_peer();
  } while ((mappings > FEW || ends > FEW) && time(NULL) < give_up);
  printf("%d came: %d mappings and %d ends of pipes are left\n", rounds, mappings, ends);
  end_peer();
  return mappings > FEW || ends > FEW;
}
