// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The outcome of a request to the subnet administrator for its sender: a Status, and who
// refused or did not answer, why, and what to check. The words come from the fabric; the answer has
// a number only.
#pragma once

#include "fabric/model.h"
#include "sa/client/outgoing.h"
#include "sa/records/path_record.h"
#include "services/sa/fabric_topology.h"
#include "services/sa/sa_client.h"

#include <cstdint>
#include <string>
#include <string_view>

namespace ib::services {

Status status_of_answer(std::uint16_t sa_status);

// `what`: "the path from A to B", "joining group G".
SaOutcome explain_outcome(const fabric::Fabric& fabric, const FabricTopology& topology,
                          const sa::Outcome& outcome, std::string_view what);
// The same for a path that there is not: why the destination cannot be reached.
SaOutcome explain_path(const fabric::Fabric& fabric, const FabricTopology& topology,
                       const sa::Outcome& outcome, const SaClient::PathQuery& query);

}  // namespace ib::services
