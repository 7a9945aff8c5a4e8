// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#pragma once

#include "ulp/ipoib/packets/virtio_header.h"

#include <cstddef>
#include <span>

namespace ib::ipoib {

// A message to be sent: the bytes of `head`, then those of `body`. The first four are the
// encapsulation header.
struct Outgoing {
  std::span<const std::byte> head;
  std::span<const std::byte> body;
  Offload offload;  // is_nothing() unless Host::takes_large said so for this destination

  std::size_t size() const { return head.size() + body.size(); }
};

}  // namespace ib::ipoib
