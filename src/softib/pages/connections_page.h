// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// `softib connections`: listeners and connections as a table, from rdma_cm[] of the fabric's state.
#pragma once

#include "softib/pages/fabric_state.h"

#include <cstdint>
#include <string>

namespace ib::softib {

enum class ConnectionsShown : std::uint8_t {
  Usual,  // listeners, connections, and what is about to become one
  Listeners,
  All,
};

// Those of `all` that are to be shown: listeners first, then by state.
Json chosen_connections(const Json& all, ConnectionsShown shown);

std::string connections_page(const std::string& fabric, const Json& connections);

// "2 listening, 3 established" of all usual ones; empty: there are none.
std::string connections_summary(const Json& all);

}  // namespace ib::softib
