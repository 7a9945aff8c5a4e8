// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Which port of the fabric has an address.
#pragma once

#include "hca/layout/arena.h"

namespace ib::hca {

// Returns the index of the port that has the GID; kNone: no port has it. A GID that is changed at
// this moment may not be found.
inline std::uint32_t port_with_gid(const Arena& arena, const verbs::Gid& gid) {
  // No chain is as long as this, but one that a process has damaged may have no end.
  constexpr std::uint32_t kLongest = 256;
  const Shared32* next = &arena.gid_head(gid_chain(gid));
  for (std::uint32_t i = 0; i < kLongest; ++i) {
    const std::uint32_t number = next->load(std::memory_order_acquire);
    if (number == 0) return kNone;
    const std::uint32_t index = (number - 1) / verbs::limits::kGidTableLength;
    const std::uint32_t place = (number - 1) % verbs::limits::kGidTableLength;
    const PortEntry* port = arena.port(index);
    if (port == nullptr) return kNone;
    if (verbs::Gid(port->gids[place]) == gid) return index;
    next = &port->next_by_gid[place];
  }
  return kNone;
}

// Whether messages from one of these ports to the other have a way; a network of another link layer
// and a cable have none out.
inline bool is_joined(const PortEntry& from, const PortEntry& to) {
  return from.segment.load(std::memory_order_relaxed) == to.segment.load(std::memory_order_relaxed);
}

// Returns the index of the port to which a datagram goes that port `from` sends along `av`; kNone:
// there is none, or no way leads to it. By its LID; by its GID if it is given none, as always on
// Ethernet.
inline std::uint32_t destination_of(const Arena& arena, const PortEntry& from,
                                    const verbs::AddressVector& av) {
  const verbs::LinkLayer layer = from.link_layer.load(std::memory_order_relaxed);
  const bool by_lid = layer != verbs::LinkLayer::Ethernet && (av.dlid != 0 || av.is_global == 0);
  if (!by_lid && av.is_global == 0) return kNone;
  const std::uint32_t index = by_lid ? arena.port_with_lid(av.dlid) : port_with_gid(arena, av.dgid);
  const PortEntry* to = arena.port(index);
  return to != nullptr && is_joined(from, *to) ? index : kNone;
}

}  // namespace ib::hca
