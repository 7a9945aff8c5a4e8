// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// StreamSockets: the links of streams, and the TCP connections that they stand for, on Linux.
//
// A link is one end of a pair of AF_UNIX sockets, bound to an abstract name: while somebody has it
// open, nobody else can be bound to that name, which is how softibd finds out without a copy.
//
// Thread rule: the loop's thread.
#pragma once

#include "linux/server/event_loop.h"
#include "platform/stream_host.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace ib::os {

class StreamSockets final : public platform::StreamHost {
 public:
  // `number`: of this softibd, as no other one has it.
  StreamSockets(EventLoop& loop, std::uint64_t number);
  StreamSockets(const StreamSockets&) = delete;
  StreamSockets& operator=(const StreamSockets&) = delete;
  ~StreamSockets() override;  // no Watch is left

  Result<Links> make_links(std::uint64_t stream, std::string& reason) override;
  bool is_link_open(std::uint64_t stream, std::uint32_t end) override;
  platform::Knock knock(const platform::NativeHandle& tcp, const platform::TcpName& remote,
                        const platform::TcpName& source) override;
  std::unique_ptr<Watch> watch(const platform::NativeHandle& tcp,
                               std::function<void()> on_end) override;
  std::vector<bool> are_accepted(std::span<const platform::TcpPair> connections) override;
  void reset(platform::NativeHandle tcp) override;

  // Without the zero byte in front of it.
  std::string link_name(std::uint64_t stream, std::uint32_t end) const;

 private:
  struct Watching;
  bool bind_link(int socket, std::uint64_t stream, std::uint32_t end, int& error) const;

  std::uint64_t number_;
  std::shared_ptr<Watching> watching_;
};

}  // namespace ib::os
