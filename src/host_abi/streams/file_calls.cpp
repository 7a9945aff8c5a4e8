// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// sendfile() and splice(): bytes between a stream and a file or a pipe, through memory.
#include "host_abi/sockets/common/real_calls.h"
#include "host_abi/streams/data.h"
#include "host_abi/streams/inside.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>

namespace ib::host_abi::stream_switch {
namespace {

namespace real = sockets::real;

constexpr std::size_t kBuffer = 65536;

ssize_t failed(int error) {
  errno = error;
  return -1;
}

Ref stream_of(int fd) {
  if (!is_in_table(fd) || Inside::is()) return {};
  return find_stream(fd);
}

// Moves up to `count` bytes of the file from `at` on; says how many in `sent`, whatever the result.
ssize_t send_part(int fd, Socket& stream, int file, off64_t at, std::size_t count, char* buffer) {
  std::size_t total = 0;
  while (total < count) {
    const std::size_t wanted = std::min(count - total, kBuffer);
    const ssize_t got = ::pread64(file, buffer, wanted, at + static_cast<off64_t>(total));
    if (got <= 0) return got < 0 && total == 0 ? got : static_cast<ssize_t>(total);
    const ssize_t sent = transmit(fd, stream, buffer, static_cast<std::size_t>(got), 0);
    if (sent < 0) return total == 0 ? sent : static_cast<ssize_t>(total);
    total += static_cast<std::size_t>(sent);
    if (sent < got) break;
  }
  return static_cast<ssize_t>(total);
}

ssize_t send_file(int fd, Socket& stream, int file, off64_t* offset, std::size_t count) {
  const off64_t at = offset != nullptr ? *offset : ::lseek64(file, 0, SEEK_CUR);
  if (at < 0) return failed(EINVAL);
  auto* buffer = static_cast<char*>(std::malloc(kBuffer));  // programs have small stacks
  if (buffer == nullptr) return failed(ENOMEM);
  ssize_t total = 0;
  pthread_cleanup_push(std::free, buffer);
  total = send_part(fd, stream, file, at, count, buffer);
  pthread_cleanup_pop(0);
  const int error = errno;
  std::free(buffer);
  if (total > 0 && offset != nullptr) *offset = at + total;
  if (total > 0 && offset == nullptr) ::lseek64(file, at + total, SEEK_SET);
  errno = error;
  return total;
}

// The bytes leave the stream when they are in the pipe: there may not be room for all.
ssize_t splice_from(int fd, Socket& stream, int pipe, std::size_t length, unsigned flags,
                    char* buffer) {
  const int how = MSG_PEEK | ((flags & SPLICE_F_NONBLOCK) != 0 ? MSG_DONTWAIT : 0);
  const ssize_t seen = receive(fd, stream, buffer, std::min(length, kBuffer), how);
  if (seen <= 0) return seen;
  if ((flags & SPLICE_F_NONBLOCK) != 0) {
    pollfd room{pipe, POLLOUT, 0};
    if (real::poll(&room, nfds_t{1}, 0) <= 0) return failed(EAGAIN);
    // A pipe that is writable has room for this much.
    const ssize_t least = std::min<ssize_t>(seen, PIPE_BUF);
    const ssize_t put =
        real::write(pipe, static_cast<const void*>(buffer), static_cast<std::size_t>(least));
    if (put > 0) receive(fd, stream, buffer, static_cast<std::size_t>(put), MSG_DONTWAIT);
    return put;
  }
  const ssize_t put =
      real::write(pipe, static_cast<const void*>(buffer), static_cast<std::size_t>(seen));
  if (put > 0) receive(fd, stream, buffer, static_cast<std::size_t>(put), MSG_DONTWAIT);
  return put;
}

// Bytes that were taken out of the pipe have to be written, also to a stream that does not block.
ssize_t splice_to(int pipe, int fd, Socket& stream, std::size_t length, unsigned flags,
                  char* buffer) {
  pollfd room{fd, POLLOUT, 0};
  const bool waits = (flags & SPLICE_F_NONBLOCK) == 0;
  if (!waits && real::poll(&room, nfds_t{1}, 0) <= 0) return failed(EAGAIN);
  pollfd ready{pipe, POLLIN, 0};
  if (!waits && real::poll(&ready, nfds_t{1}, 0) <= 0) return failed(EAGAIN);
  const ssize_t got = real::read(pipe, static_cast<void*>(buffer), std::min(length, kBuffer));
  ssize_t done = 0;
  while (done < got) {
    const ssize_t sent =
        transmit(fd, stream, buffer + done, static_cast<std::size_t>(got - done), 0);
    if (sent >= 0) {
      done += sent;
    } else if (errno == EAGAIN || errno == EINTR) {
      real::poll(&room, nfds_t{1}, -1);
    } else {
      return done > 0 ? done : sent;
    }
  }
  return got;
}

ssize_t splice_stream(int in, Socket* source, int out, Socket* target, std::size_t length,
                      unsigned flags) {
  if (source != nullptr && target != nullptr) return failed(EINVAL);  // one must be a pipe
  if (length == 0) return 0;
  auto* buffer = static_cast<char*>(std::malloc(kBuffer));
  if (buffer == nullptr) return failed(ENOMEM);
  ssize_t result = 0;
  pthread_cleanup_push(std::free, buffer);
  result = source != nullptr ? splice_from(in, *source, out, length, flags, buffer)
                             : splice_to(in, out, *target, length, flags, buffer);
  pthread_cleanup_pop(0);
  const int error = errno;
  std::free(buffer);
  errno = error;
  return result;
}

}  // namespace

extern "C" {

ssize_t streams_sendfile64(int fd, int file, off64_t* offset, std::size_t count)
    IB_STANDS_FOR("sendfile64");
ssize_t streams_sendfile64(int fd, int file, off64_t* offset, std::size_t count) {
  if (const Ref stream = stream_of(fd)) return send_file(fd, *stream, file, offset, count);
  return real::sendfile64(fd, file, offset, count);
}

ssize_t streams_sendfile(int fd, int file, off_t* offset, std::size_t count)
    IB_STANDS_FOR("sendfile");
ssize_t streams_sendfile(int fd, int file, off_t* offset, std::size_t count) {
  if (!is_in_table(fd)) return real::sendfile(fd, file, offset, count);
  off64_t wide = offset != nullptr ? *offset : 0;
  const ssize_t sent = streams_sendfile64(fd, file, offset != nullptr ? &wide : nullptr, count);
  if (offset != nullptr) *offset = static_cast<off_t>(wide);
  return sent;
}

ssize_t streams_splice(int in, off64_t* in_at, int out, off64_t* out_at, std::size_t length,
                       unsigned flags) IB_STANDS_FOR("splice");
ssize_t streams_splice(int in, off64_t* in_at, int out, off64_t* out_at, std::size_t length,
                       unsigned flags) {
  const Ref source = stream_of(in);
  const Ref target = stream_of(out);
  if (!source && !target) return real::splice(in, in_at, out, out_at, length, flags);
  if (in_at != nullptr || out_at != nullptr) return failed(ESPIPE);
  return splice_stream(in, source ? &*source : nullptr, out, target ? &*target : nullptr, length,
                       flags);
}

}  // extern "C"
}  // namespace ib::host_abi::stream_switch
