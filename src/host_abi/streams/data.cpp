// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The loops of one call that reads or writes: attempts at the end of the stream (streams/end.h),
// sleeps between them (waiting.h), and the results that TCP has for what they say.
#include "host_abi/streams/data.h"

#include "host_abi/sockets/common/real_calls.h"
#include "host_abi/streams/epoll_records.h"
#include "host_abi/streams/fabric.h"
#include "host_abi/streams/inside.h"
#include "host_abi/streams/left_rung.h"
#include "host_abi/streams/own_link.h"
#include "host_abi/streams/sandbox.h"
#include "host_abi/streams/waiting.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <optional>

namespace ib::host_abi::stream_switch {
namespace {

namespace real = sockets::real;
using streams::Moved;
using streams::Verdict;

constexpr std::size_t kPartsAtOnce = 32;
constexpr std::size_t kDiscardedAtOnce = 4096;
constexpr int kAgainMs = 1;

ssize_t failed(int error) {
  errno = error;
  return -1;
}

ssize_t broken_pipe(int flags) {
  if ((flags & MSG_NOSIGNAL) == 0) ::raise(SIGPIPE);
  return failed(EPIPE);
}

bool blocks(int fd, const Socket& stream, int flags) {
  if ((flags & MSG_DONTWAIT) != 0) return false;
  if (is_in_sandbox()) return !stream.is_nonblocking.load(std::memory_order_relaxed);
  return (::syscall(SYS_fcntl, static_cast<long>(fd), long{F_GETFL}) & O_NONBLOCK) == 0;
}

std::size_t length_of(const iovec* parts, std::size_t count) {
  std::size_t length = 0;
  for (std::size_t i = 0; i < count; ++i) length += parts[i].iov_len;
  return length;
}

// The parts of a call behind the bytes that it has moved already, some at a time.
template <class Part>
class Cursor {
 public:
  Cursor(const iovec* parts, std::size_t count) : next_(parts), end_(parts + count) {}

  std::span<const Part> rest() {
    std::size_t used = 0;
    std::size_t skipped = skipped_;
    for (const iovec* one = next_; one != end_ && used < kPartsAtOnce; ++one) {
      if (one->iov_len > skipped) {
        room_[used].at = static_cast<std::byte*>(one->iov_base) + skipped;
        room_[used++].length = one->iov_len - skipped;
      }
      skipped = 0;
    }
    return std::span(room_).first(used);
  }
  void advance(std::size_t bytes) {
    skipped_ += bytes;
    while (next_ != end_ && skipped_ >= next_->iov_len) skipped_ -= (next_++)->iov_len;
  }

 private:
  const iovec* next_;
  const iovec* end_;
  std::size_t skipped_ = 0;  // of *next_
  std::array<Part, kPartsAtOnce> room_{};
};

// One attempt to read. MSG_TRUNC: the bytes go nowhere.
Moved attempt_read(streams::End& end, int fd, std::span<const streams::Part> parts,
                   streams::End::ReadHow how, bool discards) {
  const Inside inside;
  OwnLink link(fd);
  if (!discards) return end.read(link, parts, how);
  std::array<std::byte, kDiscardedAtOnce> nowhere;
  const streams::Part part{nowhere.data(), std::min(nowhere.size(), parts.front().length)};
  return end.read(link, std::span(&part, 1), how);
}

Moved attempt_write(streams::End& end, int fd, std::span<const streams::ConstPart> parts,
                    bool urgent) {
  const Inside inside;
  OwnLink link(fd);
  return end.write(link, parts, urgent);
}

// Of the verdicts with which a read ends that has moved nothing.
ssize_t result_of(Verdict verdict) {
  switch (verdict) {
    case Verdict::Done:
    case Verdict::EndOfStream: return 0;
    case Verdict::WouldBlock:
    case Verdict::WantsRing: return failed(EAGAIN);
    case Verdict::Reset:
    case Verdict::Gone: return failed(ECONNRESET);
    case Verdict::BrokenPipe: return failed(EPIPE);
    case Verdict::NoUrgent: return failed(EINVAL);
  }
  return failed(EIO);
}

// recv() without room waits until there is something all the same.
ssize_t receive_nothing(int fd, Socket& stream, streams::End& end, int flags) {
  TimeLimit limit(fd, POLLIN);
  settle_left(fd);
  while (true) {
    pollfd entry{fd, POLLIN, 0};
    if (real::poll(&entry, nfds_t{1}, 0) > 0) return 0;
    if (!blocks(fd, stream, flags)) return failed(EAGAIN);
    if (const int error = wait_for(fd, stream, end, POLLIN, limit); error != 0) {
      return failed(error);
    }
  }
}

// The state of a read: one call of the program's.
struct Reading {
  int fd;
  Socket& stream;
  streams::End& end;
  int flags;
  std::size_t wanted;
  std::size_t done = 0;
  bool has_left = false;   // it counts as left rung (left_rung.h)
  bool left_rung = false;  // it is

