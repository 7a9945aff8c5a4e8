// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Words that pictures share.
#pragma once

#include "fabric/picture/picture.h"

#include <cstdint>
#include <string>

namespace ib::fabric {

// "1 switch", "3 switches".
std::string counted_text(std::uint64_t count, const char* one, const char* many);
// A sentence of the legend, which changes with the loads.
std::string hottest_text(const Picture& picture);
// Of counters in units of 4 bytes: "12.0 MiB".
std::string data_text(std::uint64_t words);

}  // namespace ib::fabric
