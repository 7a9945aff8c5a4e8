// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The text of `softib devices` and `softib driver list`, in lines of 80 columns. Pure.
#pragma once

#include "softib/pages/fabric_state.h"

#include <string>

namespace ib::softib {

// `state`: the answer to Code::Devices. A device id is never cut, since people copy it: one that is
// longer than its column has a line of its own.
std::string devices_page(const Json& state, bool with_ids);
std::string drivers_page(const Json& drivers);

}  // namespace ib::softib
