// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// RequestChannel: a connection to softibd (verbs/control.h) for a program with an event loop:
// several requests are under way at once, their answers come in any order, and nothing waits.
#pragma once

#include "base/result.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace ib::platform {

struct RequestAnswer {
  std::uint64_t tag = 0;
  Status status = Status::Ok;
  std::uint64_t information = 0;
  std::span<const std::byte> body;  // of the answer, as it came; valid until the next take()
};

class RequestChannel {
 public:
  virtual ~RequestChannel() = default;
  // Readable (poll, epoll) when take() has something, or has to send what waits.
  virtual int descriptor() const = 0;
  // Sends a request, or keeps it until softibd has read others; the caller bounds how many are
  // under way. Disconnected: softibd is gone.
  virtual Status send(std::uint32_t code, std::uint32_t file, std::uint64_t tag,
                      std::span<const std::byte> in) = 0;
  // The next answer; nothing if none is here. Sends what waits.
  virtual std::optional<RequestAnswer> take() = 0;
  // Why it is over; empty: it is not. Answers that are still here can be taken.
  virtual const std::string& end() const = 0;
};

}  // namespace ib::platform
