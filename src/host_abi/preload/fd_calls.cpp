// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Calls on descriptors: close() and dup() keep the table right; read(), write() and ioctl() go to
// the kind of device if it is one of ours; socket() keeps libibverbs from querying the kernel for
// adapters.
//
// Opening, reading and closing files of ours is no cancellation point: libibverbs does so under a
// mutex of its own, and a thread that ended there would keep it.
#include "host_abi/preload/fd_table.h"
#include "host_abi/preload/hooks.h"
#include "host_abi/preload/own_descriptors.h"
#include "host_abi/preload/real.h"
#include "host_abi/preload/remote.h"
#include "host_abi/preload/system_calls.h"
#include "host_abi/preload/view.h"
#include "host_abi/preload/working_directory.h"
#include "linux/process/client_signals.h"

#include <linux/netlink.h>

#include <cstdarg>
#include <cstring>

namespace ib::host_abi::preload {
namespace {

constinit Real<int(int)> real_close{"close"};
constinit Real<int(int)> real_dup{"dup"};
constinit Real<int(int, int)> real_dup2{"dup2"};
constinit Real<int(int, int, int)> real_dup3{"dup3"};
constinit Real<int(int, int, ...)> real_fcntl{"fcntl"};
constinit Real<int(int, int, ...)> real_fcntl64{"fcntl64"};
constinit Real<ssize_t(int, void*, std::size_t)> real_read{"read"};
constinit Real<ssize_t(int, void*, std::size_t, std::size_t)> real_read_chk{"__read_chk"};
constinit Real<ssize_t(int, const void*, std::size_t)> real_write{"write"};
constinit Real<int(int, unsigned long, ...)> real_ioctl{"ioctl"};
constinit Real<int(int, int, int)> real_socket{"socket"};
#if __TIMESIZE == 32
constinit Real<int(int, int, ...)> real_fcntl_time64{"__fcntl_time64"};
constinit Real<int(int, unsigned long, ...)> real_ioctl_time64{"__ioctl_time64"};
#endif

// The `rdma` command of iproute2 queries the kernel, which does not have these HCAs. libibverbs
// queries it as well, and goes on without an answer.
void explain_to_rdma_tool() {
  static constexpr char kText[] =
      "softib: `rdma` asks the kernel, which does not have the HCAs of this virtual host; "
      "see `ibv_devinfo` or `softib status`\n";
  if (std::strcmp(program_invocation_short_name, "rdma") == 0) {
    static_cast<void>(sys::write(STDERR_FILENO, kText, sizeof kText - 1));
  }
}

int duplicated(int original, int result) {
  if (result >= 0) fds::copy(original, result);
  return result;
}

// dup2() closes `target` first, unless the original is not open. Returns false, with the error that
// it has for a number that just gets another file, if the number is softib's own.
bool about_to_replace(int original, int target) {
  if (original == target) return true;
  if (own::is_protected(target)) {
    errno = EBUSY;
    return false;
  }
  if (fds::find(target).kind == fds::Kind::None) return true;
  const sys::KeepErrno keep;
  if (sys::fcntl(original, F_GETFD, 0) >= 0) fds::forget(target);
  return true;
}

int control(int fd, int command, void* argument, Real<int(int, int, ...)>& real) {
  const int result = real(fd, command, argument);
  return command == F_DUPFD || command == F_DUPFD_CLOEXEC ? duplicated(fd, result) : result;
}

// `pwd`: the variable PWD, which may lead through links.
void inherit_directory(const char* pwd) {
  const sys::KeepErrno keep;
  const Place place = locate(AT_FDCWD, pwd);
  Path found;
  int result = 0;
  if (place.where == Where::Ours &&
      view::real_path(place, found, result) == view::Outcome::Handled && result == 0) {
    working_directory::inherit(found);
  }
}

int ioctl_with(int fd, unsigned long request, void* argument,
               Real<int(int, unsigned long, ...)>& real) {
  const DeviceKind* device = fds::device(fd);
  int result = 0;
  if (device != nullptr && device->ioctl != nullptr &&
      device->ioctl(fd, request, argument, result)) {
    return result;
  }
  return real(fd, request, argument);
}

}  // namespace

extern "C" {

int preload_close(int fd) IB_STANDS_FOR("close");
int preload_close(int fd) {
  if (own::is_protected(fd)) {
    errno = EBADF;
    return -1;
  }
  const bool is_ours = fds::find(fd).kind != fds::Kind::None;
  fds::forget(fd);
  return is_ours ? os::without_cancellation([fd] { return real_close(fd); }) : real_close(fd);
}

int preload_close_range(unsigned first, unsigned last, int flags) IB_STANDS_FOR("close_range");
int preload_close_range(unsigned first, unsigned last, int flags) {
  constexpr int kOnlyAtExec = 1 << 2;  // CLOSE_RANGE_CLOEXEC
  if ((flags & kOnlyAtExec) != 0 || first > last) return sys::close_range(first, last, flags);
  fds::forget_range(first, last);
  return own::close_others(first, last, flags);
}

void preload_closefrom(int first) IB_STANDS_FOR("closefrom");
void preload_closefrom(int first) {
  const unsigned from = first < 0 ? 0u : static_cast<unsigned>(first);
  const sys::KeepErrno keep;
  fds::forget_range(from, ~0u);
  static_cast<void>(own::close_others(from, ~0u, 0));
}

int preload_dup(int fd) IB_STANDS_FOR("dup");
int preload_dup(int fd) {
  return duplicated(fd, real_dup(fd));
}

int preload_dup2(int fd, int target) IB_STANDS_FOR("dup2");
int preload_dup2(int fd, int target) {
  if (!about_to_replace(fd, target)) return -1;
  return duplicated(fd, real_dup2(fd, target));
}

int preload_dup3(int fd, int target, int flags) IB_STANDS_FOR("dup3");
int preload_dup3(int fd, int target, int flags) {
  if (!about_to_replace(fd, target)) return -1;
  return duplicated(fd, real_dup3(fd, target, flags));
}

// fcntl() takes nothing, an int or a pointer: it is passed on as a whole register, as in libc.
int preload_fcntl(int fd, int command, ...) IB_STANDS_FOR("fcntl");
int preload_fcntl(int fd, int command, ...) {
  va_list arguments;
  va_start(arguments, command);
  void* argument = va_arg(arguments, void*);
  va_end(arguments);
  return control(fd, command, argument, real_fcntl);
}

int preload_fcntl64(int fd, int command, ...) IB_STANDS_FOR("fcntl64");
int preload_fcntl64(int fd, int command, ...) {
  va_list arguments;
  va_start(arguments, command);
  void* argument = va_arg(arguments, void*);
  va_end(arguments);
  return control(fd, command, argument, real_fcntl64);
}

ssize_t preload_read(int fd, void* data, std::size_t size) IB_STANDS_FOR("read");
ssize_t preload_read(int fd, void* data, std::size_t size) {
  const fds::Entry entry = fds::find(fd);
  if (entry.kind == fds::Kind::None) return real_read(fd, data, size);
  const DeviceKind* device = fds::device(fd, entry);
  if (device != nullptr && device->read != nullptr) return device->read(fd, data, size);
  if (const int error = view::reading_error(fd, entry); error != 0) {
    errno = error;
    return -1;
  }
  if (entry.kind != fds::Kind::File) return real_read(fd, data, size);
  return os::without_cancellation([=] { return real_read(fd, data, size); });
}

ssize_t preload_read_chk(int fd, void* data, std::size_t size, std::size_t room)
    IB_STANDS_FOR("__read_chk");
ssize_t preload_read_chk(int fd, void* data, std::size_t size, std::size_t room) {
  if (size > room) return real_read_chk(fd, data, size, room);  // which ends the program
  return preload_read(fd, data, size);
}

ssize_t preload_write(int fd, const void* data, std::size_t size) IB_STANDS_FOR("write");
ssize_t preload_write(int fd, const void* data, std::size_t size) {
  const DeviceKind* hint = fds::find(fd).device;
  ssize_t result = 0;
  if (hint != nullptr && hint->write_ahead != nullptr && hint->write_ahead(fd, data, size, result))
    return result;
  const DeviceKind* device = fds::device(fd);
  if (device != nullptr && device->write != nullptr) return device->write(fd, data, size);
  return real_write(fd, data, size);
}

int preload_ioctl(int fd, unsigned long request, ...) IB_STANDS_FOR("ioctl");
int preload_ioctl(int fd, unsigned long request, ...) {
  va_list list;
  va_start(list, request);
  void* argument = va_arg(list, void*);
  va_end(list);
  return ioctl_with(fd, request, argument, real_ioctl);
}

#if __TIMESIZE == 32
// Programs with a time_t of 64 bits call these.
int preload_fcntl_time64(int fd, int command, ...) IB_STANDS_FOR("__fcntl_time64");
int preload_fcntl_time64(int fd, int command, ...) {
  va_list arguments;
  va_start(arguments, command);
  void* argument = va_arg(arguments, void*);
  va_end(arguments);
  return control(fd, command, argument, real_fcntl_time64);
}

int preload_ioctl_time64(int fd, unsigned long request, ...) IB_STANDS_FOR("__ioctl_time64");
int preload_ioctl_time64(int fd, unsigned long request, ...) {
  va_list list;
  va_start(list, request);
  void* argument = va_arg(list, void*);
  va_end(list);
  return ioctl_with(fd, request, argument, real_ioctl_time64);
}
#endif

// A kernel with RDMA drivers would answer "no adapters", and libibverbs would not look into /sys.
int preload_socket(int domain, int type, int protocol) IB_STANDS_FOR("socket");
int preload_socket(int domain, int type, int protocol) {
  if (domain == AF_NETLINK && protocol == NETLINK_RDMA && remote::reachable()) {
    explain_to_rdma_tool();
    errno = EPROTONOSUPPORT;
    return -1;
  }
  return real_socket(domain, type, protocol);
}

[[gnu::visibility("default")]] int softib_preload_register(const softib_preload_hooks* hooks) {
  return fds::set_hooks(hooks);
}

[[gnu::visibility("default")]] void softib_preload_protect(int fd) {
  own::protect(fd);
}

[[gnu::visibility("default")]] void softib_preload_unprotect(int fd) {
  own::unprotect(fd);
}

// ELF constructors get the arguments of main(), so this reads the environment before the program
// can replace libc's getenv(), as bash does.
[[gnu::constructor]] void preload_start(int, char**, char** environment) {
  remote::read_environment(environment);
  remote::protect_connection_of_run();
  for (char** entry = environment; entry != nullptr && *entry != nullptr; ++entry) {
    if (std::strncmp(*entry, "PWD=/", 5) == 0) inherit_directory(*entry + 4);
  }
}

}  // extern "C"
}  // namespace ib::host_abi::preload
