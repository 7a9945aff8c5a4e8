/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
 * few_descriptors: makes each call that needs file descriptors with 0, 1, 2 ... free ones. The
 * result must be right or EMFILE; never "no such file", never half a listing. The device list is
 * left out: libibverbs itself returns an empty one then. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

enum { kMost = 64 };

static struct ibv_context* context;
static char guid_file[300];

static int read_guid(void) {
  char text[32] = "";
  int fd = open(guid_file, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return -1;
  ssize_t got = read(fd, text, sizeof text);
  close(fd);
  return got == 20 ? 0 : -2;
}
static int look_at_guid(void) {
  struct stat file;
  return stat(guid_file, &file);
}
static int list_classes(void) {
  int found = -2;
  DIR* classes = opendir("/sys/class");
  if (!classes) return -1;
  for (struct dirent* one; (one = readdir(classes));) {
    if (!strcmp(one->d_name, "infiniband")) found = 0;
  }
  closedir(classes);
  return found;
}
static int open_device(void) {
  struct ibv_context* another = ibv_open_device(context->device);
  return another ? ibv_close_device(another) : -1;
}
static int make_channel(void) {
  struct ibv_comp_channel* channel = ibv_create_comp_channel(context);
  return channel ? ibv_destroy_comp_channel(channel) : -1;
}
static const struct {
  const char* name;
  int (*call)(void);
} kCalls[] = {{"open", read_guid},
              {"stat", look_at_guid},
              {"opendir", list_classes},
              {"ibv_open_device", open_device},
              {"ibv_create_comp_channel", make_channel}};

/* Returns the number of open descriptors. */
static int in_use(void) {
  int count = 0;
  DIR* all = opendir("/proc/self/fd");
  while (all && readdir(all)) ++count;
  if (all) closedir(all);
  return count;
}

/* Leaves `count` numbers free below the limit. */
static int leave(int count, int* taken) {
  int last = dup(0);
  if (last < 0) return -1;
  *taken = last;
  struct rlimit few;
  if (getrlimit(RLIMIT_NOFILE, &few)) return -1;
  few.rlim_cur = (rlim_t)(last + 1 + count);
  return setrlimit(RLIMIT_NOFILE, &few);
}

int main(void) {
  struct ibv_device** list = ibv_get_device_list(NULL);
  if (!list || !list[0] || !(context = ibv_open_device(list[0]))) {
    perror("the device");
    return 2;
  }
  snprintf(guid_file, sizeof guid_file, "%s/node_guid", context->device->ibdev_path);
  struct rlimit before;
  if (getrlimit(RLIMIT_NOFILE, &before)) return 2;
  int wrong = 0;
  for (size_t i = 0; i < sizeof kCalls / sizeof kCalls[0]; ++i) {
    int refused = 0, result = -1, at_first = in_use();
    for (int count = 0; count < kMost && result; ++count) {
      int taken = -1;
      if (leave(count, &taken)) return 2;
      errno = 0;
      result = kCalls[i].call();
      int error = errno;
      if (setrlimit(RLIMIT_NOFILE, &before)) return 2;
      close(taken);
      if (!result) break;
      ++refused;
      if (result == -1 && error == EMFILE) continue;
      ++wrong;
      printf("wrong: %s with %d free descriptors: %d, %s\n", kCalls[i].name, count, result,
             strerror(error));
    }
    printf("%s: refused %d times, then %s\n", kCalls[i].name, refused,
           result ? "never right" : "right");
    wrong += result != 0;
    int lost = in_use() - at_first;
    if (lost) printf("wrong: %s lost %d descriptors\n", kCalls[i].name, lost);
    wrong += lost != 0;
  }
  printf("wrong: %d\n", wrong);
  return wrong != 0;
}
