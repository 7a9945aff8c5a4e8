// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Parts of `softib status --json` (docs/status_json.md) that softibd itself adds: listeners and
// connections (rdma_cm[]), programs.
#pragma once

#include "drivers/soft_hca/core.h"
#include "services/rdma_cm/service/listing.h"
#include "services/streams/stream_service.h"
#include "softibd/daemon_clients.h"

#include <nlohmann/json.hpp>

#include <cstdint>
#include <vector>

namespace ib::softib {

nlohmann::ordered_json connections_json(const fabric::Fabric& fabric,
                                        const std::vector<services::rdma_cm::Listing>& all);

// Adds the TCP sockets of programs that are streams, in the same form: a row for each end.
void add_streams(nlohmann::ordered_json& rows, const drivers::Core& core,
                 const std::vector<services::StreamListing>& all);

// The processes of the fabric, with or without an HCA. `clients`: those that the drivers have; the
// entries get `ending` if their process has gone before the drivers heard of it, and `is_driver` if
// they are softibd's own.
nlohmann::ordered_json programs_json(const DaemonClients& present, std::uint32_t own_pid,
                                     nlohmann::ordered_json& clients);

}  // namespace ib::softib
