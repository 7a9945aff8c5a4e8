// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A cable and its ends in words, for `softib cable`.
#pragma once

#include "softib/pages/fabric_state.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace ib::softib {

// Of softibd's answer about a cable.
std::string cable_page(const Json& cable);

// "switch-1:3", "node0:1", "node0/softib0:1" or "node0/softib0/1".
struct CableEndText {
  std::string element;
  std::uint32_t port = 0;
};
std::optional<CableEndText> parse_cable_end(std::string_view text);

}  // namespace ib::softib
