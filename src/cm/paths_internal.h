// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Paths as MADs and messages need them.
#pragma once

#include "cm/types.h"

namespace ib::cm {

MadAddress address_of(const Path& path);
// The path as its other end has it. Its port is not changed.
Path mirrored(const Path& path);
// Each value fits its field.
bool fits(const Path& path);

}  // namespace ib::cm
