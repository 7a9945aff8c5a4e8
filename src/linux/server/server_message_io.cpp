// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "linux/server/server_message_io.h"

#include "base/assert.h"
#include "linux/process/client_handle.h"
#include "linux/received_descriptors.h"

#include <linux/sockios.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace ib::os {
namespace {

constexpr std::size_t kMaxDescriptors = 2;

struct alignas(cmsghdr) ControlBuffer {
  std::array<char, CMSG_SPACE(kMaxDescriptors * sizeof(int))> bytes{};
};

}  // namespace

Transfer receive_message(int socket, std::span<std::byte> buffer, ServerMessage& message) {
  ControlBuffer control;
  iovec data{buffer.data(), buffer.size()};
  msghdr header{};
  header.msg_iov = &data;
  header.msg_iovlen = 1;
  header.msg_control = control.bytes.data();
  header.msg_controllen = control.bytes.size();
  ssize_t length = -1;
  do {
    length = ::recvmsg(socket, &header, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  } while (length < 0 && errno == EINTR);
  if (length < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return Transfer::WouldBlock;
  // ECONNRESET and the like: it has gone without reading our answers.
  if (length < 0) return Transfer::Ended;

  std::size_t taken = 0;
  take_descriptors(header, [&](int descriptor) {
    // The kernel closes those that find no room in the buffer.
    IB_ASSERT(taken < message.handles.size());
    message.handles[taken++] = own_descriptor(descriptor);
  });
  // Only now: an empty message may bring descriptors, and they are ours then.
  if (length == 0) return Transfer::Ended;
  if ((header.msg_flags & MSG_CTRUNC) != 0) message.handles_lost = true;
  message.truncated = (header.msg_flags & MSG_TRUNC) != 0;
  message.bytes = buffer.first(static_cast<std::size_t>(length));
  return Transfer::Done;
}

Transfer send_message(int socket, std::span<const std::byte> bytes,
                      const std::array<NativeHandle, 2>& handles) {
  std::array<int, kMaxDescriptors> descriptors{};
  std::size_t count = 0;
  for (const NativeHandle& handle : handles) {
    if (handle.valid()) descriptors[count++] = handle.get();
  }
  ControlBuffer control;
  iovec data{const_cast<std::byte*>(bytes.data()), bytes.size()};  // sendmsg does not write to it
  msghdr header{};
  header.msg_iov = &data;
  header.msg_iovlen = 1;
  if (count > 0) {
    header.msg_control = control.bytes.data();
    header.msg_controllen = CMSG_SPACE(count * sizeof(int));
    cmsghdr* part = CMSG_FIRSTHDR(&header);
    part->cmsg_level = SOL_SOCKET;
    part->cmsg_type = SCM_RIGHTS;
    part->cmsg_len = CMSG_LEN(count * sizeof(int));
    std::memcpy(CMSG_DATA(part), descriptors.data(), count * sizeof(int));
  }
  ssize_t length = -1;
  do {
    length = ::sendmsg(socket, &header, MSG_DONTWAIT | MSG_NOSIGNAL);
  } while (length < 0 && errno == EINTR);
  if (length >= 0) return Transfer::Done;
  return errno == EAGAIN || errno == EWOULDBLOCK ? Transfer::WouldBlock : Transfer::Ended;
}

bool has_unread_messages(int socket) {
  int bytes = 0;
  return ::ioctl(socket, SIOCOUTQ, &bytes) == 0 && bytes > 0;
}

PeerProcess peer_of(int socket) {
  ucred credentials{};
  socklen_t length = sizeof(credentials);
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &credentials, &length) != 0) {
    return {0, static_cast<std::uint32_t>(-1)};  // nobody's uid
  }
  return {static_cast<std::uint32_t>(credentials.pid), credentials.uid};
}

}  // namespace ib::os
