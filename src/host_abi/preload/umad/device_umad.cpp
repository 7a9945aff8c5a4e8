// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// /dev/infiniband/umad0, umad1, ... and issm0, issm1, ... (docs/design/0026-umad-devices.md).
//
// The object is a connection to softibd, which is the open device: softibd sends it a message for
// each MAD, so it polls as the device would; what the program writes goes to softibd over it, most
// of it without an answer. softibd has all state; an answer comes over a socket that goes with its
// request, so neither is mistaken for a MAD, whichever process or thread reads.
#include "host_abi/preload/device_kinds.h"
#include "host_abi/preload/fd_table.h"
#include "host_abi/preload/remote.h"
#include "host_abi/preload/system_calls.h"
#include "host_abi/preload/umad/umad_read.h"
#include "host_abi/preload/umad/umad_request.h"

#include <rdma/ib_user_mad.h>
#include <sys/ioctl.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>

namespace ib::host_abi::preload {
namespace {

using namespace verbs::control;

DeviceKind::Number umad_number(unsigned unit) {
  return {kUmadMajor, unit};
}
DeviceKind::Number issm_number(unsigned unit) {
  return {kUmadMajor, kIssmFirstMinor + unit};
}

bool is_socket(const struct ::statx& now) {
  return S_ISSOCK(now.stx_mode);
}

ssize_t fail(int error) {
  errno = error;
  return -1;
}

std::uint32_t file_of(int fd) {
  return fds::find(fd).number >> kUmadUnitBits;
}

// --- open ---

int send_open(int socket, UmadKind kind, unsigned unit, int flags) {
  struct {
    RequestHeader header;
    OpenUmadIn in;
  } request{};
  static_assert(sizeof request == sizeof(RequestHeader) + sizeof(OpenUmadIn));
  request.header = {sizeof request, static_cast<std::uint32_t>(UmadCode::Open), 1, 0, 0};
  remote::copy_node(request.in.node);
  const char* program = program_invocation_short_name;
  const std::size_t length = std::min(std::strlen(program), request.in.program.size() - 1);
  std::memcpy(request.in.program.data(), program, length);
  request.in.unit = unit;
  request.in.kind = kind;
  if ((flags & O_NONBLOCK) != 0) request.in.flags = umad_open_flag::kDoNotWait;
  return sys::send(socket, &request, sizeof request) == sizeof request ? 0 : ENXIO;
}

// Has softibd make the connection an open device. Returns an error number. An issm device may be
// waited for without end, or until a signal comes.
int make_device(int socket, UmadKind kind, unsigned& unit, int flags) {
  const timeval no_limit{};
  if (const int error = send_open(socket, kind, unit, flags); error != 0) return error;
  const bool waits = kind == UmadKind::Issm && (flags & O_NONBLOCK) == 0;
  if (waits) sys::set_option(socket, SO_RCVTIMEO, &no_limit, sizeof no_limit);
  ReplyHeader answer{};
  iovec data{&answer, sizeof answer};
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  const ssize_t got = sys::receive(socket, &message, 0);
  if (got < 0 && errno == EINTR) return EINTR;
  if (got < static_cast<ssize_t>(sizeof answer)) return ENXIO;
  if (answer.status != 0) {
    return static_cast<Status>(answer.status) == Status::DeviceBusy ? EAGAIN : ENXIO;
  }
  unit |= (static_cast<std::uint32_t>(answer.information) & kUmadFileMask) << kUmadUnitBits;
  sys::set_option(socket, SO_RCVTIMEO, &no_limit, sizeof no_limit);
  sys::set_option(socket, SO_SNDTIMEO, &no_limit, sizeof no_limit);
  const bool is_set =
      (flags & O_NONBLOCK) == 0 || sys::fcntl(socket, F_SETFL, O_RDWR | O_NONBLOCK) == 0;
  return is_set ? 0 : ENXIO;
}

int open_file(UmadKind kind, unsigned& unit, int flags) {
  if (unit >= kMostUmads) {
    errno = ENXIO;
    return -1;
  }
  remote::Reply why;
  const int socket = remote::connect(why);
  if (socket < 0) {
    errno = why == remote::Reply::NoDescriptor ? EMFILE : ENXIO;
    return -1;
  }
  const int error = make_device(socket, kind, unit, flags);
  if (error == 0) return socket;
  sys::close(socket);
  errno = error;
  return -1;
}

int open_umad(unsigned& unit, int flags) {
  return open_file(UmadKind::Umad, unit, flags);
}
int open_issm(unsigned& unit, int flags) {
  return open_file(UmadKind::Issm, unit, flags);
}

// --- write ---

constexpr std::size_t kLongestClassHeader = 64;

// Whether softibd can have no objection to it, as far as this process has seen.
bool needs_no_answer(std::uint32_t file, const std::byte* bytes, std::size_t size) {
  UmadMirror* const mirror = umad_mirror();
  if (mirror == nullptr) return false;
  const std::size_t before = mirror->header_size(file);
  if (before == 0 || size < before + kLongestClassHeader || size > before + kUmadMadBytes) {
    return false;
  }
  ib_user_mad_hdr_old header;
  std::memcpy(&header, bytes, sizeof header);
  static_assert(sizeof header == kUmadHeader);
  if (header.grh_present != 0 || !mirror->has_agent(file, header.id)) return false;
  std::uint32_t tid = 0;
  std::memcpy(&tid, bytes + before + 12, sizeof tid);
  return mirror->may_send(file, tid, header.timeout_ms != 0);
}

int write_short(int fd, std::uint32_t file, const void* data, std::size_t size) {
  std::array<std::byte, kUmadMostShort> bytes;
  if (!copy_from_program(bytes.data(), data, size)) return EFAULT;
  if (needs_no_answer(file, bytes.data(), size)) return umad_send(fd, bytes.data(), size);
  UmadDone done;
  return umad_exchange(fd, file, UmadCode::Send, bytes.data(), size, -1, done);
}

int write_long(int fd, std::uint32_t file, const void* data, std::size_t size) {
  const int memory_file = sys::memory_file("softib-mad");
  if (memory_file < 0) return errno;
  int error = 0;
  for (std::size_t done = 0; done < size && error == 0;) {
    const ssize_t wrote =
        sys::write(memory_file, static_cast<const std::byte*>(data) + done, size - done);
    if (wrote < 0 && errno != EINTR) error = errno;
    if (wrote > 0) done += static_cast<std::size_t>(wrote);
  }
  UmadDone done;
  if (error == 0) {
    error = umad_exchange(fd, file, UmadCode::Send, nullptr, 0, memory_file, done);
  }
  sys::close(memory_file);
  return error;
}

ssize_t write_mad(int fd, const void* data, std::size_t size) {
  if (size < kUmadHeader + kUmadLeastWritten || size > kUmadMostWritten) return fail(EINVAL);
  return sys::leaving_errno([&] {
    const std::uint32_t file = file_of(fd);
    const int error = size <= kUmadMostShort ? write_short(fd, file, data, size)
                                             : write_long(fd, file, data, size);
    return error == 0 ? static_cast<ssize_t>(size) : fail(error);
  });
}

ssize_t read_mad(int fd, void* data, std::size_t size) {
  return sys::leaving_errno([&] { return umad_read(fd, file_of(fd), data, size); });
}

// --- ioctl ---

int exchange(int fd, UmadCode code, const void* input, std::size_t size, UmadDone& done) {
  const int error = umad_exchange(fd, file_of(fd), code, input, size, -1, done);
  return error == EIO ? EPIPE : error;  // as the kernel names a device that is gone
}

int enable_pkey(int fd) {
  UmadDone done;
  return exchange(fd, UmadCode::EnablePkey, nullptr, 0, done);
}

// Writes 4 bytes of a structure of the program's.
template <class Field>
bool put(Field* at, std::uint32_t value) {
  static_assert(sizeof(Field) == sizeof value);
  return copy_to_program(at, &value, sizeof value);
}

int register_agent(int fd, void* argument) {
  auto* const theirs = static_cast<ib_user_mad_reg_req*>(argument);
  ib_user_mad_reg_req in;
  if (!copy_from_program(&in, theirs, sizeof in)) return EFAULT;
  UmadDone done;
  const int error = exchange(fd, UmadCode::Register, &in, sizeof in, done);
  if (error != 0) return error;
  return put(&theirs->id, done.id) ? 0 : EFAULT;
}

int register_agent2(int fd, void* argument) {
  auto* const theirs = static_cast<ib_user_mad_reg_req2*>(argument);
  ib_user_mad_reg_req2 in;
  if (!copy_from_program(&in, theirs, sizeof in)) return EFAULT;
  UmadDone done{};
  const int error = exchange(fd, UmadCode::Register2, &in, sizeof in, done);
  if (error == EINVAL && done.flags != 0 && !put(&theirs->flags, done.flags)) return EFAULT;
  if (error != 0) return error;
  return put(&theirs->id, done.id) ? 0 : EFAULT;
}

int unregister_agent(int fd, const void* argument) {
  std::uint32_t id = 0;
  if (!copy_from_program(&id, argument, sizeof id)) return EFAULT;
  if (UmadMirror* mirror = umad_mirror()) mirror->forget_agent(file_of(fd), id);
  UmadDone done;
  return exchange(fd, UmadCode::Unregister, &id, sizeof id, done);
}

// The kernel executes these for every file; on a socket it would execute others, too.
bool is_general(unsigned long request) {
  return request == FIONBIO || request == FIOASYNC || request == FIOCLEX || request == FIONCLEX;
}

bool control_umad(int fd, unsigned long request, void* argument, int& result) {
  if (is_general(request)) return false;
  int error = ENOTTY;
  switch (static_cast<std::uint32_t>(request)) {
    case IB_USER_MAD_REGISTER_AGENT: error = register_agent(fd, argument); break;
    case IB_USER_MAD_UNREGISTER_AGENT: error = unregister_agent(fd, argument); break;
    case IB_USER_MAD_ENABLE_PKEY: error = enable_pkey(fd); break;
    case IB_USER_MAD_REGISTER_AGENT2: error = register_agent2(fd, argument); break;
    default: break;
  }
  result = error == 0 ? 0 : -1;
  if (error != 0) errno = error;
  return true;
}

// --- issm ---

ssize_t read_nothing(int, void*, std::size_t) {
  return fail(EINVAL);
}
ssize_t write_nothing(int, const void*, std::size_t) {
  return fail(EINVAL);
}
bool control_nothing(int, unsigned long request, void*, int& result) {
  if (is_general(request)) return false;
  errno = ENOTTY;
  result = -1;
  return true;
}

}  // namespace

constinit const DeviceKind kUmad{.name = "umad",
                                 .numbered = true,
                                 .mode = 0666,
                                 .number = umad_number,
                                 .unit_mask = kUmadUnitMask,
                                 .is_stream = true,
                                 .open = open_umad,
                                 .is_object = is_socket,
                                 .read = read_mad,
                                 .write = write_mad,
                                 .ioctl = control_umad};

constinit const DeviceKind kIssm{.name = "issm",
                                 .numbered = true,
                                 .mode = 0666,
                                 .number = issm_number,
                                 .unit_mask = kUmadUnitMask,
                                 .is_stream = true,
                                 .open = open_issm,
                                 .is_object = is_socket,
                                 .read = read_nothing,
                                 .write = write_nothing,
                                 .ioctl = control_nothing};

}  // namespace ib::host_abi::preload
