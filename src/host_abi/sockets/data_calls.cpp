// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The functions of libc that move bytes.
#include "host_abi/sockets/common/real_calls.h"
#include "host_abi/sockets/common/time64.h"
#include "host_abi/sockets/data.h"
#include "host_abi/sockets/held.h"
#include "host_abi/sockets/rdma.h"
#include "host_abi/sockets/switch.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>

namespace ib::host_abi::sockets {
namespace {

// The first part may wait; the others take what is there.
ssize_t receive_parts(int fd, Socket& socket, const iovec* parts, std::size_t count, int flags) {
  ssize_t total = 0;
  for (std::size_t i = 0; i < count; ++i) {
    if (parts[i].iov_len == 0) continue;
    const bool wait_for_all = (flags & MSG_WAITALL) != 0;
    const int how = total > 0 && !wait_for_all ? flags | MSG_DONTWAIT : flags;
    const ssize_t got = receive(fd, socket, parts[i].iov_base, parts[i].iov_len, how);
    if (got < 0) return total > 0 ? total : got;
    total += got;
    // A look at more than the first part would see its bytes again.
    if (static_cast<std::size_t>(got) < parts[i].iov_len || (flags & MSG_PEEK) != 0) break;
  }
  return total;
}

ssize_t transmit_parts(int fd, Socket& socket, const iovec* parts, std::size_t count, int flags) {
  std::array<char, 8192> gathered;
  ssize_t total = 0;
  std::size_t i = 0;
  while (i < count) {
    // Small parts become one message.
    std::size_t length = 0;
    const std::size_t first = i;
    while (i < count && parts[i].iov_len <= gathered.size() - length) {
      if (parts[i].iov_len > 0) {
        std::memcpy(&gathered[length], parts[i].iov_base, parts[i].iov_len);
      }
      length += parts[i++].iov_len;
    }
    const bool large = i == first;
    const void* buffer = large ? parts[i].iov_base : gathered.data();
    if (large) length = parts[i++].iov_len;
    const ssize_t sent = transmit(fd, socket, buffer, length, flags);
    if (sent < 0) return total > 0 ? total : sent;
    total += sent;
    if (static_cast<std::size_t>(sent) < length) break;
  }
  return total;
}

ssize_t receive_message(int fd, msghdr* message, int flags,
                        real::Real<ssize_t(int, msghdr*, int)>& real) {
  const HeldConnection socket(fd);
  if (!socket) return real(fd, message, flags);
  const ssize_t got = receive_parts(fd, *socket, message->msg_iov, message->msg_iovlen, flags);
  if (got >= 0) {
    message->msg_namelen = 0;
    message->msg_controllen = 0;
    message->msg_flags = 0;
  }
  return got;
}

ssize_t send_message(int fd, const msghdr* message, int flags,
                     real::Real<ssize_t(int, const msghdr*, int)>& real) {
  const HeldConnection socket(fd);
  if (!socket) return real(fd, message, flags);
  return transmit_parts(fd, *socket, message->msg_iov, message->msg_iovlen, flags);
}

// On the heap: programs have small stacks.
class FileBuffer {
 public:
  static constexpr std::size_t kSize = 65536;

  FileBuffer() : bytes_(static_cast<char*>(std::malloc(kSize))) {
    call_.enter(std::free, bytes_, Uncancelled::Kind::Part);
  }
  ~FileBuffer() { std::free(bytes_); }
  FileBuffer(const FileBuffer&) = delete;
  FileBuffer& operator=(const FileBuffer&) = delete;
  char* get() const { return bytes_; }  // nullptr: no memory

