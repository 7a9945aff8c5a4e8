// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// IP addresses as people write them, and the network interfaces that have them.
#pragma once

#include "verbs/gid.h"

#include <optional>
#include <string>

namespace ib::softib {

// "192.0.2.1", "fd00::1"; nothing: that is no address of one machine.
std::optional<verbs::Gid> parse_address(const std::string& text);

// Returns the interface of this network namespace that has the address; empty: none has. Passive
// level.
std::string interface_of(const verbs::Gid& ip);

}  // namespace ib::softib
