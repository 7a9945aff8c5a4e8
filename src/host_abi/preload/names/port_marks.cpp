// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "host_abi/preload/names/port_marks.h"

#include <cstring>

namespace ib::host_abi::preload {
namespace {

constexpr char kBeginning[] = "softib/port/";
constexpr unsigned kHexDigits = 16;

char* write_number(char* at, std::uint64_t value, unsigned base, unsigned least_digits) {
  char reversed[20];
  unsigned count = 0;
  for (; value != 0 || count < least_digits; value /= base) {
    reversed[count++] = "0123456789abcdef"[value % base];
  }
  while (count > 0) *at++ = reversed[--count];
  return at;
}

char* write_port(std::uint16_t port, char* at) {
  std::memcpy(at, kBeginning, sizeof kBeginning - 1);
  at = write_number(at + sizeof kBeginning - 1, port, 10, 1);
  *at++ = '/';
  return at;
}

char* write_fabric(std::uint64_t fabric, char* at) {
  at = write_number(at, fabric, 16, kHexDigits);
  *at++ = '/';
  return at;
}

}  // namespace

std::size_t write_mark(std::uint16_t port, std::uint64_t fabric, int pid, char (&out)[kMarkSize]) {
  char* end = write_fabric(fabric, write_port(port, out));
  end = write_number(end, static_cast<std::uint64_t>(pid), 10, 1);
  return static_cast<std::size_t>(end - out);
}

MarkSearch::MarkSearch(std::uint16_t port, std::uint64_t fabric) {
  char* const end = write_port(port, own_mark_);
  port_length_ = static_cast<std::size_t>(end - own_mark_);
  own_length_ = static_cast<std::size_t>(write_fabric(fabric, end) - own_mark_);
}

void MarkSearch::read(const char* part, std::size_t length) {
  for (std::size_t i = 0; i < length; ++i) {
    if (part[i] == '\n') {
      on_line();
      line_length_ = 0;
    } else if (line_length_ < sizeof line_) {
      line_[line_length_++] = part[i];
    }
  }
}

// The path is the last word; an abstract one begins with '@'.
void MarkSearch::on_line() {
  const auto* const at = static_cast<const char*>(std::memchr(line_, '@', line_length_));
  if (at == nullptr) return;
  const char* const mark = at + 1;
  const auto length = static_cast<std::size_t>(line_ + line_length_ - mark);
  if (length < own_length_ || std::memcmp(mark, own_mark_, port_length_) != 0) return;
  (std::memcmp(mark, own_mark_, own_length_) == 0 ? own_ : other_) = true;
}

}  // namespace ib::host_abi::preload
