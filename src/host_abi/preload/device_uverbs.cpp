// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// /dev/infiniband/uverbs0, uverbs1, ... and the completion channels made with them.
//
// The object is /dev/null, a genuine character device that any user may open. Like /dev/null, the
// kernel's uverbs device has no poll(): poll() and select() report it ready at any time, and epoll
// refuses it (EPERM). Neither can be mapped by us (ENODEV). Commands are answered here or by the
// provider, which has its own connection to softibd.
#include "host_abi/preload/device_kinds.h"
#include "host_abi/preload/fd_table.h"
#include "host_abi/preload/hooks.h"
#include "host_abi/preload/real.h"
#include "host_abi/preload/system_calls.h"

#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/rdma_user_ioctl_cmds.h>
#include <sys/eventfd.h>

#include <cstdint>
#include <cstring>

namespace ib::host_abi::preload {
namespace {

constinit Real<ssize_t(int, void*, std::size_t)> real_read{"read"};

constexpr DeviceKind::Number kNull{1, 3};

DeviceKind::Number number(unsigned) {
  return kNull;
}

int open_null(unsigned&, int flags) {
  return sys::open("/dev/null", flags);
}

bool is_null(const struct ::statx& now) {
  return S_ISCHR(now.stx_mode) && now.stx_rdev_major == kNull.major &&
         now.stx_rdev_minor == kNull.minor;
}

ssize_t fail(int error) {
  errno = error;
  return -1;
}

// The kernel's result for a device without read().
ssize_t read_nothing(int, void*, std::size_t) {
  return fail(EINVAL);
}

// ibv_create_comp_channel(): the only verb that libibverbs does not leave to its provider. The
// answer is written through the pointer in the request.
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
  if (!fds::mark(channel, {fds::Kind::Device, 0, &kCompletionChannel})) {
    sys::close(channel);
    return fail(EMFILE);
  }
  response->fd = static_cast<__u32>(channel);
  return static_cast<ssize_t>(size);
}

// A legacy verbs command. EOPNOTSUPP is the kernel's result for commands that it does not have.
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

// An imported context shares its importer's device; the events stay with the context that opened
// it, so this descriptor never becomes readable.
bool wants_events(const ib_uverbs_ioctl_hdr* header) {
  return header != nullptr && header->object_id == UVERBS_OBJECT_ASYNC_EVENT &&
         header->method_id == UVERBS_METHOD_ASYNC_EVENT_ALLOC;
}

// Everything gets ENOTTY, which makes libibverbs call the provider, except the one request to the
// descriptor itself: ibv_import_device() needs a descriptor for asynchronous events.
bool control(int, unsigned long request, void* argument, int& result) {
  if (request != RDMA_VERBS_IOCTL) return false;
  auto* header = static_cast<ib_uverbs_ioctl_hdr*>(argument);
  for (unsigned i = 0; wants_events(header) && i < header->num_attrs; ++i) {
    if (header->attrs[i].attr_id != UVERBS_ATTR_ASYNC_EVENT_ALLOC_FD_HANDLE) continue;
    const int events = ::eventfd(0, EFD_CLOEXEC);
    if (events >= 0) header->attrs[i].data_s64 = events;
    result = events < 0 ? -1 : 0;
    return true;
  }
  errno = ENOTTY;
  result = -1;
  return true;
}

// Calls libc's read(), since a thread that waits here may be cancelled.
ssize_t read_channel(int fd, void* data, std::size_t size) {
  for (;;) {
    const ssize_t result = real_read(fd, data, size);
    const auto rewrite = fds::hooks().read_comp_channel;
    const ssize_t kept = rewrite == nullptr ? result : rewrite(fd, data, size, result);
    if (kept != SOFTIB_PRELOAD_READ_AGAIN) return kept;
  }
}

void channel_closed(int fd) {
  const auto closed = fds::hooks().closed;
  if (closed != nullptr) closed(fd);
}

}  // namespace

constinit const DeviceKind kUverbs{.name = "uverbs",
                                   .numbered = true,
                                   .mode = 0666,
                                   .number = number,
                                   .is_stream = true,
                                   .open = open_null,
                                   .is_object = is_null,
                                   .read = read_nothing,
                                   .write = write_command,
                                   .ioctl = control};

// Made by the provider's hook. Only libibverbs holds the descriptor, and closes it with close(): no
// is_object, which would be a system call for each event.
constinit const DeviceKind kCompletionChannel{.read = read_channel, .closed = channel_closed};

extern "C" {

[[gnu::visibility("default")]] int softib_preload_is_uverbs(int fd) {
  return fds::device(fd) == &kUverbs ? 1 : 0;
}

}  // extern "C"

}  // namespace ib::host_abi::preload
