// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "setup/fd.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/types.h>
#include <unistd.h>

#include <array>
#include <cerrno>

namespace ib::softib {

Fd make_fd(int fd) {
  return Fd{fd, [](int value) { ::close(value); }};
}

void hand_over(Fd& fd) {
  rlimit files{};
  ::getrlimit(RLIMIT_NOFILE, &files);
  // Below 1024, so that select() in a program that walks its descriptors still works.
  for (const rlim_t wanted : {rlim_t{1000}, rlim_t{200}, rlim_t{20}, rlim_t{3}}) {
    if (wanted >= files.rlim_cur) continue;
    const int high = ::fcntl(fd.get(), F_DUPFD, static_cast<int>(wanted));
    if (high < 0) continue;
    fd = make_fd(high);
    return;
  }
  ::fcntl(fd.get(), F_SETFD, 0);
}

std::string read_file(const std::string& path, std::size_t limit) {
  const Fd fd = make_fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  std::string text;
  if (!fd.valid()) return text;
  // read, not pread: files of /proc and /sys are read too.
  std::array<char, 4096> piece{};
  while (text.size() < limit) {
    const ssize_t n = ::read(fd.get(), piece.data(), piece.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    text.append(piece.data(), static_cast<std::size_t>(n));
  }
  return text;
}

std::string read_fd(const Fd& fd) {
  std::string text;
  std::array<char, 16384> piece{};
  for (;;) {
    const ssize_t n =
        ::pread(fd.get(), piece.data(), piece.size(), static_cast<off_t>(text.size()));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return text;
    text.append(piece.data(), static_cast<std::size_t>(n));
  }
}

std::string last_lines(const std::string& path, std::size_t lines, std::size_t from) {
  constexpr std::size_t kLongestLog = 64u << 20;
  std::string text = read_file(path, kLongestLog);
  if (from > text.size()) from = 0;  // the log was rotated
  text.erase(0, from);
  while (!text.empty() && text.back() == '\n') text.pop_back();
  if (text.empty()) return text;
  std::size_t start = text.size();
  for (std::size_t n = 0; n < lines; ++n) {
    const std::size_t before = text.rfind('\n', start == 0 ? 0 : start - 1);
    if (before == std::string::npos) {
      start = 0;
      break;
    }
    start = before;
  }
  if (start != 0) ++start;  // past the new line
  return text.substr(start) + "\n";
}

}  // namespace ib::softib
