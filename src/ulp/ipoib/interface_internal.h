// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The data of an interface, and its functions by direction: transmit.cpp (frames of the kernel),
// sending.cpp (messages to a neighbour or group), receive.cpp (messages of the fabric),
// interface.cpp (events, time).
#pragma once

#include "ulp/ipoib/connections.h"
#include "ulp/ipoib/counters.h"
#include "ulp/ipoib/groups.h"
#include "ulp/ipoib/host.h"
#include "ulp/ipoib/interface.h"
#include "ulp/ipoib/neighbours.h"
#include "ulp/ipoib/packets/dhcp.h"
#include "ulp/ipoib/packets/headers.h"
#include "ulp/ipoib/packets/identity.h"
#include "ulp/ipoib/paths.h"
#include "ulp/ipoib/settings.h"
#include "ulp/ipoib/waiting_packets.h"

#include <array>
#include <cstddef>
#include <optional>

namespace ib::ipoib {

// Queries for the memberships of the kernel, after the carrier came: until then its reports went
// nowhere.
struct MembershipQueries {
  std::optional<Instant> at;
  unsigned left = 0;
};

struct InterfaceParts {
  InterfaceParts(const Settings& given, Host& given_host);

  const Settings settings;
  Host& host;
  Identity own;
  PortState port;
  LinkState link;
  Trouble trouble = Trouble::None;  // why there is no carrier
  bool is_stopped = false;
  std::optional<Instant> sweep_at;  // of neighbours that nobody uses
  MembershipQueries queries;

  Counters counters;
  WaitingBudget budget;  // outlives the queues of the parts below
  Neighbours neighbours;
  Paths paths;
  Groups groups;
  Connections connections;
  Dhcp dhcp;
  // Rewritten packets of neighbour discovery and DHCP.
  std::array<std::byte, 4096> scratch{};
};

// -- transmit.cpp
void transmit(InterfaceParts& parts, const Frame& frame, Instant now);

// -- sending.cpp
// `message` may be changed: its partial checksum is completed in place. `by_datagram`: never on a
// connection.
void send_unicast(InterfaceParts& parts, const HardwareAddress& to, Bytes message,
                  const Offload& offload, bool by_datagram, Instant now);
void send_group(InterfaceParts& parts, const Gid& mgid, Bytes message, const Offload& offload,
                Instant now);
// Send what has waited.
void flush_path(InterfaceParts& parts, const Gid& destination, Instant now);
void flush_group(InterfaceParts& parts, const Gid& mgid, Instant now);
void flush_connection(InterfaceParts& parts, const HardwareAddress& peer, Instant now);

// -- receive.cpp
void receive_datagram(InterfaceParts& parts, const DatagramSource& source, const Message& message,
                      Instant now);
void receive_connected(InterfaceParts& parts, ConnectionId id, const Message& message, Instant now);
// A frame for the kernel, whole.
void deliver(InterfaceParts& parts, const VirtioHeader& header, ConstBytes frame);
// The MAC of a neighbour that was heard of; it is entered in the table.
MacAddress heard(InterfaceParts& parts, const HardwareAddress& address, Instant now);

}  // namespace ib::ipoib
