// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Whether a datagram queue pair takes datagrams of several packets (docs/design/0031).
//
// Thread rule: any thread, without an OpScope: the answer decides about no memory. A poster looks
// again when it executes the request.
#pragma once

#include "hca/layout/gid_lookup.h"

#include <cstdint>

namespace ib::hca {

// A process may have written anything there. A wrong answer makes a datagram of another length, and
// never one that is longer than the receive.
inline bool takes_large(const QpEntry& entry) {
  return entry.id.takes_large != 0;
}

// Whether `av` leads from port `from` to queue pair `qpn`, and this takes them. Returns false for a
// group, and for queue pairs 0 and 1. One that has gone takes none; what one that lives answers
// never changes. Where switches are on the way, packets may be dropped there all the same.
inline bool takes_large(const Arena& arena, std::uint32_t from, const verbs::AddressVector& av,
                        std::uint32_t qpn) {
  const QpEntry* const entry = arena.qp(qp_index(qpn));
  // The flag comes first, as it is in the same line and most queue pairs do not have it.
  if (entry == nullptr || qpn == 0 || !takes_large(*entry) ||
      entry->id.qpn.load(std::memory_order_acquire) != qpn || entry->id.type != verbs::QpType::Ud) {
    return false;
  }
  const PortEntry* const source = arena.port(from);
  return source != nullptr && destination_of(arena, *source, av) == entry->id.port;
}

}  // namespace ib::hca
