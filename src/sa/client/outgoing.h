// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Common parts of the client's engines: requests to be sent, how these ended, and word for those
// that wait. An engine returns one after the other from poll(); its owner sends the request
// and reports its end with the operation's number.
#pragma once

#include "base/result.h"
#include "base/time.h"
#include "sa/records/header.h"
#include "verbs/types.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace ib::sa {

// One of those that use the client: a query, a share in a membership, a registration ...
using Ticket = std::uint64_t;     // 0: none
using Operation = std::uint64_t;  // 0: none

// How long to wait for an answer before the request is repeated, and how often it is.
struct Patience {
  Duration timeout = std::chrono::seconds(2);
  std::uint32_t retries = 3;
};

struct Outgoing {
  Operation operation = 0;
  verbs::Gid port_gid{};  // of the port that sends it
  std::uint8_t method = 0;
  std::uint16_t attribute = 0;
  std::uint64_t components = 0;
  std::vector<std::byte> record{};
  Patience patience{};
};

// How a request ended.
struct Outcome {
  Status status = Status::Ok;                // of sending it and waiting for the answer
  std::uint16_t sa_status = sa_status::kOk;  // of the answer
  std::string reason{};                      // if the status is not Ok

  bool is_ok() const { return status == Status::Ok && sa_status == sa_status::kOk; }
};

}  // namespace ib::sa
