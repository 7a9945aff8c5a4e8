// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The part of the control interface (verbs/control.h) that is about the device tree: inputs of
// ChangeHca, ChangePartition, SetPower and ChangeDriver. Fixed layout, the same on 32 and 64 bit.
#pragma once

#include <array>
#include <cstdint>

namespace ib::verbs::control {

enum class HcaAction : std::uint32_t {
  Add = 1,     // the one that is named, if it is out; empty: any that is out, or a new one
  Remove = 2,  // its users may veto it
  Eject = 3,   // pulled out: programs that use it get device fatal
};
struct ChangeHcaIn {
  std::array<char, 64> node{};  // empty: the first one
  std::array<char, 64> ca{};
  HcaAction action = HcaAction::Add;
  std::uint32_t reserved = 0;
};
struct ChangePartitionIn {
  std::array<char, 64> node{};
  std::array<char, 64> ca{};
  std::uint32_t port = 0;
  std::uint16_t pkey = 0;
  std::uint16_t remove = 0;     // 0: add
  std::array<char, 24> name{};  // of a new one: "i..." for IPoIB, "e..." for Ethernet
};
enum class PowerState : std::uint32_t { Working = 0, Sleep = 1, Hibernate = 2, Shutdown = 3 };
struct SetPowerIn {
  std::array<char, 64> node{};  // empty: all; Shutdown is for all only, and softibd ends with it
  PowerState state = PowerState::Working;
  std::uint32_t reserved = 0;
};
struct ChangeDriverIn {
  std::array<char, 64> name{};
  std::uint32_t unload = 0;  // 0: load
  std::uint32_t reserved = 0;
};
}  // namespace ib::verbs::control
