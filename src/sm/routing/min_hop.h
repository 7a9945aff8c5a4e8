// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// MinHop: the shortest ways, which share the load. On a graph with circles packets may wait for
// each other.
#pragma once

#include "sm/routing/hop_engine.h"

namespace ib::sm {

class MinHop final : public HopEngine {
 public:
  std::string_view name() const override { return "min-hop"; }
  bool is_deadlock_free() const override { return false; }
  bool prepare(const Graph& graph, std::string& reason) override;
  void fill(std::uint32_t at, std::span<std::uint8_t> table) const override;
};

}  // namespace ib::sm
