// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The page of `softib path`, from softibd's JSON.
#pragma once

#include "softib/pages/fabric_state.h"

#include <string>

namespace ib::softib {

std::string path_page(const Json& path);

}  // namespace ib::softib
