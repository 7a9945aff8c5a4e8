// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The pages of `softib counters`.
#pragma once

#include "softib/pages/fabric_state.h"
#include "softib/subnet/port_counts.h"

#include <optional>
#include <string>
#include <vector>

namespace ib::softib {

// Ports that have carried nothing and count no errors are left out, unless `all` or the user
// names them by number; the last line says how many.
std::string counters_page(const std::vector<PortCount>& ports, bool all);
// Of what was counted in so many seconds (counted_since): the busiest first.
std::string rates_page(std::vector<PortCount> ports, double seconds, bool all);

// All ports. With `since`, which was `seconds` ago, also rates.
Json counters_json(const std::vector<PortCount>& ports);
Json rates_json(const std::vector<PortCount>& ports, const std::vector<PortCount>& since,
                double seconds);

}  // namespace ib::softib
