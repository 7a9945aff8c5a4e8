// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "fabric/management/gmp_agents.h"

#include "fabric/management/device_agent.h"
#include "mad/gmp_answer.h"
#include "mad/mgmt_class.h"
#include "mad/rmpp_header.h"

#include <algorithm>

namespace ib::fabric {
namespace {

// A port that is not yet Armed takes packets of the subnet manager only [IBA1 7.2.7].
bool takes_data(const Port& port) {
  return port.physical_state == kLinkUp &&
         (port.state == verbs::PortState::Armed || port.state == verbs::PortState::Active);
}

}  // namespace

std::optional<mad::Mad> GmpAgents::answer(const Port& at, const mad::Mad& request) {
  namespace status = mad::mad_status;
  const mad::MadHeader header = mad::header_of(request);
  if (!mad::wants_refusal(header.method) || !mad::is_general_class(header.mgmt_class) ||
      mad::is_rmpp(request)) {
    return std::nullopt;
  }
  const bool is_version =
      header.base_version == mad::kBaseVersion && header.class_version == mad::kClassVersion;
  if (is_version && header.mgmt_class == mad::mgmt_class::kPerf) return perf_.answer(at, request);
  if (is_version && header.mgmt_class == mad::mgmt_class::kDevMgt) {
    return answer_device_management(request);
  }
  return mad::gmp_answer(request, status::kBadVersion);
}

Port* GmpAgents::carry(Port& from, const Port& end, PacketLids lids) {
  const Element& element = graph_.element_of(end);
  Port* there = walk_by_lid(graph_, from, lids).port;
  const bool is_it = there != nullptr && &graph_.element_of(*there) == &element &&
                     (element.is_switch() || there == &end);
  return is_it ? there : nullptr;
}

std::optional<mad::Mad> GmpAgents::exchange(Port& from, const Port& end, PacketLids lids,
                                            std::uint16_t pkey, const mad::Mad& request) {
  Port* there = carry(from, end, lids);
  if (there == nullptr || !takes_data(*there)) return std::nullopt;
  const bool has_partition = std::ranges::any_of(
      end.pkeys, [&](std::uint16_t own) { return own != 0 && verbs::share_partition(own, pkey); });
  if (!has_partition) return std::nullopt;
  const std::optional<mad::Mad> response = answer(*there, request);
  if (!response) return std::nullopt;
  const Port* back = carry(*there, from, {lids.destination, lids.source});
  return back == &from ? response : std::nullopt;
}

}  // namespace ib::fabric
