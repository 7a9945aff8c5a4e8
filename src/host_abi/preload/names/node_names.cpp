// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "host_abi/preload/names/node_names.h"

#include <netinet/in.h>

#include <cstring>

namespace ib::host_abi::preload {
namespace {

constexpr std::size_t kLongestName = 63;

bool is_letter_or_digit(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

bool is_of(const char* line, std::size_t length, int family) {
  if (family != AF_INET && family != AF_INET6) return true;
  const bool is_ipv6 = std::memchr(line, ':', length) != nullptr;
  return is_ipv6 == (family == AF_INET6);
}

}  // namespace

bool can_be_node(const char* name) {
  bool is_address = true;
  std::size_t length = 0;
  for (; name[length] != '\0'; ++length) {
    const char c = name[length];
    if (length == kLongestName || (!is_letter_or_digit(c) && c != '_' && c != '-' && c != '.')) {
      return false;
    }
    if ((c < '0' || c > '9') && c != '.') is_address = false;
  }
  return length > 0 && !is_address;
}

bool pick_address(const char* text, std::size_t length, int family, char (&out)[kAddressSize]) {
  bool found = false;
  const char* const end = text + length;
  while (text < end) {
    const auto* stop =
        static_cast<const char*>(std::memchr(text, '\n', static_cast<std::size_t>(end - text)));
    const std::size_t size = static_cast<std::size_t>((stop != nullptr ? stop : end) - text);
    const bool fits = is_of(text, size, family);
    if (size > 0 && size < kAddressSize && (fits || !found)) {
      std::memcpy(out, text, size);
      out[size] = '\0';
      found = true;
      if (fits) return true;
    }
    text += size + 1;
  }
  return found;
}

}  // namespace ib::host_abi::preload