  bool wants_all() const { return (flags & MSG_WAITALL) != 0; }
  bool peeks() const { return (flags & MSG_PEEK) != 0; }
  // Before each attempt: a wait may have settled it.
  bool leaves_rung() {
    constexpr int kOthers = MSG_PEEK | MSG_OOB;
    if ((flags & kOthers) != 0 || !may_leave_rung(fd, stream, end)) return false;
    return has_left = true;
  }
};

// A look at more than there is, with MSG_WAITALL: the link is readable all the time.
bool looks_again(const Reading& reading, TimeLimit& limit) {
  if (!reading.wants_all() || !blocks(reading.fd, reading.stream, reading.flags) || limit.is_over())
    return false;
  return real::poll(nullptr, nfds_t{0}, kAgainMs) == 0;
}

ssize_t read_parts(Reading& reading, Cursor<streams::Part>& cursor) {
  streams::End::ReadHow how;
  how.peek = reading.peeks();
  how.urgent = (reading.flags & MSG_OOB) != 0;
  how.with_urgent = reading.stream.has_urgent_inline.load(std::memory_order_relaxed);
  TimeLimit limit(reading.fd, POLLIN);
  while (true) {
    how.leaves_rung = reading.leaves_rung();
    const auto parts = cursor.rest();
    const std::size_t tried = streams::length_of(parts);
    const Moved moved = attempt_read(reading.end, reading.fd, parts, how,
                                     (reading.flags & MSG_TRUNC) != 0 && !how.urgent);
    reading.left_rung = moved.left_rung;
    if (moved.verdict == Verdict::Done) {
      if (how.peek && moved.bytes < reading.wanted && looks_again(reading, limit)) continue;
      reading.done += moved.bytes;
      cursor.advance(moved.bytes);
      if (reading.done == reading.wanted || how.peek || how.urgent) break;
      if (!reading.wants_all() && moved.bytes < tried) break;  // that is all there was
      continue;
    }
    const bool waits = moved.verdict == Verdict::WouldBlock && !how.urgent &&
                       (reading.done == 0 || reading.wants_all()) &&
                       blocks(reading.fd, reading.stream, reading.flags);
    if (!waits) {
      // The link may be readable until a port is up again: a program that looks should not spin.
      if (moved.verdict == Verdict::WouldBlock && reading.end.is_stuck()) {
        real::poll(nullptr, nfds_t{0}, kAgainMs);
      }
      if (reading.done == 0) return result_of(moved.verdict);
      break;
    }
    if (const int error = wait_for(reading.fd, reading.stream, reading.end, POLLIN, limit);
        error != 0) {
      if (reading.done == 0) return failed(error);
      break;
    }
  }
  return static_cast<ssize_t>(reading.done);
}

ssize_t end_write(Verdict verdict, int flags) {
  switch (verdict) {
    case Verdict::Done: return 0;
    case Verdict::WouldBlock:
    case Verdict::WantsRing:
    case Verdict::NoUrgent: return failed(EAGAIN);
    case Verdict::Reset:
    case Verdict::Gone: return failed(ECONNRESET);
    case Verdict::EndOfStream:
    case Verdict::BrokenPipe: return broken_pipe(flags);
  }
  return failed(EIO);
}

}  // namespace

ssize_t receive(int fd, Socket& stream, const iovec* parts, std::size_t count, int flags) {
  if ((flags & MSG_ERRQUEUE) != 0) return failed(EAGAIN);
  streams::End* const end = end_of(stream);
  if (end == nullptr) return failed(ECONNRESET);
  const std::size_t wanted = length_of(parts, count);
  if (wanted == 0) return receive_nothing(fd, stream, *end, flags);
  if ((flags & MSG_TRUNC) != 0 && (flags & MSG_PEEK) != 0) {
    // Nothing is copied, only counted.
    const Inside inside;
    OwnLink link(fd);
    const std::uint64_t waiting = end->readable_bytes(link);
    if (waiting > 0) return static_cast<ssize_t>(std::min<std::uint64_t>(waiting, wanted));
  }
  Reading reading{fd, stream, *end, flags, wanted};
  Cursor<streams::Part> cursor(parts, count);
  const int before = errno;
  const ssize_t result = read_parts(reading, cursor);
  if (reading.has_left) note_read(fd, stream, reading.left_rung);
  if (result >= 0) errno = before;  // a wait may have been interrupted
  if (end->shared().wants_edges.load(std::memory_order_relaxed) != 0 && end->has_news()) {
    make_edges(fd);
  }
  note_use(fd);
  return result;
}

ssize_t transmit(int fd, Socket& stream, const iovec* parts, std::size_t count, int flags) {
  streams::End* const end = end_of(stream);
  if (end == nullptr) return failed(ECONNRESET);
  if ((flags & MSG_ZEROCOPY) != 0) return failed(EOPNOTSUPP);
  const std::size_t wanted = length_of(parts, count);
  std::size_t done = 0;
  const int before = errno;
  Cursor<streams::ConstPart> cursor(parts, count);
  TimeLimit limit(fd, POLLOUT);
  while (done < wanted) {
    const auto some = cursor.rest();
    // The last byte of the whole call is the urgent one.
    const bool is_last = streams::length_of(some) == wanted - done;
    const Moved moved = attempt_write(*end, fd, some, is_last && (flags & MSG_OOB) != 0);
    done += moved.bytes;
    cursor.advance(moved.bytes);
    if (moved.verdict == Verdict::WantsRing) grow(*end);
    if (moved.verdict == Verdict::Done || moved.verdict == Verdict::WantsRing) continue;
    if (moved.verdict != Verdict::WouldBlock || !blocks(fd, stream, flags)) {
      note_if_stuck(*end);
      if (done > 0) break;
      return end_write(moved.verdict, flags);
    }
    if (const int error = wait_for(fd, stream, *end, POLLOUT, limit); error != 0) {
      if (done > 0) break;
      return failed(error);
    }
  }
  note_if_stuck(*end);
  note_use(fd);
  errno = before;
  return static_cast<ssize_t>(done);
}

ssize_t receive(int fd, Socket& stream, void* buffer, std::size_t length, int flags) {
  const iovec part{buffer, length};
  return receive(fd, stream, &part, 1, flags);
}

ssize_t transmit(int fd, Socket& stream, const void* buffer, std::size_t length, int flags) {
  const iovec part{const_cast<void*>(buffer), length};
  return transmit(fd, stream, &part, 1, flags);
}

}  // namespace ib::host_abi::stream_switch
