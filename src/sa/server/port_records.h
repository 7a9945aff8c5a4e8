// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Records of nodes and ports: NodeRecord, PortInfoRecord, GUIDInfoRecord, P_KeyTableRecord,
// SLtoVLMappingTableRecord, VLArbitrationTableRecord [IBA1 15.2.5]. A requester sees ports of its
// partitions.
#pragma once

#include "sa/server/search.h"

namespace ib::sa {

void find_nodes(const Search& search);
void find_port_infos(const Search& search);
void find_guid_infos(const Search& search);
void find_pkey_tables(const Search& search);
void find_sl_to_vl_tables(const Search& search);
void find_vl_arbitrations(const Search& search);

}  // namespace ib::sa
