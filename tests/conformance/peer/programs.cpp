// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "peer/programs.h"

#include <cstdlib>

namespace ib::conformance {

const char* conformance_peer() {
  return std::getenv("SOFTIB_PEERS") == nullptr ? IB_BUILD_DIR "/test-bin/conformance_peer"
                                                : IB_BUILD_DIR "/32/test-bin/conformance_peer";
}
const char* const kNamespacePeer = IB_BUILD_DIR "/test-bin/namespace_peer";
const char* const kSoftibd = IB_BUILD_DIR "/bin/softibd";

}  // namespace ib::conformance
