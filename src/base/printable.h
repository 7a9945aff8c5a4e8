// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#pragma once

#include <span>
#include <string>

namespace ib {

// Text that a client sent, fit for logs and error texts: up to the first NUL, other control
// characters and what is not ASCII replaced by '?'.
inline std::string printable(std::span<const char> text) {
  std::string result;
  for (const char c : text) {
    if (c == '\0') break;
    result += c >= ' ' && c <= '~' ? c : '?';
  }
  return result;
}

}  // namespace ib
