// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The way of a management packet through the subnet, hop by hop: along a directed route, by LIDs
// through the tables of switches, or both [IBA1 14.2.2, 18.2.4.3]. Each hop counts at its ports. A
// cable that is down loses the packet.
//
// Thread rule: as the fabric's.
#pragma once

#include "fabric/graph.h"
#include "mad/directed_route.h"
#include "mad/smp.h"

#include <cstdint>
#include <string>

namespace ib::fabric {

// More than any way without a circle has: packets that have passed so many cables are lost.
inline constexpr std::uint32_t kMostCables = 256;

// Of the local route header.
struct PacketLids {
  std::uint16_t source = mad::kPermissiveLid;
  std::uint16_t destination = mad::kPermissiveLid;
  bool operator==(const PacketLids&) const = default;
};

struct Arrival {
  // By which it came to its end; the sender itself if it stayed there; null if it was lost.
  Port* port = nullptr;
  PacketLids lids;     // of its last hop
  std::string reason;  // why it was lost, in words
};

// An SMP that leaves from a port, of a client or of the agent there. Its hop pointer and return
// path change.
Arrival walk_smp(Graph& graph, Port& from, mad::Smp& smp, PacketLids lids);

// A packet by LID.
Arrival walk_by_lid(Graph& graph, Port& from, PacketLids lids);

// One hop towards a LID; nothing is counted.
struct LidHop {
  enum class Outcome : std::uint8_t {
    Crosses,
    IsThere,       // the element has the LID
    IsAdapter,     // one that does not have it, and sends nothing on
    NotInTable,    // of the switch
    CableIsDown,   // behind `out`, which may have none
    NotReachable,  // on the ideal network
  };
  Outcome outcome = Outcome::Crosses;
  Port* out = nullptr;
  Port* in = nullptr;  // of Crosses
};
// `at`: the port by which the packet has come to its element, or, if not `has_come`, from which it
// is sent.
LidHop hop_by_lid(Graph& graph, Port& at, bool has_come, std::uint16_t lid);
// Why it ends there, in words.
std::string stop_text(const Graph& graph, const Port& at, const LidHop& hop, std::uint16_t lid);

}  // namespace ib::fabric
