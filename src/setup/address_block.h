// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The block of 127.0.0.0/8 that a fabric has for its nodes. It follows from the user and the name
// of the fabric, so that it is the same one on every start, unless another fabric of the machine
// has it: then the next one that is free. So an address is of one fabric only, and programs of two
// fabrics do not meet over TCP.
#pragma once

#include "fabric/addresses.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>

namespace ib::softib {

// 127.0.0.0/8 is claimed in units of 8192 addresses.
inline constexpr unsigned kUnitBits = 13;
inline constexpr std::uint32_t kUnits = 1u << (24 - kUnitBits);
// The first address of a unit.
constexpr std::uint32_t unit_address(std::uint32_t unit) {
  return 127u << 24 | unit << kUnitBits;
}

// The block of a fabric of so many nodes that an address is in.
fabric::AddressBlock block_of(std::uint32_t address, std::size_t nodes);

// Claims `count` units from `first` on, all or none. Returns false if one of them has an owner.
using ClaimUnits = std::function<bool(std::uint32_t first, std::uint32_t count)>;

// Returns nothing if there is no block left that is large enough.
std::optional<fabric::AddressBlock> choose_block(std::uint32_t uid, std::string_view fabric,
                                                 std::size_t nodes, const ClaimUnits& claim);

}  // namespace ib::softib
