// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Paths of files that programs open by a name that softib gives them; there is nothing at them on
// the machine itself.
#pragma once

#include <string_view>

namespace ib::verbs {

// The registry of uDAPL for the node of the program; DAT_OVERRIDE names it.
inline constexpr std::string_view kDatConf = "/etc/softib/dat.conf";

}  // namespace ib::verbs
