// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Which fabrics have a socket in the runtime directory, whether somebody listens or not.
#pragma once

#include <string>
#include <vector>

namespace ib::softib {

std::vector<std::string> fabrics_in(const std::string& runtime_dir);  // sorted

}  // namespace ib::softib
