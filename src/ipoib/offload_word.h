// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// An Offload as the immediate data of a message between two drivers of softib: 32 bits beside the
// bytes. Others never see it, since only messages to queue pairs of these drivers have one.
//
//   31     1: it is one
//   30     the TCP checksum of ECN: the segments after the first have no CWR
//   29-28  place of the checksum behind its start: 16 (TCP), 6 (UDP), 2, 0
//   27-20  start of the checksum, in units of 4 bytes
//   19     the checksum covers the pseudo header only
//   18-16  segmentation
//   15-0   bytes of payload in a segment
#pragma once

#include "ulp/ipoib/packets/virtio_header.h"
#include "user/process.h"
#include "user/work_request.h"

#include <cstdint>
#include <optional>

namespace ib::ipoib::driver {

// The immediate data, as it is on the wire (in memory, big-endian). Returns nothing if it does not
// fit in, which no packet of a kernel needs.
std::optional<std::uint32_t> to_immediate(const Offload& offload);
// Returns nothing if it is none. The positions are to be checked by the reader (ipoib::check()).
std::optional<Offload> from_immediate(std::uint32_t immediate);

// The same as part of a request, and of a receive that has succeeded. They return false if the
// offload does not fit in, or the immediate data is no offload.
bool put_offload(const Offload& offload, user::SendWqe& request);
bool take_offload(const user::Completion& completion, Offload& offload);

}  // namespace ib::ipoib::driver
