// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "base/test/source_files_test.h"

namespace ib::test {

const char* const kControlHeader = IB_SOURCE_DIR "/src/verbs/control.h";
const char* const kControlMatrix = IB_SOURCE_DIR "/docs/control_matrix.md";

}  // namespace ib::test
