// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The page of `softib sm status`, from softibd's JSON (docs/status_json.md).
#pragma once

#include "softib/pages/fabric_state.h"

#include <string>

namespace ib::softib {

std::string sm_page(const std::string& fabric, const Json& json);

}  // namespace ib::softib
