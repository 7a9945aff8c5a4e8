// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The programs of the build that the tests start. Their paths are in one object file, so that the
// others are the same in every clone, and a compiler cache has them.
#pragma once

namespace ib::conformance {

extern const char* const kConformancePeer;
extern const char* const kNamespacePeer;
extern const char* const kSoftibd;

}  // namespace ib::conformance
