// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Interface: one IP over InfiniBand interface of a port and a P_Key [RFC 4391, 4392, 4755, 4390],
// between a TAP of the kernel (Ethernet frames) and queue pairs.
//
// Sans-IO: frames, messages, answers, events and the time come in; calls of Host go out. It never
// reads a clock, waits or locks. Thread rule: one thread at a time. Nothing that comes in, from
// either side, can break it: packets that make no sense are dropped and counted.
//
// **The caller's loop.** One input after the other, each with the current time; then on_time() once
// next_deadline() has passed. next_deadline() changes with each input.
//
// **Memory.** on_frame() and the message inputs write into the bytes that they get: headers are
// edited in place, and what is sent or delivered are the same bytes. After the call the buffer is
// the caller's again; the host has copied or posted what it needed. A message needs kHeadroom bytes
// before it that may be overwritten (for a datagram, the place of the GRH). Only packets that have
// to wait are copied.
//
// **Life.** Constructed with the port down. on_port() with an active port that has the P_Key
// starts joining the broadcast group; the carrier follows. stop() leaves all groups and ends all
// connections; after it the interface takes nothing more.
#pragma once

#include "base/result.h"
#include "base/time.h"
#include "ulp/ipoib/host.h"
#include "ulp/ipoib/settings.h"
#include "ulp/ipoib/snapshot.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

namespace ib::ipoib {

// An Ethernet header in place of the encapsulation header is longer by this.
inline constexpr std::size_t kHeadroom = 10;

struct Frame {
  VirtioHeader header;
  std::span<std::byte> bytes;  // from the Ethernet header on
};

// From the encapsulation header on.
struct Message {
  std::span<std::byte> bytes;
  Offload offload;  // of a peer that takes large messages; else nothing
};

struct DatagramSource {
  Qpn qpn{};
  Lid slid{};
  bool has_grh = false;
  Gid sgid;  // of the GRH
  Gid dgid;
};

struct IncomingConnection {
  Gid gid;                                  // of the peer's port
  std::span<const std::byte> private_data;  // of the REQ
};
struct AcceptedConnection {
  ConnectionId id{};
  ConnectionData data;  // for the REP
};

struct InterfaceParts;

class Interface {
 public:
  // The host outlives the interface.
  Interface(const Settings& settings, Host& host);
  ~Interface();
  Interface(const Interface&) = delete;
  Interface& operator=(const Interface&) = delete;

  // For the kernel's interface; both never change. The hardware address has a zero GID before the
  // first on_port().
  MacAddress mac() const;
  HardwareAddress address() const;

  // -- From the kernel.
  void on_frame(Frame frame, Instant now);

  // -- From the queue pairs.
  void on_datagram(const DatagramSource& source, Message message, Instant now);
  void on_connection_message(ConnectionId id, Message message, Instant now);
  // A datagram to this destination has failed; its path is queried again.
  void on_send_error(const Gid& destination, Instant now);

  // -- From the subnet administrator.
  void on_path_answer(RequestId id, const Result<PathRecord>& answer, Instant now);
  // NotFound: there is no such group.
  void on_join_answer(RequestId id, const Result<GroupParameters>& answer, Instant now);

  // -- From the communication manager.
  // Of the active half: a REP with its private data; the host sends the RTU.
  void on_connected(ConnectionId id, std::span<const std::byte> private_data, Instant now);
  // Of both halves: refused (Disconnected: by the peer), timed out, ended by the peer, or broken.
  // The host releases the queue pair.
  void on_connection_lost(ConnectionId id, Status reason, Instant now);
  // Of the passive half: a REQ. The host accepts with the result, or rejects if it is an error.
  Result<AcceptedConnection> on_connect_request(const IncomingConnection& request, Instant now);

  // -- From the port.
  void on_port(const PortState& port, Instant now);
  void on_port_event(PortEvent event, Instant now);
  // The path to one port has changed, or the port is gone.
  void on_path_changed(const Gid& destination, Instant now);

  void on_time(Instant now);
  std::optional<Instant> next_deadline() const;

  void stop(Instant now);

  Snapshot snapshot(Instant now) const;
  const Counters& counters() const;

 private:
  std::unique_ptr<InterfaceParts> parts_;
};

}  // namespace ib::ipoib
