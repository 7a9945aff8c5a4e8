// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "cm/procedures/peer_to_peer_internal.h"

namespace ib::cm {

Connection* find_met(const ConnectionTable& connections, std::uint64_t ca_guid, const Req& req) {
  Connection* own = nullptr;
  connections.for_each_peer(req.service_id, [&](Connection& each) {
    const Path& path = each.info.primary;
    const bool is_itself = req.ca_guid == ca_guid && req.local_comm_id == each.info.local_comm_id;
    if (!is_itself && path.dgid == req.primary.sgid && path.sgid == req.primary.dgid &&
        each.in<state::ReqSent>() != nullptr) {
      own = &each;
    }
  });
  return own;
}

bool stays_active(const Connection& own, std::uint64_t ca_guid, const Req& req) {
  return ca_guid != req.ca_guid ? ca_guid > req.ca_guid : own.info.local_qpn > req.qpn;
}

}  // namespace ib::cm
