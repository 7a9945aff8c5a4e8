// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Stretch: a piece of registered memory that a key grants, resolved to a way to it.
#pragma once

#include "hca/layout/layout.h"
#include "verbs/control.h"

#include <cstddef>
#include <cstdint>

namespace ib::hca {

using verbs::control::Cause;

struct Stretch {
  enum class Kind : std::uint32_t { Direct, Remote, Zero, Ranges };
  Kind kind = Kind::Direct;
  std::uint32_t key = 0;         // Remote: the region's own key, for bounces
  std::byte* pointer = nullptr;  // Direct
  std::uint64_t address = 0;     // Remote: in the owner's memory; Ranges: in the region
  std::uint64_t length = 0;
  std::uint32_t slot = 0;  // the owner, unless it is Zero
  bool cpu_atomic = true;  // atomics may use the CPU's on `pointer`
  bool doubtful = false;   // Direct: LocalKey::is_doubtful()
  const RangeList* ranges = nullptr;
};

// The result of resolving or copying. Blocked: try again later (pages are moving, peer stopped).
struct Access {
  Cause cause = Cause::None;
  bool blocked = false;
  std::uint64_t detail = 0;
  bool ok() const { return cause == Cause::None && !blocked; }
};

inline Access failed(Cause cause, std::uint64_t detail = 0) {
  return {cause, false, detail};
}

}  // namespace ib::hca
