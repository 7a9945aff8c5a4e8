// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Input of Code::Status (verbs/control.h). Fixed layout, the same on 32 and 64 bit.
#pragma once

#include <array>
#include <cstdint>

namespace ib::verbs::control {

// Without input the answer describes all nodes, which takes its time in a large fabric. With this
// one it has everything else and, of `nodes`, one at most: the node of this name or, if the name is
// empty, of this number, if there is one.
struct StatusIn {
  std::array<char, 64> node{};
  std::uint32_t number = 0xffffffff;
  std::uint32_t reserved = 0;
};
static_assert(sizeof(StatusIn) == 72);

}  // namespace ib::verbs::control
