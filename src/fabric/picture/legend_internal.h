// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The legend of a picture: what its lines and boxes mean, and what was folded.
#pragma once

#include "fabric/picture/picture.h"

#include <string>

namespace ib::fabric {

struct Legend {
  std::string svg;
  double width = 0, height = 0;
};
// `all`: also of what the picture does not have, since it may come.
Legend legend_of(const Picture& picture, bool all);

}  // namespace ib::fabric
