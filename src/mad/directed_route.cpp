// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The rules C14-9 (requests) and C14-13 (responses), and the places of a route in an SMP.
#include "mad/directed_route.h"

#include <cstddef>

namespace ib::mad {
namespace {

// The places of a route [IBA1 14.2.1.2]: LIDs of its ends, and the paths, whose entry 0 is unused.
constexpr std::size_t kDrSlid = 0;
constexpr std::size_t kDrDlid = 2;
constexpr std::size_t kInitialPath = 0;
constexpr std::size_t kReturnPath = 64;

std::uint16_t lid_at(const Smp& smp, std::size_t at) {
  return static_cast<std::uint16_t>(smp.reserved[at] << 8 | smp.reserved[at + 1]);
}

RouteDecision send_by(std::uint8_t port) {
  return {RouteStep::Send, port};
}

// The rest of the way would be by LID, which no element here has a table for.
RouteDecision deliver_if(bool is_permissive) {
  return {is_permissive ? RouteStep::Deliver : RouteStep::Discard};
}

RouteDecision step_forth(Smp& smp, bool is_switch, std::uint8_t arrival, unsigned& pointer,
                         unsigned count) {
  const bool is_source = arrival == 0;
  if (is_source != (pointer == 0)) return {};
  if (pointer == count) {  // C14-9: 3
    if (count != 0) smp.paths[kReturnPath + pointer] = arrival;
    ++pointer;
    return deliver_if(lid_at(smp, kDrDlid) == kPermissiveLid);
  }
  if (pointer > count || !(is_source || is_switch)) return {};
  if (!is_source) smp.paths[kReturnPath + pointer] = arrival;  // C14-9: 2
  ++pointer;
  return send_by(smp.paths[kInitialPath + pointer]);
}

RouteDecision step_back(Smp& smp, bool is_switch, std::uint8_t arrival, unsigned& pointer,
                        unsigned count) {
  const bool is_source = arrival == 0;
  if (is_source != (pointer == count + 1) || pointer == 0) return {};
  --pointer;
  if (pointer == 0) return deliver_if(lid_at(smp, kDrSlid) == kPermissiveLid);  // C14-13: 3
  if (!(is_source || is_switch)) return {};
  return send_by(smp.paths[kReturnPath + pointer]);  // C14-13: 1, 2
}

}  // namespace

RouteDecision take_step(Smp& smp, bool is_switch, std::uint8_t arrival) {
  const std::uint16_t hops = smp.header.class_specific;
  unsigned pointer = hops >> 8;
  const unsigned count = hops & 0xff;
  if (count > kMostHops || pointer > count + 1) return {};
  const bool is_back = (smp.header.status & kDirectionBit) != 0;
  const RouteDecision decision =
      (is_back ? step_back : step_forth)(smp, is_switch, arrival, pointer, count);
  smp.header.class_specific = static_cast<std::uint16_t>(pointer << 8 | count);
  return decision;
}

bool has_hops(const Smp& smp) {
  return smp.header.mgmt_class == mgmt_class::kSubnDirected &&
         (smp.header.class_specific & 0xff) != 0;
}

}  // namespace ib::mad
