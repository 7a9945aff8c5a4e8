// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Messages of the control socket (verbs/control.h) to requests, and answers to messages. Pure, and
// the first code that reads a client's bytes: every field is checked.
#pragma once

#include "base/result.h"
#include "verbs/control.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ib::softib {

// Facts about a message besides its bytes.
struct MessageFlaws {
  bool truncated = false;     // longer than kMaxMessage
  bool handles_lost = false;  // more than kMaxFds, or softibd could not hold them
};

struct ParsedRequest {
  // Ok: it may be carried out. Otherwise `reason` is sent to the client.
  Status status = Status::Ok;
  std::string reason;
  // Returns false if there is no tag to answer to; the client does not speak the protocol.
  bool answerable = false;

  verbs::control::Code code = verbs::control::Code::Ping;
  std::uint64_t tag = 0;
  std::uint32_t file = 0;
  std::span<const std::byte> input;  // of the message
};

ParsedRequest parse_request(std::span<const std::byte> message, MessageFlaws flaws);

// Returns the number of file descriptors that a request of this code brings. Others are closed at
// once: a request that pends must not keep them.
std::size_t handles_of(verbs::control::Code code);

// Writes the header of an answer, with the length; `message` has room for it, then the output.
void finish_reply(verbs::control::ReplyHeader header, std::span<std::byte> message);
// A text that is too long for a message is cut. `output`: of a request that has some all the same
// (verbs/services/open_service.h).
std::vector<std::byte> make_error_reply(std::uint64_t tag, Status status, std::string_view reason,
                                        std::span<const std::byte> output = {});

}  // namespace ib::softib
