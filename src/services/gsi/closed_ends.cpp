// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "fabric/source_lid.h"
#include "mad/mgmt_class.h"
#include "services/gsi/closed_ends_internal.h"
#include "services/gsi/messages_internal.h"

#include <optional>

namespace ib::services {

const fabric::Port* GsiClosedEnds::find_end(const fabric::Port& from,
                                            const al::MadAddress& to) const {
  const fabric::Graph& graph = fabric_.graph();
  if (to.lid != 0) return graph.route(from, to.lid);
  return to.route ? graph.route(from, to.route->gid) : nullptr;
}

bool GsiClosedEnds::is_closed(const fabric::Port& end) const {
  const hca::PortEntry* entry = system_.arena.port(end.device_index);
  return entry == nullptr || entry->special[1] == 0;
}

bool GsiClosedEnds::take(const GsiAddress& to, const mad::Mad& mad) {
  constexpr std::uint32_t kGsiQpn = 1;
  if (agents_ == nullptr || to.remote.qpn != kGsiQpn) return false;
  const fabric::Graph& graph = fabric_.graph();
  const fabric::Port* from = graph.port(to.port);
  if (from == nullptr || from->is_ethernet() || to.remote.pkey_index >= from->pkeys.size()) {
    return false;
  }
  const fabric::Port* end = find_end(*from, to.remote);
  if (end == nullptr || !is_closed(*end)) return false;
  const fabric::Hca* hca = fabric_.hca_of(*end);
  const bool is_awake = hca == nullptr || (hca->present && !hca->asleep);
  // A requester that is early for the subnet administrator of softib tries again, and is not to
  // hear that there is none: the node of the administrator is opened when it is needed first.
  const bool is_early = hca != nullptr && header_of(mad).mgmt_class == mad::mgmt_class::kSubnAdm;
  if (!is_awake || is_early || to.remote.qkey != verbs::kGsiQkey) return true;  // lost there
  const std::uint16_t lid = to.remote.lid != 0 ? to.remote.lid : end->lid;
  fabric::Port& sender = agents_->port(to.port);
  const fabric::PacketLids lids{fabric::source_lid(*from, to.remote.path_bits), lid};
  const std::optional<mad::Mad> answer =
      agents_->exchange(sender, *end, lids, from->pkeys[to.remote.pkey_index], mad);
  if (!answer) return true;
  Arrival arrival{to.port, to.remote, *answer};
  arrival.from.lid = lid;
  arrivals_.push_back(std::move(arrival));
  if (timer_ == nullptr) timer_ = system_.executor.at(system_.executor.now(), [this] { arrive(); });
  return true;
}

// Those that are there now: an answer may make its receiver send the next request.
void GsiClosedEnds::arrive() {
  timer_.reset();
  std::deque<Arrival> arrivals = std::exchange(arrivals_, {});
  for (const Arrival& arrival : arrivals) on_mad_(arrival.port, arrival.from, arrival.mad);
}

}  // namespace ib::services
