// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A picture as text for Graphviz, and back from there: where its boxes are.
#pragma once

#include "base/result.h"
#include "fabric/picture/picture.h"

#include <cstdint>
#include <string>
#include <string_view>

namespace ib::fabric {

// The program that lays it out: "dot" by levels, "neato" or, if it is large, "sfdp" without.
const char* layout_program(const Picture& picture);

// The picture in DOT. Boxes are b0, b1, ..., so the names of others are in labels only. To place
// its boxes Graphviz needs no labels, and no lines around them.
enum class DotUse : std::uint8_t { Picture, Places };
std::string dot_of(const Picture& picture, DotUse use = DotUse::Picture);

// Takes the places of boxes from what the program writes with -Tplain. Returns Malformed unless
// each box has one.
Status place_boxes(Picture& picture, std::string_view plain);

}  // namespace ib::fabric
