// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The way of an SMP along its directed route [IBA1 14.2.2]: one step at one element, which changes
// the hop pointer and the return path as the subnet management interface there does. Before its
// first hop and after its last one the way may be by LID: DrSLID and DrDLID then are no permissive
// LIDs.
//
// A route leads by at most 63 hops to an element and back. Each step moves the hop pointer in its
// direction, so that a route of hostile numbers ends, too.
#pragma once

#include "mad/smp.h"

#include <cstdint>

namespace ib::mad {

enum class RouteStep : std::uint8_t {
  Send,     // out of the element, by a port
  ByLid,    // out of the element, to a LID
  Deliver,  // to the agent of this element, or to the client that has sent the request
  Discard,
};

struct RouteDecision {
  RouteStep step = RouteStep::Discard;
  std::uint8_t port = 0;  // Send: the number of the port
  std::uint16_t lid = 0;  // ByLid
};

inline constexpr std::uint16_t kPermissiveLid = 0xffff;
inline constexpr std::uint8_t kMostHops = 63;

// `arrival`: the number of the port by which the SMP has come; 0 for one that a client or the agent
// of this element sends. Only a switch sends on what has come. To be called where the SMP is not
// under way to another LID.
RouteDecision take_step(Smp& smp, bool is_switch, std::uint8_t arrival);

// Returns whether the route leads out of the element that sends the SMP.
bool has_hops(const Smp& smp);

}  // namespace ib::mad
