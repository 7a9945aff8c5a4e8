// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "peer/programs.h"

namespace ib::conformance {

const char* const kConformancePeer = IB_BUILD_DIR "/test-bin/conformance_peer";
const char* const kNamespacePeer = IB_BUILD_DIR "/test-bin/namespace_peer";
const char* const kSoftibd = IB_BUILD_DIR "/bin/softibd";

}  // namespace ib::conformance
