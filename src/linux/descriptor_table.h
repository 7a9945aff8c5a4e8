// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Descriptors that a library keeps in a program for longer than a call. A program may close all
// numbers that are not its own (closefrom(), the loop of a daemon) and open files, which have these
// numbers then. So each number is remembered with the file that it means.
//
// Lock-free and without a constructor: for signal handlers and children of fork().
#pragma once

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdint>

namespace ib::os {

// Names the file behind a descriptor: device and inode in a word. 0: it is not open. Leaves errno
// alone.
inline std::uint64_t file_word(int fd) {
  const int before = errno;
  struct ::statx now;
  const long result = ::syscall(SYS_statx, static_cast<long>(fd), "",
                                static_cast<long>(AT_EMPTY_PATH), long{STATX_INO}, &now);
  errno = before;
  if (result != 0) return 0;
  constexpr std::uint64_t kSpread = 0x9e3779b97f4a7c15;  // odd: no two devices become the same
  const std::uint64_t device = std::uint64_t{now.stx_dev_major} << 32 | now.stx_dev_minor;
  const std::uint64_t word = now.stx_ino ^ (device + 1) * kSpread;
  return word != 0 ? word : 1;
}

// Where numbers begin that programs do not look for: the first if the limit allows it, else the
// second. Below 1024, where select() has its end.
inline constexpr std::array<int, 2> kHighNumbers{1000, 200};

// A descriptor of the same open file, close-on-exec, at the next free high number, or -1.
inline int duplicate_high(int fd) {
  for (const int lowest : kHighNumbers) {
    const long made = ::syscall(SYS_fcntl, static_cast<long>(fd), long{F_DUPFD_CLOEXEC},
                                static_cast<long>(lowest));
    if (made >= 0) return static_cast<int>(made);
  }
  return -1;
}

class DescriptorTable {
 public:
  static constexpr int kLimit = 1 << 16;

  // Returns false if the number is too big for the table. `salt`: entries of another salt are no
  // entries.
  bool add(int fd, std::uint64_t salt = 0) {
    if (!has_place(fd)) return false;
    words_[place(fd)].store(file_word(fd) ^ salt, std::memory_order_release);
    int seen = highest_.load(std::memory_order_relaxed);
    while (seen < fd && !highest_.compare_exchange_weak(seen, fd)) continue;
    return true;
  }
  void remove(int fd) {
    if (has_place(fd)) words_[place(fd)].store(0, std::memory_order_release);
  }
  // There is an entry, of whatever file and salt.
  bool knows(int fd) const { return has_place(fd) && word(fd) != 0; }
  // It is the file that was added.
  bool has(int fd, std::uint64_t salt = 0) const {
    return knows(fd) && word(fd) == (file_word(fd) ^ salt);
  }
  // No number above it was ever added; -1: none was. Relaxed: a thread has a number from one that
  // has seen it added.
  int highest() const { return highest_.load(std::memory_order_relaxed); }

 private:
  static bool has_place(int fd) { return fd >= 0 && fd < kLimit; }
  static std::size_t place(int fd) { return static_cast<std::size_t>(fd); }
  std::uint64_t word(int fd) const { return words_[place(fd)].load(std::memory_order_acquire); }

  // Pages without an entry stay zero pages.
  std::array<std::atomic<std::uint64_t>, kLimit> words_{};
  std::atomic<int> highest_{-1};
};

}  // namespace ib::os
