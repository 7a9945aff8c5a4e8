// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A picture with its layout as SVG.
#pragma once

#include "fabric/picture/picture.h"

#include <cstdint>
#include <string>

namespace ib::fabric {

enum class SvgUse : std::uint8_t {
  File,  // a document of its own
  Page   // within HTML: with all that a script shows and hides, and without its style
};
std::string svg_of(const Picture& picture, const std::string& title, SvgUse use);
extern const char* const kSvgStyle;  // CSS, light and dark

// How a script finds and changes them: elements "b3" and "l7" have these classes.
std::string box_class(const Box& box);
std::string line_class(const Line& line);
double line_width(const Line& line);

}  // namespace ib::fabric
