// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "cm/paths_internal.h"
#include "cm/ports_internal.h"

#include <array>

namespace ib::cm {

// A router does not change the path in a REQ: if the sender could not tell the LIDs of this side's
// subnet, those of the MAD are right.
Path Ports::received_path(const Path& path, const MadAddress& from) const {
  Path result = mirrored(path);
  const PortFacts* const port = find(result.sgid);
  result.port = port != nullptr ? port->number : from.port;
  if (!result.subnet_local && from.remote_lid != 0 && result.dlid == kPermissiveLid) {
    result.dlid = from.remote_lid;
    result.slid = from.local_lid;
    result.sl = from.sl;
  }
  return result;
}

void Ports::set(const PortFacts& facts) {
  for (PortFacts& port : all_) {
    if (port.number != facts.number) continue;
    port = facts;
    return;
  }
  all_.push_back(facts);
}

const PortFacts* Ports::find(const Gid& gid) const {
  for (const PortFacts& port : all_) {
    for (const Gid& each : port.gids) {
      if (each == gid) return &port;
    }
  }
  return nullptr;
}

const PortFacts* Ports::find(std::uint8_t number) const {
  for (const PortFacts& port : all_) {
    if (port.number == number) return &port;
  }
  return nullptr;
}

std::optional<Fault> Ports::address_fault(const Path& path, bool is_primary,
                                          std::uint8_t port_number) const {
  if (all_.empty()) return std::nullopt;
  const PortFacts* const port = find(path.sgid);
  if (port == nullptr) {
    Fault fault{is_primary ? RejectReason::InvalidGid : RejectReason::InvalidAltGid, {}};
    const PortFacts* const own = find(port_number);
    if (own != nullptr && !own->gids.empty()) fault.info = AdditionalInfo(own->gids.front());
    return fault;
  }
  const bool lid_counts = port->lid != 0 && path.slid != kPermissiveLid;
  if (!lid_counts || (path.slid >= port->lid && path.slid < port->lid + (1 << port->lmc))) {
    return std::nullopt;
  }
  const std::array<std::uint8_t, 2> lid{static_cast<std::uint8_t>(port->lid >> 8),
                                        static_cast<std::uint8_t>(port->lid)};
  return Fault{is_primary ? RejectReason::InvalidLid : RejectReason::InvalidAltLid,
               AdditionalInfo(lid)};
}

}  // namespace ib::cm
