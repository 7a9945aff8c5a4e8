// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Where the lines of a picture run, once its boxes have their places.
#pragma once

#include "fabric/picture/picture.h"

#include <vector>

namespace ib::fabric {

// Between the ends of two lines at one side of a box: of levels that stand, and of those that lie.
inline constexpr double kPortRoom = 17;
inline constexpr double kLyingPortRoom = 11;

struct Point {
  double x = 0, y = 0;
};

// Not std::hypot: that of glibc 2.35 and later is another one, which older systems do not have.
double length_of(Point difference);

// A straight line from the border of the upper box to that of the lower one.
struct Wire {
  Point from, to;
  Point at(double part) const {
    return {from.x + (to.x - from.x) * part, from.y + (to.y - from.y) * part};
  }
};

// By line. By levels, lines end side by side at the sides of boxes.
std::vector<Wire> wires_of(const Picture& picture);

}  // namespace ib::fabric
