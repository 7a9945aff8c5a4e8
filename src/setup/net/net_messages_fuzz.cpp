// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Requests to softib-net of any content: refused, or the same when they are written again.
#include "base/assert.h"
#include "setup/net/net_messages.h"

#include <cstddef>
#include <cstdint>
#include <span>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace ib;
  const auto request = softib::parse_net_request(std::as_bytes(std::span(data, size)));
  if (!request) return 0;
  const auto again = softib::parse_net_request(softib::write_net_request(*request));
  IB_ASSERT(again && (*again).node == (*request).node && (*again).socket == (*request).socket &&
            (*again).plan.size() == (*request).plan.size() && (*again).mode == (*request).mode &&
            (*again).needs_mode == (*request).needs_mode);
  return 0;
}
