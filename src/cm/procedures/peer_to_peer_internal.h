// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Active/active connections [IBA1 12.9.6]: both sides send a REQ. The side with the larger CA GUID,
// or QPN if both are of one adapter, stays the active one and ignores the other's REQ.
#pragma once

#include "cm/connection_table_internal.h"
#include "cm/messages/req.h"

#include <cstdint>

namespace ib::cm {

// The connection whose own REQ this one has met; null: none. `ca_guid` is this side's.
Connection* find_met(const ConnectionTable& connections, std::uint64_t ca_guid, const Req& req);
// Of `own`, which `req` has met.
bool stays_active(const Connection& own, std::uint64_t ca_guid, const Req& req);

}  // namespace ib::cm
