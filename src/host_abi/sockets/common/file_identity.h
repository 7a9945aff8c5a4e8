// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Numbers that the switch keeps may be closed without libc (a system call, io_uring) and mean
// another file afterwards. So each is kept with the file that it meant (linux/descriptor_table.h),
// and compared before something is done by its number.
#pragma once

#include "linux/descriptor_table.h"

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <utility>
#if defined(__x86_64__) || defined(__i386__)
#include <x86intrin.h>
#endif

namespace ib::host_abi::sockets {

// The processor's clock; 0 where it is too slow to tell.
inline std::uint64_t ticks() {
#if defined(__x86_64__) || defined(__i386__)
  return __rdtsc();
#else
  return 0;
#endif
}

// The time of the quickest look of still_means() so far. A system call costs a tenth of a
// microsecond on some machines, and one on others.
inline constinit std::atomic<std::uint64_t> quickest_look{UINT64_MAX};

// Returns whether `fd` still means the file whose word was `file`. A sandbox may forbid the look:
// then each open number counts as that file. Leaves errno alone.
inline bool still_means(int fd, std::uint64_t file) {
  const std::uint64_t start = ticks();
  const std::uint64_t now = os::file_word(fd);
  if (now != 0 && file != 0) {
    const std::uint64_t taken = ticks() - start;
    if (taken < quickest_look.load(std::memory_order_relaxed))
      quickest_look.store(taken, std::memory_order_relaxed);
    return now == file;
  }
  const int error = errno;
  const bool is_open = ::syscall(SYS_fcntl, static_cast<long>(fd), long{F_GETFD}) >= 0;
  errno = error;
  return is_open;
}

// The number that a thread has used last, and when. To get another file there, dup2() takes a
// system call, and others take two: a use that follows in half the time of a look needs none. That
// is one of a loop which reads or writes.
class LastUse {
 public:
  bool was_just_now(int fd, std::uint64_t now) const {
    const std::uint64_t look = quickest_look.load(std::memory_order_relaxed);
    return fd == fd_ && now != 0 && look != UINT64_MAX && now - ended_ < look / 2;
  }
  void end(int fd, std::uint64_t now) {
    fd_ = fd;
    ended_ = now;
  }

 private:
  int fd_ = -1;
  std::uint64_t ended_ = 0;
};

// A descriptor of the switch's own, at a number where programs do not look.
class OwnDescriptor {
 public:
  OwnDescriptor() = default;
  // Takes over `fd`, which may be -1.
  explicit OwnDescriptor(int fd) {
    if (fd < 0) return;
    const int high = os::duplicate_high(fd);
    if (high >= 0) ::syscall(SYS_close, static_cast<long>(fd));
    fd_ = high >= 0 ? high : fd;
    file_ = os::file_word(fd_);
  }
  OwnDescriptor(OwnDescriptor&& other) noexcept
      : fd_(std::exchange(other.fd_, -1)), file_(other.file_) {}
  OwnDescriptor& operator=(OwnDescriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    std::swap(file_, other.file_);
    return *this;
  }
  OwnDescriptor(const OwnDescriptor&) = delete;
  OwnDescriptor& operator=(const OwnDescriptor&) = delete;
  ~OwnDescriptor() {
    if (is_intact()) ::syscall(SYS_close, static_cast<long>(fd_));
  }

  int get() const { return fd_; }
  // Returns false if there is none, or the program has closed it.
  bool is_intact() const { return fd_ >= 0 && still_means(fd_, file_); }

 private:
  int fd_ = -1;
  std::uint64_t file_ = 0;
};

}  // namespace ib::host_abi::sockets
