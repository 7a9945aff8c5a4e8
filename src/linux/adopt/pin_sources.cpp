// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "linux/adopt/pin_sources.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <charconv>
#include <memory>
#include <string_view>

namespace ib::os {
namespace {

// Relaxed: no order helps where a splice meets an adoption that has looked already.
constinit std::atomic<bool> spliced{false};

// Targets in /proc/self/fd of descriptors that pin memory for long.
constexpr std::array<std::string_view, 6> kPinners{"anon_inode:[io_uring]", "anon_inode:kvm-vm",
                                                   "/dev/vhost-",           "/dev/vfio/",
                                                   "anon_inode:[vfio",      "/dev/nvidia"};

// Files with content, sockets and pipes: those that pin memory are none of these.
bool is_ordinary(const struct ::statx& file) {
  return (S_ISREG(file.stx_mode) && file.stx_size != 0) || S_ISSOCK(file.stx_mode) ||
         S_ISFIFO(file.stx_mode);
}

bool pins(int directory, const char* name) {
  const std::string_view text(name);
  int descriptor = -1;
  if (std::from_chars(text.data(), text.data() + text.size(), descriptor).ec != std::errc()) {
    return false;  // "." and ".."
  }
  const int flags = ::fcntl(descriptor, F_GETFL);
  if (flags >= 0 && (flags & O_DIRECT) != 0) return true;
  // Most are none of these kinds: a process may have a thousand adopted ranges open.
  // By number: to ThreadSanitizer a look at a descriptor of the program's by fstat() is a race.
  struct ::statx file {};
  if (::syscall(SYS_statx, descriptor, "", AT_EMPTY_PATH, STATX_TYPE | STATX_SIZE, &file) == 0 &&
      is_ordinary(file)) {
    return false;
  }
  std::array<char, 64> target;
  const ssize_t length = ::readlinkat(directory, name, target.data(), target.size());
  if (length <= 0) return false;  // closed meanwhile
  const std::string_view link(target.data(), static_cast<std::size_t>(length));
  return std::any_of(kPinners.begin(), kPinners.end(),
                     [link](std::string_view pinner) { return link.starts_with(pinner); });
}

}  // namespace

bool may_pin_pages() {
  if (has_spliced_memory()) return true;
  const auto close = [](DIR* directory) { (void)::closedir(directory); };
  const std::unique_ptr<DIR, decltype(close)> directory(::opendir("/proc/self/fd"), close);
  if (!directory) return true;
  const int number = ::dirfd(directory.get());
  while (const dirent* entry = ::readdir(directory.get())) {
    if (pins(number, entry->d_name)) return true;
  }
  return false;
}

void note_vmsplice() {
  spliced.store(true, std::memory_order_relaxed);
}

bool has_spliced_memory() {
  return spliced.load(std::memory_order_relaxed);
}

}  // namespace ib::os
