// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Settings of an interface of IP over InfiniBand: its identity, limits and times.
#pragma once

#include "base/time.h"
#include "ulp/ipoib/host.h"
#include "ulp/ipoib/packets/addresses.h"

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>

namespace ib::ipoib {

// Each table and queue has a bound; beyond it the entry that was unused for the longest time
// goes, or the newest packet.
struct Limits {
  std::size_t neighbours = 2048;
  std::size_t paths = 2048;
  std::size_t groups = 512;
  std::size_t connections = 256;  // of each half
  std::size_t packets_per_queue = 32;
  std::size_t waiting_packets = 1024;  // in all queues
  std::size_t waiting_bytes = std::size_t{4} << 20;
};

struct Times {
  Duration answer = std::chrono::seconds(8);  // the subnet administrator is silent after this
  Duration first_retry = std::chrono::seconds(1);
  Duration longest_retry = std::chrono::seconds(16);
  Duration waiting = std::chrono::seconds(5);  // a packet for a path, group or connection
  Duration path = std::chrono::minutes(10);    // a record is queried again after it
  Duration neighbour = std::chrono::minutes(20);
  Duration send_only_group = std::chrono::minutes(5);     // left when unused for this long
  Duration send_only_refresh = std::chrono::seconds(60);  // the group may have been made again
  Duration send_only_retry = std::chrono::seconds(4);     // at most: a first member may join
  Duration idle_connection = std::chrono::minutes(5);
  Duration idle_passive_connection = std::chrono::minutes(10);
  Duration connect = std::chrono::seconds(30);
  Duration first_reconnect = std::chrono::seconds(5);
  Duration longest_reconnect = std::chrono::minutes(5);
  // Members join again within this time after the subnet manager has lost them, each at a random
  // moment: hundreds of nodes hear of a restart at once.
  Duration rejoin_spread = std::chrono::seconds(4);
};

struct Settings {
  std::uint64_t port_guid = 0;
  Pkey pkey{0xffff};
  Qpn qpn{};  // of the datagram queue pair
  std::uint8_t scope = 2;
  bool connected_mode = false;
  bool creates_broadcast_group = true;  // if it does not exist
  std::uint64_t seed = 1;               // of random delays
  Limits limits;
  Times times;
};

// The port under the interface, as it is now.
struct PortState {
  bool active = false;
  bool has_pkey = false;
  Lid lid{};
  Gid gid;
  MtuCode mtu = 4;
  RateCode rate = 0;
  bool operator==(const PortState&) const = default;
};

enum class PortEvent : std::uint8_t {
  SubnetManagerChanged,
  ClientReregister,  // memberships are lost
  PathsChanged,      // a port of the subnet went, came or has another LID
};

}  // namespace ib::ipoib
