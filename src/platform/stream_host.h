// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// StreamHost: what the stream service (services/streams/) needs of an operating system: links, and
// the TCP connections that streams stand for (docs/design/0030).
//
// Thread rule: the executor's thread, dispatch level. Nothing here waits.
#pragma once

#include "base/result.h"
#include "platform/control_channel.h"

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace ib::platform {

// The address of a TCP socket. IPv4 is mapped: ::ffff:0:0/96.
struct TcpName {
  std::array<std::uint8_t, 16> address{};
  std::uint16_t port = 0;
  std::uint32_t scope = 0;  // of a link-local IPv6 address
  friend bool operator==(const TcpName&, const TcpName&) = default;
};

// A TCP connection by the addresses of both its ends.
struct TcpPair {
  TcpName server;
  TcpName client;
};

// The outcome of connecting a TCP socket.
struct Knock {
  // Ok: it is connected. DeviceBusy: not yet; IoError: it cannot be. InvalidParameter: no socket
  // of TCP that is still unconnected.
  Status status = Status::Ok;
  bool is_refused = false;  // nobody listens there
  std::string reason;
  TcpName local;
  TcpName remote;
  std::uint32_t family = 0;  // AF_INET or AF_INET6: of the socket
};

class StreamHost {
 public:
  // One end of a stream each; the name says which (verbs::control::kStreamLinkPrefix).
  using Links = std::array<NativeHandle, 2>;
  // Looks after a TCP connection until it is destroyed.
  class Watch {
   public:
    virtual ~Watch() = default;
  };

  virtual ~StreamHost() = default;

  virtual Result<Links> make_links(std::uint64_t stream, std::string& reason) = 0;
  // Some process has the link of this end, or it is on its way to one.
  virtual bool is_link_open(std::uint64_t stream, std::uint32_t end) = 0;

  // Connects a socket that does not block. Where it has no address yet and goes to the loopback
  // network of IPv4, it gets the address of `source`, so that the listener sees the node that it
  // comes from. Zeros: it does not.
  virtual Knock knock(const NativeHandle& tcp, const TcpName& remote, const TcpName& source) = 0;
  // `on_end` is called, from the executor and at most once, when the other side has sent something,
  // has closed the connection, or has reset it. Returns nullptr if that is not
  // possible now.
  virtual std::unique_ptr<Watch> watch(const NativeHandle& tcp, std::function<void()> on_end) = 0;
  // For each connection: whether a process has accepted it. False as well if that cannot be found
  // out. The cost is that of all TCP connections of the machine.
  virtual std::vector<bool> are_accepted(std::span<const TcpPair> connections) = 0;
  // Closes it so that the other side finds it reset, and no time-wait is left.
  virtual void reset(NativeHandle tcp) = 0;
};

}  // namespace ib::platform
