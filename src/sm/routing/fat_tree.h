// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// FatTree: up/down in a tree of levels, where the way up to a channel adapter follows from its
// number alone: all switches of a level take the same turn, and each upper switch has its share of
// adapters, to which one way leads down.
#pragma once

#include "sm/routing/hop_engine.h"

#include <vector>

namespace ib::sm {

class FatTree final : public HopEngine {
 public:
  std::string_view name() const override { return "fat-tree"; }
  bool is_deadlock_free() const override { return true; }
  bool prepare(const Graph& graph, std::string& reason) override;
  void fill(std::uint32_t at, std::span<std::uint8_t> table) const override;
  bool adapt(const GraphChange& change, StaleWays& stale) override;

 protected:
  std::uint8_t choose(std::uint32_t at, std::uint16_t lid, bool is_adapter,
                      std::span<const std::uint8_t> ports, Loads& loads) const override;

 private:
  bool number_levels(std::string& reason);
  void number_adapters(const GraphSwitch& at);

  std::vector<std::uint32_t> levels_;
  std::vector<std::uint32_t> divisors_;  // by level: ways up of the levels below, multiplied
  std::vector<std::uint32_t> ordinals_;  // by LID
  std::uint32_t next_ordinal_ = 0;
};

}  // namespace ib::sm
