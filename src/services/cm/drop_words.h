// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The trace's line about a MAD that a communication manager drops: who sent what, and why nothing
// came of it.
#pragma once

#include "cm/engine.h"
#include "fabric/model.h"

#include <cstdint>
#include <optional>
#include <string>

namespace ib::services {

enum class CmDrop : std::uint8_t {
  Malformed,
  WrongId,     // it names no connection of its sender
  OutOfPlace,  // the connection is in a state in which it means nothing
};
inline constexpr std::size_t kCmDrops = 3;

// From the counters of the engine before and after it got one MAD. Returns nothing if the MAD was
// taken, or its sender has been told.
std::optional<CmDrop> drop_of(const cm::Counters& before, const cm::Counters& after);

// "port 1 of softib0 of node0 dropped a DREP that names no connection of its sender: ..., from LID
// 3 (port 1 of softib0 of node1)". `hca` has the communication manager.
std::string drop_text(const fabric::Fabric& fabric, const fabric::Hca& hca, CmDrop why,
                      const mad::Mad& mad, const cm::MadAddress& from);

}  // namespace ib::services
