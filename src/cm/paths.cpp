// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Paths as MADs and messages need them.
#include "cm/engine_internal.h"

#include <utility>

namespace ib::cm {

MadAddress address_of(const Path& path) {
  MadAddress address;
  address.port = path.port;
  address.pkey = path.pkey;
  address.sl = path.sl;
  address.local_lid = path.slid;
  address.remote_lid = path.dlid;
  address.is_global = path.is_global();
  if (address.is_global) {
    address.local_gid = path.sgid;
    address.remote_gid = path.dgid;
    address.flow_label = path.flow_label;
    address.traffic_class = path.traffic_class;
    address.hop_limit = path.hop_limit;
  }
  return address;
}

Path mirrored(const Path& path) {
  Path result = path;
  std::swap(result.slid, result.dlid);
  std::swap(result.sgid, result.dgid);
  return result;
}

bool fits(const Path& path) {
  return path.flow_label <= 0xfffff && path.sl <= 15 && path.rate <= 63 &&
         path.packet_lifetime <= kMaxExponent;
}

// A router does not change the path in a REQ: if the sender could not tell the LIDs of this side's
// subnet, those of the MAD are right.
Path Engine::Impl::received_path(const Path& path, const MadAddress& from) const {
  Path result = mirrored(path);
  const PortFacts* const port = port_with(result.sgid);
  result.port = port != nullptr ? port->number : from.port;
  if (!result.subnet_local && from.remote_lid != 0 && result.dlid == kPermissiveLid) {
    result.dlid = from.remote_lid;
    result.slid = from.local_lid;
    result.sl = from.sl;
  }
  return result;
}

void Engine::Impl::set_port(const PortFacts& facts) {
  for (PortFacts& port : ports_) {
    if (port.number != facts.number) continue;
    port = facts;
    return;
  }
  ports_.push_back(facts);
}

const PortFacts* Engine::Impl::port_with(const Gid& gid) const {
  for (const PortFacts& port : ports_) {
    for (const Gid& each : port.gids) {
      if (each == gid) return &port;
    }
  }
  return nullptr;
}

const PortFacts* Engine::Impl::port_of(std::uint8_t number) const {
  for (const PortFacts& port : ports_) {
    if (port.number == number) return &port;
  }
  return nullptr;
}

// `path` is as this side has it.
std::optional<Fault> Engine::Impl::address_fault(const Path& path, bool is_primary,
                                                 std::uint8_t port_number) const {
  if (ports_.empty()) return std::nullopt;
  const PortFacts* const port = port_with(path.sgid);
  if (port == nullptr) {
    Fault fault{is_primary ? RejectReason::InvalidGid : RejectReason::InvalidAltGid, {}};
    const PortFacts* const own = port_of(port_number);
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
