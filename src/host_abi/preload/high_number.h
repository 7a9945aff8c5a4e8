// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Descriptors of this library's own, above the numbers that programs get, if the limit allows it.
#pragma once

#include "host_abi/preload/system_calls.h"

#include <initializer_list>

namespace ib::host_abi::preload {

// A second descriptor of the same open file, close-on-exec, or -1.
inline int duplicate_high(int fd) {
  for (const int lowest : {1000, 200}) {
    const int made = sys::fcntl(fd, F_DUPFD_CLOEXEC, lowest);
    if (made >= 0) return made;
  }
  return -1;
}

}  // namespace ib::host_abi::preload
