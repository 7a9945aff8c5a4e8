// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The part of the control interface (verbs/control.h) that is about softib's own subnet managers.
// Fixed layout, the same on 32 and 64 bit.
#pragma once

#include <cstdint>

namespace ib::verbs::control {

// Codes of file 0, no Attach needed.
enum class SmCode : std::uint32_t {
  // SmIn -> -; fd: JSON: the managers as they are then (docs/status_json.md)
  // ! NotSupported: softib manages no subnet of this fabric; InvalidParameter: an unknown action,
  // ! a priority above 15
  Sm = 110,
};

constexpr bool is_sm(std::uint32_t code) {
  return code == static_cast<std::uint32_t>(SmCode::Sm);
}

enum class SmAction : std::uint32_t { Show = 0, LightSweep, FullSweep, SetPriority, GiveWay };
struct SmIn {
  SmAction action = SmAction::Show;
  std::uint32_t priority = 0;  // of SetPriority
};
static_assert(sizeof(SmIn) == 8);

}  // namespace ib::verbs::control
