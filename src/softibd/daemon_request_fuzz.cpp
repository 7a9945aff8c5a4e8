// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Any bytes on the control socket: parse_request() accepts or refuses them, reads no other byte,
// and accepts only well-formed requests. First byte: the flaws of the message; the rest is the
// message.
#include "base/printable.h"
#include "softibd/daemon_request.h"
#include "verbs/control_sm.h"
#include "verbs/control_streams.h"
#include "verbs/control_topology.h"
#include "verbs/control_umad.h"

#include <cstddef>
#include <cstdint>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace ib;
  using namespace ib::softib;
  if (size == 0) return 0;
  const MessageFlaws flaws{(data[0] & 1) != 0, (data[0] & 2) != 0};
  const auto message = std::as_bytes(std::span(data + 1, size - 1));
  const ParsedRequest request = parse_request(message, flaws);
  IB_ASSERT((request.status == Status::Ok) == request.reason.empty());
  if (!request.answerable) {
    IB_ASSERT(request.status != Status::Ok && message.size() < 24);
  } else {
    IB_ASSERT(request.input.size() == message.size() - 24);
  }
  if (request.status == Status::Ok) {
    IB_ASSERT(!flaws.truncated && !flaws.handles_lost);
    // Codes below 32 and those of umad devices, tools and streams are the fabric's, the others an
    // HCA's; but for one (verbs/control.h).
    const auto code = static_cast<std::uint32_t>(request.code);
    const bool is_fabrics = code < 32 || request.code == verbs::control::Code::Resources ||
                            verbs::control::is_umad(code) || verbs::control::is_sm(code) ||
                            verbs::control::is_topology(code) || verbs::control::is_stream(code);
    IB_ASSERT(is_fabrics == (request.file == 0));
  }
  const auto reply = make_error_reply(request.tag, Status::Malformed, request.reason);
  IB_ASSERT(reply.size() >= 24 && reply.size() <= verbs::control::kMaxMessage);
  const std::string text =
      printable(std::span(reinterpret_cast<const char*>(message.data()), message.size()));
  for (const char c : text) IB_ASSERT(c >= ' ' && c <= '~');
  return 0;
}
