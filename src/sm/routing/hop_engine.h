// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// HopEngine: an engine whose ways follow a HopTable, and, between switches that it has none
// between, the shortest ones. It adapts to losses: only ways that are gone are replaced.
#pragma once

#include "sm/routing/engine.h"
#include "sm/routing/hops.h"
#include "sm/routing/tables.h"

#include <optional>

namespace ib::sm {

class HopEngine : public Engine {
 public:
  bool adapt(const GraphChange& change, StaleWays& stale) override;
  void renew(std::uint32_t at, std::span<const std::uint32_t> to, std::span<std::uint8_t> table,
             std::vector<std::uint16_t>& changed) const override;

 protected:
  // One of several ports for a LID, by the engine's rule.
  virtual std::uint8_t choose(std::uint32_t at, std::uint16_t lid, bool is_adapter,
                              std::span<const std::uint8_t> ports, Loads& loads) const;
  void find_detours();
  const HopTable* detour() const { return detour_ ? &*detour_ : nullptr; }

  const Graph* graph_ = nullptr;
  HopTable hops_;

 private:
  void renew_one(std::uint32_t at, std::uint32_t to, std::span<std::uint8_t> table, Loads& loads,
                 std::vector<std::uint16_t>& changed) const;

  std::optional<HopTable> detour_;  // the shortest ways
};

}  // namespace ib::sm
