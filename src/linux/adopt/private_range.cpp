// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "linux/adopt/private_range.h"

#include "base/address.h"
#include "linux/adopt/adopt_syscall.h"
#include "linux/process/client_handle.h"

#include <sys/ioctl.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace ib::os {
namespace {

// From <linux/fs.h> of Linux 6.11; Debian 12 has older headers.
struct ProcmapQuery {
  std::uint64_t size;
  std::uint64_t query_flags;
  std::uint64_t query_addr;
  std::uint64_t vma_start;
  std::uint64_t vma_end;
  std::uint64_t vma_flags;
  std::uint64_t vma_page_size;
  std::uint64_t vma_offset;
  std::uint64_t inode;
  std::uint32_t dev_major;
  std::uint32_t dev_minor;
  std::uint32_t vma_name_size;
  std::uint32_t build_id_size;
  std::uint64_t vma_name_addr;
  std::uint64_t build_id_addr;
};
static_assert(sizeof(ProcmapQuery) == 104);
constexpr unsigned long kProcmapQuery = _IOWR('f', 17, ProcmapQuery);
constexpr std::uint64_t kReadable = 1;
constexpr std::uint64_t kWritable = 2;
constexpr std::uint64_t kExecutable = 4;
constexpr std::uint64_t kShared = 8;
constexpr std::uint64_t kCoveringOrNext = 16;

// glibc makes a thread's stack with a guard of one page below it; larger gaps are ordinary.
constexpr std::uint64_t kLargestGuard = 65536;

// Takes a number off the front of `text`, and one separator after it.
std::uint64_t take_number(std::string_view& text, unsigned base) {
  std::uint64_t value = 0;
  std::size_t i = 0;
  for (; i < text.size(); ++i) {
    const char c = text[i];
    unsigned digit = 99;
    if (c >= '0' && c <= '9') digit = static_cast<unsigned>(c - '0');
    if (c >= 'a' && c <= 'f') digit = static_cast<unsigned>(c - 'a') + 10;
    if (digit >= base) break;
    value = value * base + digit;
  }
  text.remove_prefix(std::min(i + 1, text.size()));
  return value;
}

// "55d0c0000000-55d0c0021000 rw-p 00000000 00:00 0    [heap]"
Mapping parse_line(std::string_view line) {
  Mapping m;
  m.start = take_number(line, 16);
  m.end = take_number(line, 16);
  if (line.size() < 5) return Mapping{};
  m.readable = line[0] == 'r';
  m.writable = line[1] == 'w';
  m.executable = line[2] == 'x';
  m.shared = line[3] == 's';
  line.remove_prefix(5);
  m.offset = take_number(line, 16);
  m.device_major = static_cast<std::uint32_t>(take_number(line, 16));
  m.device_minor = static_cast<std::uint32_t>(take_number(line, 16));
  m.inode = take_number(line, 10);
  line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
  const std::size_t length = std::min(line.size(), m.name.size() - 1);
  std::copy_n(line.begin(), length, m.name.begin());
  return m;
}

bool has_private_content(const Mapping& m) {
  if (m.given_back()) return true;
  if (m.inode != 0) return false;
  const std::string_view name = m.name_view();
  return name.empty() || name == "[heap]" || name.starts_with("[anon:");
}

}  // namespace

MapsReader::MapsReader() : file_(own_descriptor(::open("/proc/self/maps", O_RDONLY | O_CLOEXEC))) {}

bool MapsReader::query(std::uint64_t address, Mapping& mapping, bool& supported) {
  ProcmapQuery q{};
  mapping = Mapping{};
  q.size = sizeof q;
  q.query_flags = kCoveringOrNext;
  q.query_addr = address;
  // A name that does not fit is an error, so this is larger than any path.
  std::array<char, 4096> name;
  q.vma_name_addr = address_of(name.data());
  q.vma_name_size = name.size();
  const long result =
      raw_syscall(SYS_ioctl, file_.get(), static_cast<long>(kProcmapQuery), to_long(&q));
  supported = result == 0 || result == -ENOENT;
  if (result != 0) return false;
  mapping.start = q.vma_start;
  mapping.end = q.vma_end;
  mapping.offset = q.vma_offset;
  mapping.inode = q.inode;
  mapping.device_major = q.dev_major;
  mapping.device_minor = q.dev_minor;
  mapping.readable = (q.vma_flags & kReadable) != 0;
  mapping.writable = (q.vma_flags & kWritable) != 0;
  mapping.executable = (q.vma_flags & kExecutable) != 0;
  mapping.shared = (q.vma_flags & kShared) != 0;
  const std::size_t length = std::min<std::size_t>(q.vma_name_size, mapping.name.size() - 1);
  std::copy_n(name.begin(), length, mapping.name.begin());
  return true;
}

bool MapsReader::search_text(std::uint64_t address, Mapping& mapping) {
  std::array<char, 4096 + 512> buffer;  // a line: less than 100 characters and a path
  std::size_t held = 0;
  if (::lseek(file_.get(), 0, SEEK_SET) != 0) return false;
  for (;;) {
    const long got = raw_syscall(SYS_read, file_.get(), to_long(buffer.data() + held),
                                 to_long(buffer.size() - held));
    if (got <= 0) return false;
    held += static_cast<std::size_t>(got);
    std::string_view text(buffer.data(), held);
    for (std::size_t eol = text.find('\n'); eol != std::string_view::npos; eol = text.find('\n')) {
      mapping = parse_line(text.substr(0, eol));
      if (mapping.end > address) return true;
      text.remove_prefix(eol + 1);
    }
    std::memmove(buffer.data(), text.data(), text.size());
    held = text.size();
    if (held == buffer.size()) return false;  // no line is that long
  }
}

bool MapsReader::find(std::uint64_t address, Mapping& mapping) {
  if (!valid()) return false;
  if (has_query_) {
    const bool found = query(address, mapping, has_query_);
    if (has_query_) return found;
  }
  return search_text(address, mapping);
}

Status check_private_range(MapsReader& maps, std::uint64_t start, std::uint64_t end,
                           std::uint64_t frame) {
  Mapping below;
  // The mapping just below decides whether the first mapping is a thread's stack.
  if (start != 0) (void)maps.find(start - 1, below);
  for (std::uint64_t at = start; at < end;) {
    Mapping m;
    if (!maps.find(at, m) || m.start > at) return Status::NotSupported;
    if (!m.readable || !m.writable || m.executable || m.shared) return Status::NotSupported;
    if (!has_private_content(m)) return Status::NotSupported;
    if (frame >= m.start && frame < m.end) return Status::NotSupported;
    if (m.start != 0 && below.end != m.start) (void)maps.find(m.start - 1, below);
    const bool guarded = below.end == m.start && !below.readable && !below.writable &&
                         below.end - below.start <= kLargestGuard;
    if (guarded) return Status::NotSupported;
    below = m;
    at = m.end;
  }
  return Status::Ok;
}

}  // namespace ib::os
