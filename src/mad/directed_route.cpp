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

// The end of the hops: the SMP is for this element, or goes on by LID if it may leave.
RouteDecision end_or_go_on(std::uint16_t lid, bool may_leave) {
  if (lid == kPermissiveLid) return {RouteStep::Deliver};
  return may_leave ? RouteDecision{RouteStep::ByLid, 0, lid} : RouteDecision{};
}

// An SMP that comes from outside begins its hops here if it has come by LID.
bool may_begin(bool is_place, std::uint8_t arrival, std::uint16_t lid) {
  return arrival == 0 || (is_place && lid != kPermissiveLid);
}

RouteDecision step_forth(Smp& smp, bool is_switch, std::uint8_t arrival, unsigned& pointer,
                         unsigned count) {
  const bool begins = pointer == 0;
  if (begins && !may_begin(is_switch || count == 0, arrival, lid_at(smp, kDrSlid))) return {};
  if (!begins && arrival == 0 && pointer <= count) return {};
  if (pointer == count) {  // C14-9: 3
    if (count != 0) smp.paths[kReturnPath + pointer] = arrival;
    ++pointer;
    return end_or_go_on(lid_at(smp, kDrDlid), is_switch);
  }
  if (pointer > count) {  // C14-9: 4, by LID after its last hop
    const bool is_behind = lid_at(smp, kDrDlid) != kPermissiveLid;
    return is_behind ? RouteDecision{RouteStep::Deliver} : RouteDecision{};
  }
  if (!begins && !is_switch) return {};
  if (!begins) smp.paths[kReturnPath + pointer] = arrival;  // C14-9: 2
  ++pointer;
  return send_by(smp.paths[kInitialPath + pointer]);
}

RouteDecision step_back(Smp& smp, bool is_switch, std::uint8_t arrival, unsigned& pointer,
                        unsigned count) {
  if (pointer == 0) {  // C14-13: 4, by LID after its last hop
    const bool is_behind = arrival != 0 && lid_at(smp, kDrSlid) != kPermissiveLid;
    return is_behind ? RouteDecision{RouteStep::Deliver} : RouteDecision{};
  }
  const bool begins = pointer == count + 1;
  if (begins && !may_begin(is_switch, arrival, lid_at(smp, kDrDlid))) return {};
  if (!begins && arrival == 0) return {};
  --pointer;
  if (pointer == 0) {  // C14-13: 3
    return end_or_go_on(lid_at(smp, kDrSlid), is_switch || arrival == 0);
  }
  if (!begins && !is_switch) return {};
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
