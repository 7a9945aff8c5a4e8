// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A port of an element: its addresses, P_Keys, state and link parameters.
#pragma once

#include "base/time.h"
#include "fabric/port_counters.h"
#include "mad/agent.h"
#include "verbs/gid.h"
#include "verbs/types.h"

#include <cstdint>
#include <string>
#include <vector>

namespace ib::fabric {

// Default GID prefix [IBA1 4.1.1], which is also that of link-local IPv6 addresses.
inline constexpr std::uint64_t kSubnetPrefix = 0xfe80000000000000ull;
inline constexpr std::uint16_t kLastUnicastLid = 0xbfff;  // [IBA1 4.1.3]

// An extra P_Key of a port, with a child device of this name.
struct Partition {
  std::uint16_t pkey = 0;
  std::string name;
};

struct GidEntry {
  verbs::Gid gid{};  // zero: the entry is free
  verbs::GidType type = verbs::GidType::InfiniBand;
  std::string interface;  // network interface; empty: none
  bool operator==(const GidEntry&) const = default;
};

// Bits of the capability mask [IBA1 14.2.5.6].
inline constexpr std::uint32_t kIsSm = 1u << 1;

// PortPhysicalState [IBA1 14.2.5.6].
inline constexpr std::uint8_t kSleeping = 1;
inline constexpr std::uint8_t kPolling = 2;   // no other end answers
inline constexpr std::uint8_t kDisabled = 3;  // somebody took the port down
inline constexpr std::uint8_t kLinkUp = 5;

inline constexpr std::uint32_t kNoIndex = 0xffffffffu;

// A port of any element: nothing in it is an HCA's alone.
struct Port {
  std::uint32_t element = 0;  // index in the graph
  // In the port table of device memory; kNoIndex: a switch's, which programs do not use.
  std::uint32_t device_index = kNoIndex;
  std::uint32_t number = 1;  // 1-based, as in verbs; 0: the management port of a switch
  verbs::LinkLayer link_layer = verbs::LinkLayer::InfiniBand;
  std::uint64_t guid = 0;  // changes by Graph::set_guid
  std::uint64_t gid_prefix = kSubnetPrefix;
  std::uint16_t lid = 0;     // changes by Graph::set_lid; an Ethernet port has none
  std::uint8_t lmc = 0;      // it has 2^lmc LIDs
  std::uint16_t sm_lid = 1;  // 0 for an Ethernet port
  std::uint8_t sm_sl = 0;
  std::uint8_t subnet_timeout = 18;  // 1 s, the usual value of a subnet manager
  verbs::Mtu mtu = verbs::Mtu::B4096;
  verbs::PortState state = verbs::PortState::Active;
  std::uint8_t physical_state = kLinkUp;
  std::uint8_t width = 2;       // of the link: 4X
  std::uint8_t speed = 32;      // EDR, 25 Gb/s a lane
  std::uint8_t best_width = 2;  // what the port can do; of it a subnet manager enables some
  std::uint8_t best_speed = 32;
  // P_Key table; 0: no entry. Entries keep their place, since queue pairs name them by index.
  std::vector<std::uint16_t> pkeys{0xffff};
  std::uint32_t capability_mask = 0;
  mad::PortSettings settings;                // of a subnet manager
  Instant m_key_lease_end = Instant::max();  // max: no lease runs out
  PortCounters counters;
  std::vector<Partition> partitions;  // those that have a device of their own
  // GID table, no longer than verbs::limits::kGidTableLength. Entries keep their place, since
  // address vectors name them by index. Entry 0 is of InfiniBand: subnet prefix and port GUID; of
  // Ethernet: the link-local address of the port, after which come the addresses of its node.
  std::vector<GidEntry> gids;
  verbs::Gid gid() const { return gids.empty() ? verbs::Gid{} : gids[0].gid; }
  bool has_lid(std::uint16_t wanted) const {
    return lid != 0 && wanted >= lid && wanted - lid < 1 << lmc;
  }
  bool is_ethernet() const { return link_layer == verbs::LinkLayer::Ethernet; }
};

}  // namespace ib::fabric
