// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Snapshot: the state of an interface for listings. A copy; building it allocates.
#pragma once

#include "ulp/ipoib/counters.h"
#include "ulp/ipoib/host.h"

#include <cstdint>
#include <optional>
#include <vector>

namespace ib::ipoib {

struct NeighbourRow {
  enum class Source : std::uint8_t { Arp, NeighbourDiscovery, Packet };
  HardwareAddress address;
  MacAddress mac;
  std::optional<Ipv4Address> ipv4;  // the last one that it claimed
  std::optional<Ipv6Address> ipv6;
  Source source = Source::Packet;
  Duration unused{};
};

struct PathRow {
  enum class State : std::uint8_t { Resolving, Resolved, Refreshing, Failed };
  Gid gid;
  State state = State::Resolving;
  PathRecord record;  // of Resolved and Refreshing
  Trouble trouble = Trouble::None;
  Status status = Status::Ok;  // of the last answer
  std::uint32_t attempts = 0;
  std::size_t waiting_packets = 0;
};

struct GroupRow {
  enum class State : std::uint8_t { Waiting, Joining, Joined, Rejoining, Failed };
  Gid mgid;
  Membership membership = Membership::Full;
  State state = State::Waiting;
  bool attached = false;
  GroupParameters parameters;  // of Joined and Rejoining
  Trouble trouble = Trouble::None;
  Status status = Status::Ok;
  std::uint32_t attempts = 0;
  std::size_t waiting_packets = 0;
};

struct ConnectionRow {
  enum class State : std::uint8_t { Connecting, Established, Refused };
  bool is_active = false;  // carries what this interface sends; a passive one what it receives
  HardwareAddress peer;
  State state = State::Connecting;
  ConnectionId id{};
  std::uint32_t mtu = 0;  // IP MTU
  std::size_t waiting_packets = 0;
};

struct Snapshot {
  LinkState link;
  Trouble trouble = Trouble::None;  // why there is no carrier
  Status status = Status::Ok;
  HardwareAddress address;
  MacAddress mac;
  Gid broadcast_group;
  std::vector<NeighbourRow> neighbours;
  std::vector<PathRow> paths;
  std::vector<GroupRow> groups;
  std::vector<ConnectionRow> connections;
  Counters counters;
};

}  // namespace ib::ipoib
