// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Torus: by one dimension after the other, each the shorter way around. Packets that pass the end
// of a ring go on another lane in that dimension than those that do not, so that no circle of
// buffers is closed: the service level has a bit for each
// dimension.
//
// It reads the shape from the cables: in each dimension they lead from the same port number of a
// switch to the same other one of the next. A torus with a cable or a switch less is none.
#pragma once

#include "sm/routing/engine.h"

#include <array>
#include <vector>

namespace ib::sm {

class Torus final : public Engine {
 public:
  static constexpr std::size_t kMostDimensions = 3;

  std::string_view name() const override { return "torus"; }
  bool is_deadlock_free() const override { return true; }
  bool prepare(const Graph& graph, std::string& reason) override;
  void fill(std::uint32_t at, std::span<std::uint8_t> table) const override;
  std::uint8_t service_level(std::uint32_t from, std::uint32_t to) const override;
  bool has_lanes() const override { return true; }
  std::uint8_t lane(std::uint32_t at, std::uint8_t in, std::uint8_t out,
                    std::uint8_t level) const override;

 private:
  struct Dimension {
    std::uint8_t next = 0;  // number of the port that leads to the next switch
    std::uint8_t before = 0;
    std::uint32_t size = 1;
    bool is_ring = false;
  };
  using Place = std::array<std::uint32_t, kMostDimensions>;

  bool find_dimensions(std::string& reason);
  bool measure(std::uint32_t first, std::string& reason);
  bool give_places(std::uint32_t first, std::string& reason);
  bool check_places(std::string& reason) const;
  // kNone: no cable is there.
  std::uint32_t behind(std::uint32_t at, std::uint8_t port) const;
  std::uint32_t step(const Dimension& dimension, std::uint32_t place, bool is_forth) const;
  bool goes_forth(const Dimension& dimension, std::uint32_t from, std::uint32_t to) const;

  const Graph* graph_ = nullptr;
  std::vector<Dimension> dimensions_;
  std::vector<Place> places_;  // by switch
};

}  // namespace ib::sm
