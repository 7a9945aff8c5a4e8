// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The fabrics that have a socket in the runtime directory, with or without a listener.
#pragma once

#include <string>
#include <vector>

namespace ib::softib {

std::vector<std::string> fabrics_in(const std::string& runtime_dir);  // sorted

}  // namespace ib::softib
