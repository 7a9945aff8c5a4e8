// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Components: what the bits of a request's component mask select [IBA1 15.2.1.2], for every
// attribute in one table, and the comparison of a record with a request by them.
#pragma once

#include "sa/records/field.h"

#include <cstddef>
#include <cstdint>
#include <span>

namespace ib::sa {

enum class Compare : std::uint8_t {
  Equal,
  Ignored,   // reserved bits, and what the attribute's own rules decide
  Selector,  // of the component that comes next
  Number,    // with the selector before it, by size; without it: equal
  Rate,      // the same for rates
};

// Bit i of a component mask is element i.
struct Component {
  Field field;
  Compare compare = Compare::Equal;
};

// Those of an attribute; empty: it has none.
std::span<const Component> components_of(std::uint16_t attribute);

// Returns whether the record has the components of the request that the mask selects. Bits that the
// attribute does not have select nothing. Both have the size of the attribute at least.
bool matches(std::uint16_t attribute, std::uint64_t mask, std::span<const std::byte> request,
             std::span<const std::byte> record);

// Copies the components that the mask selects, with their selectors.
void copy_components(std::uint16_t attribute, std::uint64_t mask, std::span<const std::byte> from,
                     std::span<std::byte> to);

}  // namespace ib::sa
