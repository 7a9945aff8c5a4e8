// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Engine: a way to route a subnet. It is given the graph, and fills the linear table of one switch
// after another [IBA1 18.2.4.3.1].
#pragma once

#include "sm/routing/graph.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ib::sm {

// By switch: others whose LIDs may need other ports in its table.
using StaleWays = std::vector<std::vector<std::uint32_t>>;

class Engine {
 public:
  virtual ~Engine() = default;
  virtual std::string_view name() const = 0;
  // Whether no dependency of buffers is a circle, so that no packets of data ever wait for each
  // other.
  virtual bool is_deadlock_free() const = 0;

  // Returns false, and why, if it cannot route this graph, which stays while it is in use.
  virtual bool prepare(const Graph& graph, std::string& reason) = 0;
  // By LID: the port, or kNoRoute. The table is long enough for the highest LID.
  virtual void fill(std::uint32_t at, std::span<std::uint8_t> table) const = 0;

  // The graph has changed, in its place. Ways that are there still stay; tables are right again
  // when renew() was called for `stale`. Returns false if it has to prepare
  // again.
  virtual bool adapt(const GraphChange& /*change*/, StaleWays& /*stale*/) { return false; }
  // LIDs of switches in the table of another one: those whose way is there no longer get another
  // port, and are added to `changed`.
  virtual void renew(std::uint32_t /*at*/, std::span<const std::uint32_t> /*to*/,
                     std::span<std::uint8_t> /*table*/,
                     std::vector<std::uint16_t>& /*changed*/) const {}

  // The service level of packets from one switch to another.
  virtual std::uint8_t service_level(std::uint32_t /*from*/, std::uint32_t /*to*/) const {
    return 0;
  }
  // Whether service levels are mapped to lanes in another way than at power-on.
  virtual bool has_lanes() const { return false; }
  // The lane of packets of this level that come by port `in` and leave by `out`.
  virtual std::uint8_t lane(std::uint32_t /*at*/, std::uint8_t /*in*/, std::uint8_t /*out*/,
                            std::uint8_t /*level*/) const {
    return 0;
  }
};

enum class Routing : std::uint8_t { Automatic, MinHop, UpDown, FatTree, Torus };
std::string_view routing_name(Routing routing);
std::optional<Routing> routing_of(std::string_view name);

// The engine that is wanted, prepared; if it cannot do it, another one, with the reason. Automatic:
// fat-tree where it is one, else up/down.
std::unique_ptr<Engine> choose_engine(Routing wanted, const Graph& graph, std::string& reason);

}  // namespace ib::sm
