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
  // TopologyIn -> -; fd: a memory file with the text, of Survey and Tables with bytes
  // ! InvalidParameter: no such form
  Topology = 104,
  // PathIn -> -; fd: JSON: each hop of the way by the tables of the switches, and why it ends
  // ! NotFound: no such node or LID
  Path = 105,
  // SetCableIn -> -
  // ! NotFound: no such switch or port
  SetCable = 106,
  // ChangeCableIn -> -; fd: JSON: both ends as they are then, of Remove: as they were
  // ! NotFound: no such element, port or cable; AlreadyExists: a port has a cable;
  // ! InvalidParameter: the ends do not fit
  ChangeCable = 107,
  // CableErrorsIn -> -
  // ! NotFound: no such element, port or cable; InvalidParameter: Ethernet, or its link is down
  CableErrors = 108,
  // ChangeSwitchIn -> -; fd: JSON: the switch
  // ! NotFound: no such switch; AlreadyExists: its name or GUID is in use;
  // ! LimitExceeded: no room; InvalidParameter: a switch cannot be like this
  ChangeSwitch = 109,
};
constexpr bool is_topology(std::uint32_t code) {
  return code >= static_cast<std::uint32_t>(TopologyCode::Topology) &&
         code <= static_cast<std::uint32_t>(TopologyCode::ChangeSwitch);
}

// Survey and Tables are of fabric/health/survey.h, for softib of the same version.
enum class TopologyForm : std::uint32_t {
  Json = 0,
  Ibnetdiscover,
  Ibsim,
  Tree,
  Table,
  Toml,
  Survey,
  Tables
};
struct TopologyIn {
  TopologyForm form = TopologyForm::Json;
  std::uint32_t first = 0;  // of Tables: the element to begin with
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
// A port: of a switch (name or GUID as 0x...), of an HCA (NODE/HCA, or its GUID), or of the first
// HCA of a node.
struct CableEnd {
  std::array<char, 128> element{};
  std::uint32_t port = 0;
  std::uint32_t reserved = 0;
};
enum class CableAction : std::uint32_t { Show = 0, Add, Remove, Down, Up };
struct ChangeCableIn {
  CableAction action = CableAction::Show;
  std::uint32_t width = 0;  // of Add: codes of PortInfo, LinkWidthActive
  std::uint32_t speed = 0;  // and as verbs number speeds
  std::uint32_t reserved = 0;
  CableEnd a;
  CableEnd b;  // of Add
};
struct CableErrorsIn {
  CableEnd end;  // that receives what the cable spoils
  std::uint32_t symbol = 0;
  std::uint32_t recovery = 0;
  std::uint32_t downed = 0;    // how often the link goes down and comes up again
  std::uint32_t physical = 0;  // packets in a row with errors of the cable
  std::uint32_t overrun = 0;   // flow control periods in a row without room in the buffer
  std::uint32_t watchdog = 0;  // times that flow control was silent for too long
  std::uint32_t remote = 0;    // packets that the other end had marked as bad
  std::uint32_t discards = 0;  // of what this end was to send
};
enum class SwitchAction : std::uint32_t { Add = 0, Remove, Down, Up };
struct ChangeSwitchIn {
  std::array<char, 128> name{};
  std::uint64_t guid = 0;  // of Add; 0: any
  std::uint32_t ports = 0;
  SwitchAction action = SwitchAction::Add;
};
static_assert(sizeof(CableEnd) == 136 && sizeof(ChangeCableIn) == 288 &&
              sizeof(CableErrorsIn) == 168 && sizeof(ChangeSwitchIn) == 144);
static_assert(sizeof(TopologyIn) == 8 && sizeof(PathIn) == 144 && sizeof(SetCableIn) == 72);

}  // namespace ib::verbs::control
