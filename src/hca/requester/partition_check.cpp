// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "hca/requester/partition_check.h"

namespace ib::hca {

using verbs::QpType;

std::uint16_t own_pkey(const Attempt& a) {
  if (a.config.type != QpType::Gsi) return a.own.id.pkey;
  const PortEntry* port = a.plane.arena().port(a.own.id.port);
  const bool known = port != nullptr && a.wqe.pkey_index < port->pkeys.size();
  return known ? port->pkeys[a.wqe.pkey_index].load(std::memory_order_acquire) : std::uint16_t{0};
}

bool partition_accepted(std::uint16_t pkey, const QpEntry& target, const PortEntry& port,
                        std::uint16_t& matched) {
  if (target.id.type != QpType::Gsi) {
    return verbs::share_partition(pkey, target.id.pkey);
  }
  for (std::size_t i = 0; i < port.pkeys.size(); ++i) {
    const std::uint16_t entry = port.pkeys[i].load(std::memory_order_acquire);
    if (entry == 0 || !verbs::share_partition(pkey, entry)) continue;
    matched = static_cast<std::uint16_t>(i);
    return true;
  }
  return false;
}

}  // namespace ib::hca
