// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Active/active connections [IBA1 12.9.6]: both sides send a REQ. The side with the larger CA GUID,
// or QPN if both are of one adapter, stays the active one and ignores the other's REQ.
#include "cm/engine_internal.h"

namespace ib::cm {

bool Engine::Impl::met_peer(const Req& req, const MadAddress& from) {
  Connection* own = nullptr;
  connections.for_each_peer(req.service_id, [&](Connection& each) {
    const Path& path = each.info.primary;
    const bool is_itself =
        req.ca_guid == config_.ca_guid && req.local_comm_id == each.info.local_comm_id;
    if (!is_itself && path.dgid == req.primary.sgid && path.sgid == req.primary.dgid &&
        each.in<state::ReqSent>() != nullptr) {
      own = &each;
    }
  });
  if (own == nullptr) return false;
  const bool stays_active = config_.ca_guid != req.ca_guid ? config_.ca_guid > req.ca_guid
                                                           : own->info.local_qpn > req.qpn;
  if (stays_active) {
    ++counters.duplicates;
    return true;
  }
  connections.forget_peer(*own);
  take_request(*own, req, from);
  announce(*own, req, from, std::nullopt);
  return true;
}

}  // namespace ib::cm
