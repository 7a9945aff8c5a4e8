// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The user's own settings of OpenMPI: a variable of the environment wins over them, so `softib run`
// must not set one that is there.
#pragma once

#include "softib/launch/environment.h"

#include <string>
#include <string_view>

namespace ib::softib {

// Returns whether the text of a mca-params.conf sets `parameter` ("name = value", '#' comments).
bool sets_mca_parameter(std::string_view text, std::string_view parameter);

// Returns $HOME/.openmpi/mca-params.conf if it sets `parameter`; else an empty text.
std::string mca_file_with(const Environment& environment, std::string_view parameter);

}  // namespace ib::softib
