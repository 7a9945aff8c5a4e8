// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The descriptors that came with a message [unix(7), SCM_RIGHTS].
#pragma once

#include <sys/socket.h>

#include <cstddef>
#include <cstring>

namespace ib::os {

// Calls take(descriptor) for each. They belong to this process now: it must close each of them.
template <class Take>
void take_descriptors(msghdr& message, Take&& take) {
  for (cmsghdr* part = CMSG_FIRSTHDR(&message); part != nullptr;
       part = CMSG_NXTHDR(&message, part)) {
    if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS) continue;
    const std::size_t count = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < count; ++i) {
      int descriptor = -1;
      std::memcpy(&descriptor, CMSG_DATA(part) + i * sizeof(int), sizeof descriptor);
      take(descriptor);
    }
  }
}

}  // namespace ib::os
