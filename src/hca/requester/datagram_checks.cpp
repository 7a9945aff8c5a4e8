// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "hca/requester/datagram_checks.h"

#include "hca/requester/partition_check.h"

namespace ib::hca {

using verbs::QpState;
using verbs::QpType;

namespace {

Outcome check_keys(Attempt& a, const QpEntry& target, const PortEntry& port) {
  const bool own_qkey = (a.wqe.remote_qkey & verbs::kControlledQkey) != 0;  // [IBA1 10.2.5]
  const std::uint32_t qkey = own_qkey ? a.own.id.qkey : a.wqe.remote_qkey;
  const bool to_gsi = target.id.type == QpType::Gsi;
  const std::uint32_t wanted = to_gsi ? verbs::kGsiQkey : target.id.qkey;
  if (qkey != wanted) {
    return Outcome::dropped(Cause::QkeyMismatch, std::uint64_t{qkey} << 32 | std::uint64_t{wanted});
  }
  const std::uint16_t pkey = own_pkey(a);
  if (partition_accepted(pkey, target, port, a.arrival.pkey_index)) return Outcome::done();
  return Outcome::dropped(Cause::PkeyMismatch,
                          std::uint64_t{pkey} << 32 | std::uint64_t{target.id.pkey});
}

}  // namespace

Outcome check_datagram(Attempt& a, std::uint64_t bytes, const QpEntry& target) {
  const QpType type = target.id.type;
  if (!verbs::is_datagram(type)) return Outcome::dropped(Cause::PeerUnknown, a.wqe.av.dlid);
  const QpState state = target.id.state.load(std::memory_order_acquire);
  if (!verbs::receives(state)) {
    return Outcome::dropped(Cause::PeerNotReady, static_cast<std::uint32_t>(state));
  }
  const PortEntry* port = a.plane.arena().port(target.id.port);
  if (port == nullptr || !a.peers.check_port(target.id.port).is_done()) {
    return Outcome::dropped(Cause::PortDown);
  }
  a.arrival.pkey_index = 0;
  if (verbs::is_special(type) && bytes != verbs::kMadBytes) return Outcome::dropped();
  // Subnet management has a virtual lane of its own, without keys [IBA1 10.9.2, C9-55].
  if (type == QpType::Smi || a.config.type == QpType::Smi) {
    return type == a.config.type ? Outcome::done() : Outcome::dropped();
  }
  return check_keys(a, target, *port);
}

}  // namespace ib::hca
