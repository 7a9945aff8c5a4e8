// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Calls on descriptors: close() and dup() keep the table right, read() and write() carry the
// completion channels of verbs, socket() keeps libibverbs from asking the kernel for adapters.
#include "host_abi/preload/fd_table.h"
#include "host_abi/preload/real.h"
#include "host_abi/preload/remote.h"
#include "host_abi/preload/system_calls.h"
#include "host_abi/preload/working_directory.h"

#include <linux/netlink.h>
#include <rdma/ib_user_verbs.h>

#include <cstdarg>
#include <cstdint>
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
constinit Real<int(int, int, int)> real_socket{"socket"};

// An open /dev/null, and we handed it out as a uverbs device?
bool is_uverbs(int fd) {
  if (fds::find(fd).kind != fds::Kind::Uverbs) return false;
  const sys::KeepErrno keep;
  struct ::statx now;
  return sys::stat(fd, "", AT_EMPTY_PATH, now) == 0 && S_ISCHR(now.stx_mode) &&
         now.stx_rdev_major == 1 && now.stx_rdev_minor == 3;
}

// The kernel, which the `rdma` command of iproute2 asks, has not heard of these HCAs. libibverbs
// asks as well, and goes on without an answer.
void explain_to_rdma_tool() {
  static constexpr char kText[] =
      "softib: `rdma` asks the kernel, which does not have the HCAs of this virtual host; "
      "see `ibv_devinfo` or `softib status`\n";
  if (std::strcmp(program_invocation_short_name, "rdma") == 0) {
    static_cast<void>(sys::write(STDERR_FILENO, kText, sizeof kText - 1));
  }
}

ssize_t fail(int error) {
  errno = error;
  return -1;
}

// ibv_create_comp_channel(): the only verb that libibverbs does not leave to its provider. Its
// request is answered through the pointer in it.
ssize_t create_channel(int fd, const char* request, std::size_t size) {
  ib_uverbs_create_comp_channel body;
  if (size < sizeof(ib_uverbs_cmd_hdr) + sizeof body) return fail(EINVAL);
  std::memcpy(&body, request + sizeof(ib_uverbs_cmd_hdr), sizeof body);
  // NOLINTNEXTLINE(performance-no-int-to-ptr): the ABI has pointers as 64-bit integers
  auto* response = reinterpret_cast<ib_uverbs_create_comp_channel_resp*>(
      static_cast<std::uintptr_t>(body.response));
  if (response == nullptr) return fail(EFAULT);
  const auto create = fds::hooks().create_comp_channel;
  if (create == nullptr) return fail(EOPNOTSUPP);
  const int channel = create(fd);
  if (channel < 0) return fail(-channel);
  if (!fds::mark(channel, {fds::Kind::Channel, 0})) {
    real_close(channel);
    return fail(EMFILE);
  }
  response->fd = static_cast<__u32>(channel);
  return static_cast<ssize_t>(size);
}

// A legacy verbs command. EOPNOTSUPP is what the kernel says of commands it does not have.
ssize_t write_command(int fd, const void* data, std::size_t size) {
  ib_uverbs_cmd_hdr header;
  if (size < sizeof header) return fail(EINVAL);
  std::memcpy(&header, data, sizeof header);
  const bool has_room =
      std::size_t{header.out_words} * 4 >= sizeof(ib_uverbs_create_comp_channel_resp);
  if (std::size_t{header.in_words} * 4 != size) return fail(EINVAL);
  if (header.command != IB_USER_VERBS_CMD_CREATE_COMP_CHANNEL) return fail(EOPNOTSUPP);
  if (!has_room) return fail(ENOSPC);
  return create_channel(fd, static_cast<const char*>(data), size);
}

ssize_t after_read(int fd, void* data, std::size_t size, ssize_t result) {
  if (fds::find(fd).kind != fds::Kind::Channel) return result;
  const auto rewrite = fds::hooks().read_comp_channel;
  return rewrite == nullptr ? result : rewrite(fd, data, size, result);
}

int duplicated(int original, int result) {
  if (result >= 0) fds::copy(original, result);
  return result;
}

// dup2() closes `target` first, unless there is nothing to duplicate.
void about_to_replace(int original, int target) {
  if (original == target || fds::find(target).kind == fds::Kind::None) return;
  const sys::KeepErrno keep;
  if (sys::fcntl(original, F_GETFD, 0) >= 0) fds::forget(target);
}

int control(int fd, int command, void* argument, Real<int(int, int, ...)>& real) {
  const int result = real(fd, command, argument);
  return command == F_DUPFD || command == F_DUPFD_CLOEXEC ? duplicated(fd, result) : result;
}

}  // namespace

extern "C" {

int preload_close(int fd) IB_STANDS_FOR("close");
int preload_close(int fd) {
  fds::forget(fd);
  return real_close(fd);
}

int preload_close_range(unsigned first, unsigned last, int flags) IB_STANDS_FOR("close_range");
int preload_close_range(unsigned first, unsigned last, int flags) {
  constexpr int kOnlyAtExec = 1 << 2;  // CLOSE_RANGE_CLOEXEC
  if ((flags & kOnlyAtExec) == 0 && first <= last) fds::forget_range(first, last);
  return sys::result(::syscall(SYS_close_range, first, last, flags));
}

void preload_closefrom(int first) IB_STANDS_FOR("closefrom");
void preload_closefrom(int first) {
  static constinit Real<void(int)> real_closefrom{"closefrom"};
  fds::forget_range(first < 0 ? 0u : static_cast<unsigned>(first), ~0u);
  real_closefrom(first);
}

int preload_dup(int fd) IB_STANDS_FOR("dup");
int preload_dup(int fd) {
  return duplicated(fd, real_dup(fd));
}

int preload_dup2(int fd, int target) IB_STANDS_FOR("dup2");
int preload_dup2(int fd, int target) {
  about_to_replace(fd, target);
  return duplicated(fd, real_dup2(fd, target));
}

int preload_dup3(int fd, int target, int flags) IB_STANDS_FOR("dup3");
int preload_dup3(int fd, int target, int flags) {
  about_to_replace(fd, target);
  return duplicated(fd, real_dup3(fd, target, flags));
}

// fcntl() takes nothing, an int or a pointer: passed on as a whole register, as libc itself does.
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
  return after_read(fd, data, size, real_read(fd, data, size));
}

ssize_t preload_read_chk(int fd, void* data, std::size_t size, std::size_t room)
    IB_STANDS_FOR("__read_chk");
ssize_t preload_read_chk(int fd, void* data, std::size_t size, std::size_t room) {
  return after_read(fd, data, size, real_read_chk(fd, data, size, room));
}

ssize_t preload_write(int fd, const void* data, std::size_t size) IB_STANDS_FOR("write");
ssize_t preload_write(int fd, const void* data, std::size_t size) {
  if (is_uverbs(fd)) return write_command(fd, data, size);
  return real_write(fd, data, size);
}

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

[[gnu::visibility("default")]] int softib_preload_is_uverbs(int fd) {
  return is_uverbs(fd) ? 1 : 0;
}

// ELF constructors get the arguments of main(), so the environment can be read before anything in
// the program (bash!) has put its own getenv() in front of libc's.
[[gnu::constructor]] void preload_start(int, char**, char** environment) {
  remote::read_environment(environment);
  for (char** entry = environment; entry != nullptr && *entry != nullptr; ++entry) {
    if (std::strncmp(*entry, "PWD=", 4) == 0) working_directory::inherit(*entry + 4);
  }
}

}  // extern "C"
}  // namespace ib::host_abi::preload
