// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The functions of libc that move bytes between a socket and memory.
#include "host_abi/sockets/common/real_calls.h"
#include "host_abi/sockets/common/time64.h"
#include "host_abi/streams/data.h"
#include "host_abi/streams/inherited.h"
#include "host_abi/streams/inside.h"

#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>

namespace ib::host_abi::stream_switch {
namespace {

namespace real = sockets::real;

// The stream of a call of the program's; nothing: the call is the kernel's.
Ref stream_of(int fd) {
  if (!is_in_table(fd) || Inside::is()) return {};
  return find_stream(fd);
}

ssize_t receive_message(int fd, Socket& stream, msghdr* message, int flags) {
  const ssize_t got = receive(fd, stream, message->msg_iov, message->msg_iovlen, flags);
  if (got >= 0) {
    message->msg_namelen = 0;
    message->msg_controllen = 0;
    message->msg_flags = flags & MSG_OOB;
  }
  return got;
}

ssize_t receive_message(int fd, msghdr* message, int flags,
                        real::Real<ssize_t(int, msghdr*, int)>& real) {
  if (const Ref stream = stream_of(fd)) return receive_message(fd, *stream, message, flags);
  const ssize_t got = real(fd, message, flags);
  if (got >= 0 && message->msg_controllen > 0 && !Inside::is()) take_links_from(*message);
  return got;
}

ssize_t send_message(int fd, const msghdr* message, int flags,
                     real::Real<ssize_t(int, const msghdr*, int)>& real) {
  if (const Ref stream = stream_of(fd)) {
    return transmit(fd, *stream, message->msg_iov, message->msg_iovlen, flags);
  }
  if (message != nullptr && message->msg_controllen > 0 && !Inside::is()) note_links_in(*message);
  return real(fd, message, flags);
}

// As the kernel: an error after the first message is that of the next call.
int receive_messages(int fd, Socket& stream, mmsghdr* messages, unsigned count, int flags) {
  unsigned done = 0;
  while (done < count) {
    const int how = done > 0 && (flags & MSG_WAITFORONE) != 0 ? flags | MSG_DONTWAIT : flags;
    const ssize_t got = receive_message(fd, stream, &messages[done].msg_hdr, how & ~MSG_WAITFORONE);
    if (got < 0) return done > 0 ? static_cast<int>(done) : -1;
    messages[done++].msg_len = static_cast<unsigned>(got);
    if (got == 0) break;
  }
  return static_cast<int>(done);
}

int send_messages(int fd, Socket& stream, mmsghdr* messages, unsigned count, int flags) {
  unsigned done = 0;
  while (done < count) {
    const msghdr& one = messages[done].msg_hdr;
    const ssize_t sent = transmit(fd, stream, one.msg_iov, one.msg_iovlen, flags);
    if (sent < 0) return done > 0 ? static_cast<int>(done) : -1;
    messages[done++].msg_len = static_cast<unsigned>(sent);
  }
  return static_cast<int>(done);
}

}  // namespace

extern "C" {

ssize_t streams_read(int fd, void* buffer, std::size_t length) IB_STANDS_FOR("read");
ssize_t streams_read(int fd, void* buffer, std::size_t length) {
  if (const Ref stream = stream_of(fd)) {
    return length == 0 ? 0 : receive(fd, *stream, buffer, length, 0);
  }
  return real::read(fd, buffer, length);
}

// Of programs that are built with _FORTIFY_SOURCE.
// NOLINTNEXTLINE(bugprone-reserved-identifier,readability-identifier-naming): it is glibc's
[[noreturn]] void __chk_fail();
#define IB_CHECK_ROOM(length, room) \
  if ((length) > (room)) __chk_fail()

ssize_t streams_read_chk(int fd, void* buffer, std::size_t length, std::size_t room)
    IB_STANDS_FOR("__read_chk");
ssize_t streams_read_chk(int fd, void* buffer, std::size_t length, std::size_t room) {
  IB_CHECK_ROOM(length, room);
  return streams_read(fd, buffer, length);
}

ssize_t streams_write(int fd, const void* buffer, std::size_t length) IB_STANDS_FOR("write");
ssize_t streams_write(int fd, const void* buffer, std::size_t length) {
  if (const Ref stream = stream_of(fd)) return transmit(fd, *stream, buffer, length, 0);
  return real::write(fd, buffer, length);
}

ssize_t streams_readv(int fd, const iovec* parts, int count) IB_STANDS_FOR("readv");
ssize_t streams_readv(int fd, const iovec* parts, int count) {
  const Ref stream = stream_of(fd);
  if (!stream || count < 0) return real::readv(fd, parts, count);
  return receive(fd, *stream, parts, static_cast<std::size_t>(count), 0);
}

ssize_t streams_writev(int fd, const iovec* parts, int count) IB_STANDS_FOR("writev");
ssize_t streams_writev(int fd, const iovec* parts, int count) {
  const Ref stream = stream_of(fd);
  if (!stream || count < 0) return real::writev(fd, parts, count);
  return transmit(fd, *stream, parts, static_cast<std::size_t>(count), 0);
}

ssize_t streams_recvfrom(int fd, void* buffer, std::size_t length, int flags, sockaddr* address,
                         socklen_t* size) IB_STANDS_FOR("recvfrom");
ssize_t streams_recvfrom(int fd, void* buffer, std::size_t length, int flags, sockaddr* address,
                         socklen_t* size) {
  if (const Ref stream = stream_of(fd)) {
    const ssize_t got = receive(fd, *stream, buffer, length, flags);
    if (got >= 0 && size != nullptr) *size = 0;  // as TCP
    return got;
  }
  return real::recvfrom(fd, buffer, length, flags, address, size);
}

ssize_t streams_recv(int fd, void* buffer, std::size_t length, int flags) IB_STANDS_FOR("recv");
ssize_t streams_recv(int fd, void* buffer, std::size_t length, int flags) {
  if (const Ref stream = stream_of(fd)) return receive(fd, *stream, buffer, length, flags);
  return real::recv(fd, buffer, length, flags);
}

ssize_t streams_recv_chk(int fd, void* buffer, std::size_t length, std::size_t room, int flags)
    IB_STANDS_FOR("__recv_chk");
ssize_t streams_recv_chk(int fd, void* buffer, std::size_t length, std::size_t room, int flags) {
  IB_CHECK_ROOM(length, room);
  return streams_recv(fd, buffer, length, flags);
}

ssize_t streams_recvfrom_chk(int fd, void* buffer, std::size_t length, std::size_t room, int flags,
                             sockaddr* address, socklen_t* size) IB_STANDS_FOR("__recvfrom_chk");
// NOLINTNEXTLINE(readability-function-size): glibc's parameters
ssize_t streams_recvfrom_chk(int fd, void* buffer, std::size_t length, std::size_t room, int flags,
                             sockaddr* address, socklen_t* size) {
  IB_CHECK_ROOM(length, room);
  return streams_recvfrom(fd, buffer, length, flags, address, size);
}

ssize_t streams_recvmsg(int fd, msghdr* message, int flags) IB_STANDS_FOR("recvmsg");
ssize_t streams_recvmsg(int fd, msghdr* message, int flags) {
  return receive_message(fd, message, flags, real::recvmsg);
}

int streams_recvmmsg(int fd, mmsghdr* messages, unsigned count, int flags, timespec* timeout)
    IB_STANDS_FOR("recvmmsg");
int streams_recvmmsg(int fd, mmsghdr* messages, unsigned count, int flags, timespec* timeout) {
  if (const Ref stream = stream_of(fd)) {
    return receive_messages(fd, *stream, messages, count, flags);
  }
  return real::recvmmsg(fd, messages, count, flags, timeout);
}

ssize_t streams_send(int fd, const void* buffer, std::size_t length, int flags)
    IB_STANDS_FOR("send");
ssize_t streams_send(int fd, const void* buffer, std::size_t length, int flags) {
  if (const Ref stream = stream_of(fd)) return transmit(fd, *stream, buffer, length, flags);
  return real::send(fd, buffer, length, flags);
}

// The address of a destination is of no interest to TCP.
ssize_t streams_sendto(int fd, const void* buffer, std::size_t length, int flags,
                       const sockaddr* address, socklen_t size) IB_STANDS_FOR("sendto");
ssize_t streams_sendto(int fd, const void* buffer, std::size_t length, int flags,
                       const sockaddr* address, socklen_t size) {
  if (const Ref stream = stream_of(fd)) return transmit(fd, *stream, buffer, length, flags);
  return real::sendto(fd, buffer, length, flags, address, size);
}

ssize_t streams_sendmsg(int fd, const msghdr* message, int flags) IB_STANDS_FOR("sendmsg");
ssize_t streams_sendmsg(int fd, const msghdr* message, int flags) {
  return send_message(fd, message, flags, real::sendmsg);
}

int streams_sendmmsg(int fd, mmsghdr* messages, unsigned count, int flags)
    IB_STANDS_FOR("sendmmsg");
int streams_sendmmsg(int fd, mmsghdr* messages, unsigned count, int flags) {
  if (const Ref stream = stream_of(fd)) return send_messages(fd, *stream, messages, count, flags);
  return real::sendmmsg(fd, messages, count, flags);
}

#if __TIMESIZE == 32
ssize_t streams_recvmsg64(int fd, msghdr* message, int flags) IB_STANDS_FOR("__recvmsg64");
ssize_t streams_recvmsg64(int fd, msghdr* message, int flags) {
  return receive_message(fd, message, flags, real::recvmsg64);
}

ssize_t streams_sendmsg64(int fd, const msghdr* message, int flags) IB_STANDS_FOR("__sendmsg64");
ssize_t streams_sendmsg64(int fd, const msghdr* message, int flags) {
  return send_message(fd, message, flags, real::sendmsg64);
}

int streams_recvmmsg64(int fd, mmsghdr* messages, unsigned count, int flags,
                       sockets::Timespec64* timeout) IB_STANDS_FOR("__recvmmsg64");
int streams_recvmmsg64(int fd, mmsghdr* messages, unsigned count, int flags,
                       sockets::Timespec64* timeout) {
  if (const Ref stream = stream_of(fd)) {
    return receive_messages(fd, *stream, messages, count, flags);
  }
  return real::recvmmsg64(fd, messages, count, flags, timeout);
}

int streams_sendmmsg64(int fd, mmsghdr* messages, unsigned count, int flags)
    IB_STANDS_FOR("__sendmmsg64");
int streams_sendmmsg64(int fd, mmsghdr* messages, unsigned count, int flags) {
  if (const Ref stream = stream_of(fd)) return send_messages(fd, *stream, messages, count, flags);
  return real::sendmmsg64(fd, messages, count, flags);
}
#endif

}  // extern "C"
}  // namespace ib::host_abi::stream_switch
