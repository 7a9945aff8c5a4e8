// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The functions of libc about descriptors: the table follows them.
#include "host_abi/sockets/common/real_calls.h"
#include "host_abi/sockets/common/time64.h"
#include "host_abi/sockets/held.h"
#include "host_abi/sockets/rdma.h"
#include "host_abi/sockets/table.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdarg>
#include <cstdint>

namespace ib::host_abi::sockets {
namespace {

int duplicated(int original, int result) {
  if (result >= 0 && result != original && !in_vfork_child()) copy(original, result);
  return result;
}

// dup2() closes `target` first, unless the original is not open.
void about_to_replace(int original, int target) {
  if (original == target) return;
  const int error = errno;
  if (real::fcntl(original, F_GETFD) >= 0) forget(target);
  errno = error;
}

template <class Function>
int control(int fd, int command, void* argument, preload::Real<Function>& function) {
  if (command == F_DUPFD || command == F_DUPFD_CLOEXEC) {
    const NotWaiting call;
    return duplicated(fd, function(fd, command, argument));
  }
  if (command != F_SETFL && command != F_GETFL) return function(fd, command, argument);
  const Held socket(fd);
  if (!socket) return function(fd, command, argument);
  // The kernel's listener never blocks; its waits are ours.
  const bool listener = socket->state.load() == State::Listening && socket->tried.load();
  if (command == F_GETFL) {
    const int flags = function(fd, command, argument);
    return listener && flags >= 0 && !socket->nonblocking.load() ? flags & ~O_NONBLOCK : flags;
  }
  const auto flags = reinterpret_cast<std::intptr_t>(argument);
  // NOLINTNEXTLINE(performance-no-int-to-ptr): an argument of fcntl() is a number or a pointer
  void* const changed = reinterpret_cast<void*>(listener ? flags | O_NONBLOCK : flags);
  const int result = function(fd, command, changed);
  if (result == 0) socket->nonblocking.store((flags & O_NONBLOCK) != 0);
  return result;
}

void forget_all(unsigned first, unsigned last) {
  const NotWaiting call;
  const int end = last > INT_MAX ? INT_MAX : static_cast<int>(last);
  for (int fd = next_in_table(static_cast<int>(first)); fd >= 0 && fd <= end;
       fd = next_in_table(fd + 1)) {
    forget(fd);
  }
}

}  // namespace

extern "C" {

int sockets_close(int fd) IB_STANDS_FOR("close");
int sockets_close(int fd) {
  {
    const NotWaiting call;
    forget(fd);
  }
  return real::close(fd);
}

int sockets_close_range(unsigned first, unsigned last, int flags) IB_STANDS_FOR("close_range");
int sockets_close_range(unsigned first, unsigned last, int flags) {
  constexpr int kOnlyAtExec = 1 << 2;  // CLOSE_RANGE_CLOEXEC
  if ((flags & kOnlyAtExec) == 0 && first <= last && first <= INT_MAX) forget_all(first, last);
  return real::close_range(first, last, flags);
}

void sockets_closefrom(int first) IB_STANDS_FOR("closefrom");
void sockets_closefrom(int first) {
  forget_all(first < 0 ? 0u : static_cast<unsigned>(first), UINT_MAX);
  real::closefrom(first);
}

int sockets_dup(int fd) IB_STANDS_FOR("dup");
int sockets_dup(int fd) {
  const NotWaiting call;
  return duplicated(fd, real::dup(fd));
}

int sockets_dup2(int fd, int target) IB_STANDS_FOR("dup2");
int sockets_dup2(int fd, int target) {
  const NotWaiting call;
  about_to_replace(fd, target);
  return duplicated(fd, real::dup2(fd, target));
}

int sockets_dup3(int fd, int target, int flags) IB_STANDS_FOR("dup3");
int sockets_dup3(int fd, int target, int flags) {
  const NotWaiting call;
  about_to_replace(fd, target);
  return duplicated(fd, real::dup3(fd, target, flags));
}

int sockets_fcntl(int fd, int command, ...) IB_STANDS_FOR("fcntl");
int sockets_fcntl(int fd, int command, ...) {
  va_list rest;
  va_start(rest, command);
  void* argument = va_arg(rest, void*);
  va_end(rest);
  return control(fd, command, argument, real::fcntl);
}

int sockets_fcntl64(int fd, int command, ...) IB_STANDS_FOR("fcntl64");
int sockets_fcntl64(int fd, int command, ...) {
  va_list rest;
  va_start(rest, command);
  void* argument = va_arg(rest, void*);
  va_end(rest);
  return control(fd, command, argument, real::fcntl64);
}

#if __TIMESIZE == 32
int sockets_fcntl_time64(int fd, int command, ...) IB_STANDS_FOR("__fcntl_time64");
int sockets_fcntl_time64(int fd, int command, ...) {
  va_list rest;
  va_start(rest, command);
  void* argument = va_arg(rest, void*);
  va_end(rest);
  return control(fd, command, argument, real::fcntl_time64);
}
#endif

void sockets_exit_now(int status) IB_STANDS_FOR("_exit");
void sockets_exit_now(int status) {
  shut_down_all();
  preload::Real<void(int)> function{"_exit"};
  function(status);
  __builtin_unreachable();
}

}  // extern "C"
}  // namespace ib::host_abi::sockets
