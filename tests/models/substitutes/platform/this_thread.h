// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// In place of src/platform/this_thread.h: the threads of a model are fibers of one thread.
#pragma once

#include "tests/models/explorer.h"

#include <cstdint>

namespace ib::platform {

// While a run is set up: on behalf of which of its threads.
inline std::size_t acting_thread = 0;

inline std::uintptr_t this_thread() {
  const std::size_t number = models::this_thread_number();
  return 64 + (number == models::kNoThread ? acting_thread : number);
}

}  // namespace ib::platform
