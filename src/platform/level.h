// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Levels: whether the running code may block (docs/design/0010). Passive: a worker thread, which
// may block. Dispatch: the reactor or a completion callback, which must not. A level describes the
// thread and changes no scheduling; every blocking primitive calls require_passive(), in release
// builds too.
//
// It is here and not in io/ because the event loop (linux/) raises it and io/ checks it.
#pragma once

#include "base/export.h"

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <utility>

namespace ib {

enum class Level : std::uint8_t { Passive, Dispatch };

namespace level_internal {
IB_DRIVER_API inline thread_local Level current = Level::Passive;
}  // namespace level_internal

inline Level current_level() {
  return level_internal::current;
}

// Raises the level of this thread for a scope; never lowers it, as code that was called at
// dispatch level cannot become entitled to block.
class LevelGuard {
 public:
  explicit LevelGuard(Level level) : previous_(level_internal::current) {
    if (level > previous_) level_internal::current = level;
  }
  LevelGuard(const LevelGuard&) = delete;
  LevelGuard& operator=(const LevelGuard&) = delete;
  ~LevelGuard() { level_internal::current = previous_; }

 private:
  Level previous_;
};

// To be called by every primitive that may block, before it does. `what` names the primitive.
inline void require_passive(const char* what) {
  if (current_level() == Level::Passive) return;
  std::fprintf(stderr, "%s may block, but was called at dispatch level\n", what);
  std::abort();
}

}  // namespace ib
