// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// UpDown: ways lead up first, then down, by levels of switches or, where those do not join all
// channel adapters, by the distance from one switch. No packets of data ever wait for each other.
//
// Packets to or from the management agent of a switch may have no such way, as between two switches
// of the uppermost level. They take the shortest one.
#pragma once

#include "sm/routing/hop_engine.h"

namespace ib::sm {

class UpDown final : public HopEngine {
 public:
  std::string_view name() const override { return "up/down"; }
  bool is_deadlock_free() const override { return true; }
  bool prepare(const Graph& graph, std::string& reason) override;
  void fill(std::uint32_t at, std::span<std::uint8_t> table) const override;
};

}  // namespace ib::sm
