// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Records of links, switches and subnet managers: LinkRecord, SwitchInfoRecord,
// LinearForwardingTableRecord, MulticastForwardingTableRecord, SMInfoRecord [IBA1 15.2.5].
#pragma once

#include "sa/server/search.h"

namespace ib::sa {

// Both ends of a link are reported as one that it leads from.
void find_links(const Search& search);
void find_switch_infos(const Search& search);
// Blocks up to the last one that is in use.
void find_linear_tables(const Search& search);
void find_multicast_tables(const Search& search);
void find_managers(const Search& search);

}  // namespace ib::sa
