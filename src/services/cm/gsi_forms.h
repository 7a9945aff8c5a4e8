// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Addresses of MADs in the form of the communication manager's engine and in that of the GSI; the
// places of GIDs and P_Keys in the tables of a port; transports and hop limits of connections.
#pragma once

#include "cm/types.h"
#include "fabric/model.h"
#include "services/gsi/gsi.h"

#include <cstdint>

namespace ib::services {

// The place of a GID in the port's table; 0 if it is not there.
std::uint8_t gid_index(const fabric::Port& port, const verbs::Gid& gid);
// The place of a P_Key, or else of one of the same partition; 0 if there is none.
std::uint16_t pkey_index(const fabric::Port& port, std::uint16_t pkey);

// `index`: of the port in the fabric's table.
GsiAddress to_gsi(const cm::MadAddress& address, const fabric::Port& port, std::uint32_t index);
cm::MadAddress from_gsi(const GsiAddress& address, const fabric::Port& port);

cm::Transport transport_of(verbs::QpType type);
// The passive end of an XRC connection is its receiver.
verbs::QpType qp_type_of(cm::Transport transport);
// Of packets on the path; 0: they have no global route header.
std::uint8_t hop_limit_of(const cm::Path& path);

}  // namespace ib::services
