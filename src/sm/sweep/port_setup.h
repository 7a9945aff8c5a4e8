// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// PortInfo as a subnet manager wants it to be [IBA1 14.2.5.6, 14.4.2].
#pragma once

#include "sm/subnet/subnet.h"
#include "sm/sweep/settings.h"

#include <cstdint>
#include <optional>

namespace ib::sm {

// The M_Key by which a port lets itself be set, as far as that is known.
std::uint64_t key_for(const Subnet& subnet, const Settings& settings, std::uint32_t port);
// Whether somebody has protected it with a key that cannot be read.
bool has_hidden_key(const Port& keeper);

// The Set that an end port needs for its addresses and its first step to Active; nothing: it has
// them. `reregister`: clients of the port are to tell the manager again what they want.
std::optional<mad::PortInfo> end_port_set(const Subnet& subnet, const Settings& settings,
                                          const Port& port, bool reregister);
// The same for another port of a switch, with a link. `enforces`: partitions; nothing: as it is.
std::optional<mad::PortInfo> link_set(const Subnet& subnet, const Port& port,
                                      std::optional<bool> enforces);
// The last step.
std::optional<mad::PortInfo> active_set(const Port& port);

}  // namespace ib::sm