 private:
  char* bytes_;
  Uncancelled call_;
};

ssize_t send_file(int fd, Socket& socket, int file, off64_t* offset, std::size_t count) {
  const FileBuffer buffer;
  if (buffer.get() == nullptr) {
    errno = ENOMEM;
    return -1;
  }
  off64_t at = offset != nullptr ? *offset : ::lseek64(file, 0, SEEK_CUR);
  if (at < 0) {
    errno = EINVAL;
    return -1;
  }
  ssize_t total = 0;
  while (count > 0) {
    const ssize_t got = ::pread64(file, buffer.get(), std::min(count, FileBuffer::kSize), at);
    if (got <= 0) {
      if (got < 0 && total == 0) total = -1;
      break;
    }
    const ssize_t sent = transmit(fd, socket, buffer.get(), static_cast<std::size_t>(got), 0);
    if (sent < 0) {
      if (total == 0) total = -1;
      break;
    }
    total += sent;
    at += sent;
    count -= static_cast<std::size_t>(sent);
    if (sent < got) break;
  }
  const int error = errno;
  if (total > 0) {
    if (offset != nullptr) {
      *offset = at;
    } else {
      ::lseek64(file, at, SEEK_SET);
    }
  }
  errno = error;
  return total;
}

}  // namespace

extern "C" {

ssize_t sockets_read(int fd, void* buffer, std::size_t length) IB_STANDS_FOR("read");
ssize_t sockets_read(int fd, void* buffer, std::size_t length) {
  if (const HeldConnection socket(fd); socket) return receive(fd, *socket, buffer, length, 0);
  if (is_read_of_abort(__builtin_return_address(0))) {
    errno = EIO;
    return -1;
  }
  return real::read(fd, buffer, length);
}

// Of programs that are built with _FORTIFY_SOURCE.
[[noreturn]] void __chk_fail();
#define IB_CHECK_ROOM(length, room) \
  if ((length) > (room)) __chk_fail()

ssize_t sockets_read_chk(int fd, void* buffer, std::size_t length, std::size_t room)
    IB_STANDS_FOR("__read_chk");
ssize_t sockets_read_chk(int fd, void* buffer, std::size_t length, std::size_t room) {
  IB_CHECK_ROOM(length, room);
  return sockets_read(fd, buffer, length);
}

ssize_t sockets_write(int fd, const void* buffer, std::size_t length) IB_STANDS_FOR("write");
ssize_t sockets_write(int fd, const void* buffer, std::size_t length) {
  if (const HeldConnection socket(fd); socket) return transmit(fd, *socket, buffer, length, 0);
  ssize_t result = 0;
  if (is_handover(fd, buffer, length, result)) return result;
  return real::write(fd, buffer, length);
}

ssize_t sockets_readv(int fd, const iovec* parts, int count) IB_STANDS_FOR("readv");
ssize_t sockets_readv(int fd, const iovec* parts, int count) {
  const HeldConnection socket(fd);
  if (!socket || count < 0) return real::readv(fd, parts, count);
  return receive_parts(fd, *socket, parts, static_cast<std::size_t>(count), 0);
}

ssize_t sockets_writev(int fd, const iovec* parts, int count) IB_STANDS_FOR("writev");
ssize_t sockets_writev(int fd, const iovec* parts, int count) {
  const HeldConnection socket(fd);
  if (!socket || count < 0) return real::writev(fd, parts, count);
  return transmit_parts(fd, *socket, parts, static_cast<std::size_t>(count), 0);
}

ssize_t sockets_recvfrom(int fd, void* buffer, std::size_t length, int flags, sockaddr* address,
                         socklen_t* size) IB_STANDS_FOR("recvfrom");
ssize_t sockets_recvfrom(int fd, void* buffer, std::size_t length, int flags, sockaddr* address,
                         socklen_t* size) {
  if (const HeldConnection socket(fd); socket) {
    if (size != nullptr) *size = 0;  // as TCP
    return receive(fd, *socket, buffer, length, flags);
  }
  return real::recvfrom(fd, buffer, length, flags, address, size);
}

ssize_t sockets_recv(int fd, void* buffer, std::size_t length, int flags) IB_STANDS_FOR("recv");
ssize_t sockets_recv(int fd, void* buffer, std::size_t length, int flags) {
  if (const HeldConnection socket(fd); socket) return receive(fd, *socket, buffer, length, flags);
  return real::recv(fd, buffer, length, flags);
}

ssize_t sockets_recv_chk(int fd, void* buffer, std::size_t length, std::size_t room, int flags)
    IB_STANDS_FOR("__recv_chk");
ssize_t sockets_recv_chk(int fd, void* buffer, std::size_t length, std::size_t room, int flags) {
  IB_CHECK_ROOM(length, room);
  return sockets_recv(fd, buffer, length, flags);
}

ssize_t sockets_recvfrom_chk(int fd, void* buffer, std::size_t length, std::size_t room, int flags,
                             sockaddr* address, socklen_t* size) IB_STANDS_FOR("__recvfrom_chk");
// NOLINTNEXTLINE(readability-function-size): glibc's parameters
ssize_t sockets_recvfrom_chk(int fd, void* buffer, std::size_t length, std::size_t room, int flags,
                             sockaddr* address, socklen_t* size) {
  IB_CHECK_ROOM(length, room);
  return sockets_recvfrom(fd, buffer, length, flags, address, size);
}

ssize_t sockets_recvmsg(int fd, msghdr* message, int flags) IB_STANDS_FOR("recvmsg");
ssize_t sockets_recvmsg(int fd, msghdr* message, int flags) {
  return receive_message(fd, message, flags, real::recvmsg);
}

ssize_t sockets_send(int fd, const void* buffer, std::size_t length, int flags)
    IB_STANDS_FOR("send");
ssize_t sockets_send(int fd, const void* buffer, std::size_t length, int flags) {
  if (const HeldConnection socket(fd); socket) return transmit(fd, *socket, buffer, length, flags);
  return real::send(fd, buffer, length, flags);
}

ssize_t sockets_sendto(int fd, const void* buffer, std::size_t length, int flags,
                       const sockaddr* address, socklen_t size) IB_STANDS_FOR("sendto");
ssize_t sockets_sendto(int fd, const void* buffer, std::size_t length, int flags,
                       const sockaddr* address, socklen_t size) {
  if (const HeldConnection socket(fd); socket) return transmit(fd, *socket, buffer, length, flags);
  return real::sendto(fd, buffer, length, flags, address, size);
}

ssize_t sockets_sendmsg(int fd, const msghdr* message, int flags) IB_STANDS_FOR("sendmsg");
ssize_t sockets_sendmsg(int fd, const msghdr* message, int flags) {
  return send_message(fd, message, flags, real::sendmsg);
}

#if __TIMESIZE == 32
ssize_t sockets_recvmsg64(int fd, msghdr* message, int flags) IB_STANDS_FOR("__recvmsg64");
ssize_t sockets_recvmsg64(int fd, msghdr* message, int flags) {
  return receive_message(fd, message, flags, real::recvmsg64);
}

ssize_t sockets_sendmsg64(int fd, const msghdr* message, int flags) IB_STANDS_FOR("__sendmsg64");
ssize_t sockets_sendmsg64(int fd, const msghdr* message, int flags) {
  return send_message(fd, message, flags, real::sendmsg64);
}
#endif

ssize_t sockets_sendfile64(int fd, int file, off64_t* offset, std::size_t count)
    IB_STANDS_FOR("sendfile64");
ssize_t sockets_sendfile64(int fd, int file, off64_t* offset, std::size_t count) {
  if (const HeldConnection socket(fd); socket) return send_file(fd, *socket, file, offset, count);
  return real::sendfile64(fd, file, offset, count);
}

ssize_t sockets_sendfile(int fd, int file, off_t* offset, std::size_t count)
    IB_STANDS_FOR("sendfile");
ssize_t sockets_sendfile(int fd, int file, off_t* offset, std::size_t count) {
  if (!is_in_table(fd)) return real::sendfile(fd, file, offset, count);
  off64_t wide = offset != nullptr ? *offset : 0;
  const ssize_t sent = sockets_sendfile64(fd, file, offset != nullptr ? &wide : nullptr, count);
  if (offset != nullptr) *offset = static_cast<off_t>(wide);
  return sent;
}

// Programs that splice have another way for descriptors that cannot be spliced.
ssize_t sockets_splice(int in, off64_t* in_at, int out, off64_t* out_at, std::size_t length,
                       unsigned flags) IB_STANDS_FOR("splice");
ssize_t sockets_splice(int in, off64_t* in_at, int out, off64_t* out_at, std::size_t length,
                       unsigned flags) {
  if (HeldConnection(in) || HeldConnection(out)) {
    errno = EINVAL;
    return -1;
  }
  return real::splice(in, in_at, out, out_at, length, flags);
}

}  // extern "C"
}  // namespace ib::host_abi::sockets
