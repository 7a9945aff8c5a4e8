// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Whether memory may be registered: an adapter's driver checks that by pinning the pages.
#pragma once

#include <cstdint>
#include <string>

namespace ib::os {

// Returns why [address, address + length), which does not wrap around, cannot be registered; empty
// if all of it is mapped, readable and, if `write`, writable. Touches no page (where /proc is
// missing: one at each end).
std::string why_not_registered(std::uint64_t address, std::uint64_t length, bool write);

}  // namespace ib::os
