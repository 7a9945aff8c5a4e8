// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The states of ports [IBA1 7.2.7, 14.2.5.6]. The physical one follows from cables, from HCAs that
// are there and awake, and from who has taken a port down; the other one from it and from a subnet
// manager: a link that comes up is in state Init, until its manager arms and activates it. Where
// softib manages, that has happened at once.
//
// A link trains to the best width and speed that both ends enable. Without one in common it does
// not come up.
//
// Functions change the fabric and add to `changes` what drivers and programs have to hear of.
//
// Thread rule: as the fabric's.
#pragma once

#include "fabric/model.h"

#include <cstdint>
#include <vector>

namespace ib::fabric {

namespace change {
inline constexpr std::uint32_t kState = 1u << 0;    // PortState, or the physical one
inline constexpr std::uint32_t kLid = 1u << 1;      // with its LMC
inline constexpr std::uint32_t kManager = 1u << 2;  // LID or SL of the subnet manager
inline constexpr std::uint32_t kPkeys = 1u << 3;
inline constexpr std::uint32_t kGids = 1u << 4;
inline constexpr std::uint32_t kReregister = 1u << 5;  // the manager has lost what clients told it
inline constexpr std::uint32_t kSegment = 1u << 6;     // other ports are reached
inline constexpr std::uint32_t kCapabilities = 1u << 7;
inline constexpr std::uint32_t kOther = 1u << 8;  // MTU and the like
// Errors of its cable have passed a threshold.
inline constexpr std::uint32_t kLinkIntegrity = 1u << 9;
inline constexpr std::uint32_t kBufferOverrun = 1u << 10;
inline constexpr std::uint32_t kFlowControl = 1u << 11;
}  // namespace change

struct PortChange {
  std::uint32_t port = 0;  // index in the graph
  std::uint32_t what = 0;
  verbs::PortState before = verbs::PortState::Nop;  // of kState
};
using PortChanges = std::vector<PortChange>;

// Takes a port down, or gives it free again, as `softib port` and Set(PortInfo) do.
void set_enabled(Fabric& fabric, Port& port, bool is_enabled, PortChanges& changes);
// Something has changed at an end of its cable: both follow.
void train(Fabric& fabric, Port& port, PortChanges& changes);
// The signal goes, at both ends.
void lose_link(Fabric& fabric, Port& port, PortChanges& changes);
// Set(PortState Down): the link goes down and comes up again in state Init, with what is enabled
// now.
void retrain(Fabric& fabric, Port& port, PortChanges& changes);
// Armed or Active, by a subnet manager. The step is allowed (mad::check_set).
void advance(Fabric& fabric, Port& port, verbs::PortState state, PortChanges& changes);

}  // namespace ib::fabric
