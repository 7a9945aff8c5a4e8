// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The programs of the build that the tests start. Their paths are in one object file, so that the
// others are the same in every clone, and a compiler cache has them.
#pragma once

namespace ib::conformance {

// For 32 bits if SOFTIB_PEERS is set (verbs_fixture.h).
const char* conformance_peer();
extern const char* const kNamespacePeer;
extern const char* const kSoftibd;

}  // namespace ib::conformance
