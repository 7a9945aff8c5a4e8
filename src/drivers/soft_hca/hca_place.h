// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#pragma once

#include "fabric/model.h"

namespace ib::drivers {

// The extension of the physical device of an HCA.
struct HcaPlace {
  fabric::Node& node;
  fabric::Hca& hca;
};

}  // namespace ib::drivers
