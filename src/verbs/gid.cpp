// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "verbs/gid.h"

#include <fmt/format.h>

namespace ib::verbs {
namespace {

constexpr std::size_t kGroups = 8;

std::uint16_t group(const Gid& gid, std::size_t i) {
  return static_cast<std::uint16_t>(gid[2 * i] << 8 | gid[2 * i + 1]);
}

// The longest run of two or more zero groups, the first of equal ones [RFC 5952 4.2].
struct Run {
  std::size_t start = kGroups;
  std::size_t length = 1;
};
Run zero_run(const Gid& gid) {
  Run best;
  for (std::size_t i = 0; i < kGroups; ++i) {
    std::size_t end = i;
    while (end < kGroups && group(gid, end) == 0) ++end;
    if (end - i > best.length) best = {i, end - i};
  }
  return best;
}

}  // namespace

std::string long_text(const Gid& gid) {
  std::string text;
  for (std::size_t i = 0; i < kGroups; ++i) {
    text += fmt::format("{}{:04x}", i == 0 ? "" : ":", group(gid, i));
  }
  return text;
}

std::string address_text(const Gid& gid) {
  if (is_ipv4(gid)) {
    return fmt::format("{}.{}.{}.{}", gid[kIpv4InGid], gid[kIpv4InGid + 1], gid[kIpv4InGid + 2],
                       gid[kIpv4InGid + 3]);
  }
  const Run zeros = zero_run(gid);
  std::string text;
  for (std::size_t i = 0; i < kGroups; ++i) {
    if (i == zeros.start) {
      text += "::";
      i += zeros.length - 1;
      continue;
    }
    const bool separate = !text.empty() && text.back() != ':';
    text += fmt::format("{}{:x}", separate ? ":" : "", group(gid, i));
  }
  return text;
}

}  // namespace ib::verbs
