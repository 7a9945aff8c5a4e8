// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The part of the control interface (verbs/control.h) that is about the subnet: its topology as
// text, ways through it, cables of switches. Fixed layout, the same on 32 and 64 bit.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace ib::verbs::control {

// Codes of file 0, no Attach needed.
enum class TopologyCode : std::uint32_t {
  // TopologyIn -> -; fd: a memory file with the text
  // ! InvalidParameter: no such form
  Topology = 104,
  // PathIn -> -; fd: JSON: each hop of the way by the tables of the switches, and why it ends
  // ! NotFound: no such node or LID
  Path = 105,
  // SetCableIn -> -
  // ! NotFound: no such switch or port
  SetCable = 106,
};
constexpr bool is_topology(std::uint32_t code) {
  return code >= static_cast<std::uint32_t>(TopologyCode::Topology) &&
         code <= static_cast<std::uint32_t>(TopologyCode::SetCable);
}

enum class TopologyForm : std::uint32_t { Json = 0, Ibnetdiscover, Ibsim, Tree, Table };
struct TopologyIn {
  TopologyForm form = TopologyForm::Json;
  std::uint32_t reserved = 0;
};
// An end of a way: a node, by its first InfiniBand port, or, if the name is empty, a LID.
struct PathEnd {
  std::array<char, 64> node{};
  std::uint32_t lid = 0;
  std::uint32_t reserved = 0;
};
struct PathIn {
  PathEnd from;
  PathEnd to;
};
struct SetCableIn {
  std::array<char, 64> element{};  // description of a switch, or its GUID as 0x...
  std::uint32_t port = 0;
  std::uint32_t up = 0;
};
static_assert(sizeof(TopologyIn) == 8 && sizeof(PathIn) == 144 && sizeof(SetCableIn) == 72);

}  // namespace ib::verbs::control
