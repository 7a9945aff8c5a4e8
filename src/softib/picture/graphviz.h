// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The programs of Graphviz, which find places for the boxes of a picture.
#pragma once

#include "fabric/picture/picture.h"

#include <chrono>
#include <string>

namespace ib::softib {

// Of a program that reads `input` and writes its answer: what it wrote. Throws
// CliError(Installation) with the remedy if it is not installed, CliError(Failed) with its own
// words if it fails or takes longer than `limit`.
std::string run_graphviz(const std::string& program, const std::vector<std::string>& arguments,
                         const std::string& input,
                         std::chrono::seconds limit = std::chrono::seconds(120));

// Gives each box its place. Throws as above.
void lay_out(fabric::Picture& picture);

}  // namespace ib::softib
