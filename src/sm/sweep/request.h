// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Request: an SMP that the manager sends, and Work: a part of the manager that has some to send.
#pragma once

#include "mad/header.h"
#include "sm/subnet/subnet.h"

#include <cstdint>
#include <optional>

namespace ib::sm {

struct Request {
  std::uint8_t method = mad::method::kGet;
  std::uint16_t attribute = 0;
  std::uint32_t modifier = 0;
  std::uint32_t port = kNone;  // to its node, by a directed route; kNone: to the own node
  bool is_beyond = false;      // to what is at the other end of its cable
  std::uint32_t tag = 0;       // of the sender
  mad::SmpData data{};         // of a Set
};

struct Answer {
  std::uint16_t status = 0;
  mad::SmpData data{};
};

class Work {
 public:
  virtual ~Work() = default;
  // The next request; nothing if there is none, or none before answers have come.
  virtual std::optional<Request> next() = 0;
  // No answer: all retries are over.
  virtual void on_answer(const Request& request, const Answer* answer) = 0;
};

}  // namespace ib::sm
