// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Requests of a program's call to softibd, over the connection that is the device. Those with an
// answer bring a socket for it, as the connection itself brings MADs (umad_read.cpp).
#include "host_abi/preload/umad/umad_request.h"

#include "base/result.h"
#include "host_abi/preload/device_files/own_stack.h"
#include "host_abi/preload/device_files/process_page.h"
#include "host_abi/preload/system_calls.h"

#include <sys/socket.h>
#include <sys/uio.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

namespace ib::host_abi::preload {
namespace {

using namespace verbs::control;

constexpr std::time_t kTimeoutSeconds = 5;

// Where a filter of system calls forbids copies between processes, the program's memory is taken
// for what it should be.
template <class Copy>
bool copy_checked(void* to, const void* from, std::size_t size, const Copy& copy) {
  const sys::KeepErrno keep;
  const ssize_t got = copy();
  if (got < 0 && (errno == EPERM || errno == ENOSYS)) {
    std::memcpy(to, from, size);
    return true;
  }
  return got == static_cast<ssize_t>(size);
}

// A message for softibd whose descriptors go along. The kernel keeps it until softibd reads it; a
// descriptor that does not block is waited for all the same, as the device takes every write.
int send_all(int fd, msghdr& message) {
  const sys::KeepErrno keep;
  while (sys::send_message(fd, &message, MSG_NOSIGNAL) < 0) {
    if (errno == EFAULT) return EFAULT;
    if (errno == EAGAIN || errno == ENOBUFS || errno == ENOMEM || errno == ETOOMANYREFS) {
      pollfd one{fd, POLLOUT, 0};
      if (sys::poll_one(one) < 0 && errno != EINTR) return EIO;
      if ((one.revents & (POLLERR | POLLHUP | POLLNVAL)) != 0) return EIO;
    } else if (errno != EINTR) {
      return EIO;
    }
  }
  return 0;
}

RequestHeader header_of(UmadCode code, std::size_t size) {
  return {static_cast<std::uint32_t>(sizeof(RequestHeader) + size),
          static_cast<std::uint32_t>(code), 0, 0, 0};
}

int send_request(int fd, UmadCode code, const void* input, std::size_t size, const int* handles,
                 std::size_t count) {
  RequestHeader header = header_of(code, size);
  iovec parts[] = {{&header, sizeof header}, {const_cast<void*>(input), size}};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int) * kMaxFds)] = {};
  msghdr message{};
  message.msg_iov = parts;
  message.msg_iovlen = size == 0 ? 1 : 2;
  if (count != 0) {
    message.msg_control = control;
    message.msg_controllen = CMSG_SPACE(sizeof(int) * count);
    cmsghdr* part = CMSG_FIRSTHDR(&message);
    part->cmsg_level = SOL_SOCKET;
    part->cmsg_type = SCM_RIGHTS;
    part->cmsg_len = CMSG_LEN(sizeof(int) * count);
    std::memcpy(CMSG_DATA(part), handles, sizeof(int) * count);
  }
  return send_all(fd, message);
}

struct Answer {
  ReplyHeader header;
  UmadDone done;
};

}  // namespace

bool copy_from_program(void* to, const void* from, std::size_t size) {
  if (OwnStack(__builtin_frame_address(0)).has(from, size)) {
    std::memcpy(to, from, size);
    return true;
  }
  return copy_checked(to, from, size, [&] {
    return sys::read_own_memory(sys::process_id(), {to, size}, {const_cast<void*>(from), size});
  });
}

bool copy_to_program(void* to, const void* from, std::size_t size) {
  if (OwnStack(__builtin_frame_address(0)).has(to, size)) {
    std::memcpy(to, from, size);
    return true;
  }
  return copy_checked(to, from, size, [&] {
    return sys::write_own_memory(sys::process_id(), {to, size}, {const_cast<void*>(from), size});
  });
}

UmadMirror* umad_mirror() {
  return of_this_process<UmadMirror>();
}

int umad_exchange(int fd, std::uint32_t file, UmadCode code, const void* input, std::size_t size,
                  int memory_file, UmadDone& done) {
  const sys::KeepErrno keep;
  int ends[2];
  if (sys::socket_pair(SOCK_SEQPACKET | SOCK_CLOEXEC, ends) != 0) return errno;
  const timeval timeout{kTimeoutSeconds, 0};
  sys::set_option(ends[0], SO_RCVTIMEO, &timeout, sizeof timeout);
  const int handles[] = {ends[1], memory_file};
  int error = send_request(fd, code, input, size, handles, memory_file < 0 ? 1 : 2);
  sys::close(ends[1]);
  Answer answer{};
  if (error == 0) {
    iovec all{&answer, sizeof answer};
    const ssize_t got = sys::receive_parts(ends[0], &all, 1, 0);
    if (got != static_cast<ssize_t>(sizeof answer) || answer.header.status != 0) error = EIO;
  }
  sys::close(ends[0]);
  if (error != 0) return error;
  done = answer.done;
  if (UmadMirror* mirror = umad_mirror()) mirror->note(file, done.header_size, done.agents);
  return umad_error(done.status);
}

int umad_send(int fd, const void* mad, std::size_t size) {
  return send_request(fd, UmadCode::Send, mad, size, nullptr, 0);
}

void umad_put_back(int fd, const void* message, std::size_t size, int memory_file) {
  const std::size_t count = memory_file < 0 ? 0 : 1;
  static_cast<void>(send_request(fd, UmadCode::PutBack, message, size, &memory_file, count));
}

int umad_error(std::uint32_t status) {
  constexpr std::pair<Status, int> kErrors[] = {
      {Status::Ok, 0},
      {Status::InvalidParameter, EINVAL},
      {Status::LimitExceeded, ENOMEM},
      {Status::NotSupported, EPROTONOSUPPORT},
      {Status::DeviceBusy, EAGAIN},
  };
  for (const auto& [known, error] : kErrors) {
    if (static_cast<std::uint32_t>(known) == status) return error;
  }
  return EIO;
}

}  // namespace ib::host_abi::preload
