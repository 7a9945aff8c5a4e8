// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Files of this tree that tests read. Their paths are in one object file, so that the others are
// the same in every clone, and a compiler cache has them.
#pragma once

namespace ib::test {

extern const char* const kControlHeader;  // verbs/control.h
extern const char* const kControlMatrix;  // docs/control_matrix.md

}  // namespace ib::test
