// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The functions of libc that take or give times, on files of a virtual host and on others: wide_times FILE. Built
// with -D_TIME_BITS=64 on a 32-bit machine it calls those for a time_t of 64 bits, which have names and layouts of
// their own.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/rdma_user_ioctl_cmds.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

static const char kDevice[] = "/dev/infiniband/uverbs0";
static const char kDirectory[] = "/sys/class/infiniband/softib0";
static int broken;

#define CHECK(condition)                                                          \
  do {                                                                            \
    if (!(condition)) {                                                           \
      ++broken;                                                                   \
      printf("line %d: not true: %s (errno %d)\n", __LINE__, #condition, errno); \
    }                                                                             \
  } while (0)

struct guarded {
  struct stat found;
  unsigned char after[64];
};

static void clear(struct guarded* one) {
  memset(one, 0xa5, sizeof *one);
}

static void check_guard(const struct guarded* one) {
  for (size_t i = 0; i < sizeof one->after; ++i) CHECK(one->after[i] == 0xa5);
}

static void check_device(const struct guarded* one) {
  CHECK(S_ISCHR(one->found.st_mode));
  unsigned first = 0;
  unsigned second = 0;
  FILE* number = fopen("/sys/class/infiniband_verbs/uverbs0/dev", "r");
  CHECK(number != NULL && fscanf(number, "%u:%u", &first, &second) == 2 && fclose(number) == 0);
  CHECK(major(one->found.st_rdev) == first && minor(one->found.st_rdev) == second && one->found.st_size == 0);
  check_guard(one);
}

static void device(void) {
  struct guarded one;
  clear(&one);
  CHECK(stat(kDevice, &one.found) == 0);
  check_device(&one);
  clear(&one);
  CHECK(lstat(kDevice, &one.found) == 0);
  check_device(&one);
  clear(&one);
  CHECK(fstatat(AT_FDCWD, kDevice, &one.found, 0) == 0);
  check_device(&one);
  const int fd = open(kDevice, O_RDWR | O_CLOEXEC);
  CHECK(fd >= 0);
  const int copy = fcntl(fd, F_DUPFD_CLOEXEC, 100);
  CHECK(copy >= 100);
  clear(&one);
  CHECK(fstat(copy, &one.found) == 0);
  check_device(&one);
  // The one request that the device itself answers.
  struct {
    struct ib_uverbs_ioctl_hdr header;
    struct ib_uverbs_attr attribute;
  } request;
  memset(&request, 0, sizeof request);
  request.header.length = sizeof request;
  request.header.object_id = UVERBS_OBJECT_ASYNC_EVENT;
  request.header.method_id = UVERBS_METHOD_ASYNC_EVENT_ALLOC;
  request.header.num_attrs = 1;
  request.attribute.attr_id = UVERBS_ATTR_ASYNC_EVENT_ALLOC_FD_HANDLE;
  request.attribute.data_s64 = -1;
  CHECK(ioctl(copy, RDMA_VERBS_IOCTL, &request) == 0);
  CHECK(request.attribute.data_s64 >= 0 && fcntl((int)request.attribute.data_s64, F_GETFD) >= 0);
  CHECK(close(copy) == 0 && close(fd) == 0);
}

static void others(const char* path) {
  struct guarded one;
  clear(&one);
  CHECK(stat(kDirectory, &one.found) == 0 && S_ISDIR(one.found.st_mode));
  check_guard(&one);
  CHECK(stat("/sys/class/infiniband/nothing", &one.found) == -1 && errno == ENOENT);
  // 2100-01-01, which 32 bits do not hold.
  const time_t late = sizeof late == 8 ? (time_t)4102444800LL : 1000000000;
  const struct timespec times[2] = {{.tv_sec = late}, {.tv_sec = late, .tv_nsec = 7}};
  const int fd = open(path, O_RDWR | O_CREAT, 0600);
  CHECK(fd >= 0 && write(fd, "12345", 5) == 5 && futimens(fd, times) == 0);
  for (int way = 0; way < 4; ++way) {
    clear(&one);
    const int done = way == 0   ? fstat(fd, &one.found)
                     : way == 1 ? stat(path, &one.found)
                     : way == 2 ? lstat(path, &one.found)
                                : fstatat(fd, "", &one.found, AT_EMPTY_PATH);
    CHECK(done == 0 && one.found.st_size == 5 && S_ISREG(one.found.st_mode));
    CHECK(one.found.st_mtim.tv_sec == late && one.found.st_mtim.tv_nsec == 7);
    check_guard(&one);
  }
  CHECK(close(fd) == 0);
}

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  device();
  others(argv[1]);
  printf("time_t has %zu bytes\n%d rules broken\n", sizeof(time_t), broken);
  return broken != 0;
}
