// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// softibd's side of the table of ways of datagrams (hca/layout/way_table.h): finds a way when a
// poster requests it, keeps the ports that are on it, and counts there what has gone along it.
#pragma once

#include "hca/layout/arena.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <unordered_map>
#include <vector>

namespace ib::drivers {

struct Core;

class DatagramWays {
 public:
  // Enters the way, if the key names a port of the fabric behind a switch; takes the place of
  // another one where there is no room.
  void find(Core& core, hca::WayKey key);
  // A way that passes such a port of the graph has to be requested once more.
  void forget_those_that_pass(Core& core, const std::function<bool(std::uint32_t port)>& is_marked);
  // Ports have counted all that posters have sent so far.
  void settle(Core& core);
  std::size_t size() const { return ways_.size(); }

 private:
  // By ports of the graph.
  struct Course {
    std::vector<std::uint32_t> ports;  // that packets pass: out, in, ...
    std::uint32_t end = hca::kNone;    // where they end
    // Of a group, of all its members: those that let nothing pass.
    std::shared_ptr<const std::vector<std::uint32_t>> refusals{};
  };
  struct Known {
    Course course;
    std::uint64_t packets = 0;  // that ports have counted
    std::uint64_t bytes = 0;
  };
  // An entry for the key; what it had before is counted.
  std::uint32_t place_for(Core& core, std::uint64_t key);
  void enter(Core& core, hca::WayKey key, const hca::WayWord& word, Course course);
  void find_one(Core& core, hca::WayKey key);
  void find_group(Core& core, hca::WayKey key);
  void count(Core& core, std::uint32_t index, Known& known);

  std::unordered_map<std::uint32_t, Known> ways_;  // by index of the entry
};

}  // namespace ib::drivers
