// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The functions of libc about descriptors: the table follows them.
#include "host_abi/sockets/common/own_process.h"
#include "host_abi/sockets/common/real_calls.h"
#include "host_abi/sockets/common/stdio_streams.h"
#include "host_abi/sockets/common/time64.h"
#include "host_abi/streams/connections.h"
#include "host_abi/streams/epoll_records.h"
#include "host_abi/streams/inside.h"
#include "host_abi/streams/left_rung.h"
#include "host_abi/streams/set_waiters.h"
#include "host_abi/streams/table.h"

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdarg>

namespace ib::host_abi::stream_switch {
namespace {

namespace real = sockets::real;

bool is_followed(int fd) {
  return is_in_table(fd) || has_epoll_records(fd) || is_set(fd);
}

int duplicated(int original, int result) {
  if (result < 0 || result == original) return result;
  if (is_set(original)) {
    share(original);
    share(result);
  }
  if (!is_in_table(original) || sockets::in_vfork_child()) return result;
  settle_left(original);
  copy(original, result);
  if (result <= STDERR_FILENO && sockets::is_connection(result)) {
    const int error = errno;
    sockets::replace_standard_stream(result);
    errno = error;
  }
  return result;
}

// dup2() closes `target` first, unless the original is not open.
void about_to_replace(int original, int target) {
  if (original == target) return;
  const int error = errno;
  if (target <= STDERR_FILENO && is_in_table(original) && !sockets::in_vfork_child()) {
    sockets::flush_standard_stream(target);
  }
  if (!is_followed(target)) return;
  if (::syscall(SYS_fcntl, static_cast<long>(original), long{F_GETFD}) >= 0) about_to_close(target);
  errno = error;
}

template <class Function>
int control(int fd, int command, void* argument, preload::Real<Function>& function) {
  const int result = function(fd, command, argument);
  if (command == F_SETFD && result == 0)
    change_set_flags(fd, static_cast<int>(reinterpret_cast<std::intptr_t>(argument)));
  return command == F_DUPFD || command == F_DUPFD_CLOEXEC ? duplicated(fd, result) : result;
}

void about_to_close_all(unsigned first, unsigned last) {
  const int end = last > INT_MAX ? INT_MAX : static_cast<int>(last);
  for (int fd = next_in_table(static_cast<int>(first)); fd >= 0 && fd <= end;
       fd = next_in_table(fd + 1)) {
    about_to_close(fd);
  }
}

}  // namespace

extern "C" {

int streams_close(int fd) IB_STANDS_FOR("close");
int streams_close(int fd) {
  if (is_followed(fd)) about_to_close(fd);
  return real::close(fd);
}

int streams_close_range(unsigned first, unsigned last, int flags) IB_STANDS_FOR("close_range");
int streams_close_range(unsigned first, unsigned last, int flags) {
  constexpr int kOnlyAtExec = 1 << 2;  // CLOSE_RANGE_CLOEXEC
  if ((flags & kOnlyAtExec) == 0 && first <= last && first <= INT_MAX) {
    about_to_close_all(first, last);
  }
  return real::close_range(first, last, flags);
}

void streams_closefrom(int first) IB_STANDS_FOR("closefrom");
void streams_closefrom(int first) {
  about_to_close_all(first < 0 ? 0u : static_cast<unsigned>(first), UINT_MAX);
  real::closefrom(first);
}

int streams_dup(int fd) IB_STANDS_FOR("dup");
int streams_dup(int fd) {
  return duplicated(fd, real::dup(fd));
}

int streams_dup2(int fd, int target) IB_STANDS_FOR("dup2");
int streams_dup2(int fd, int target) {
  about_to_replace(fd, target);
  return duplicated(fd, real::dup2(fd, target));
}

int streams_dup3(int fd, int target, int flags) IB_STANDS_FOR("dup3");
int streams_dup3(int fd, int target, int flags) {
  about_to_replace(fd, target);
  return duplicated(fd, real::dup3(fd, target, flags));
}

int streams_fcntl(int fd, int command, ...) IB_STANDS_FOR("fcntl");
int streams_fcntl(int fd, int command, ...) {
  va_list rest;
  va_start(rest, command);
  void* argument = va_arg(rest, void*);
  va_end(rest);
  return control(fd, command, argument, real::fcntl);
}

int streams_fcntl64(int fd, int command, ...) IB_STANDS_FOR("fcntl64");
int streams_fcntl64(int fd, int command, ...) {
  va_list rest;
  va_start(rest, command);
  void* argument = va_arg(rest, void*);
  va_end(rest);
  return control(fd, command, argument, real::fcntl64);
}

#if __TIMESIZE == 32
int streams_fcntl_time64(int fd, int command, ...) IB_STANDS_FOR("__fcntl_time64");
int streams_fcntl_time64(int fd, int command, ...) {
  va_list rest;
  va_start(rest, command);
  void* argument = va_arg(rest, void*);
  va_end(rest);
  return control(fd, command, argument, real::fcntl_time64);
}
#endif

}  // extern "C"
}  // namespace ib::host_abi::stream_switch
