// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// TestFabric: a softibd on a thread of this process, in a directory of its own.
#pragma once

#include "fabric/model.h"

#include <memory>
#include <string>

namespace ib::softib {
class InProcessDaemon;
}

namespace ib::conformance {

// Its nodes: the first two have InfiniBand ports, the others Ethernet ports.
inline constexpr const char* kEast = "east";
inline constexpr const char* kWest = "west";
inline constexpr const char* kNorth = "north";
inline constexpr const char* kSouth = "south";

// Two ports on the HCA of each. In a tree, east and west only, each at a leaf of its own below two
// spines.
fabric::Shape test_shape();
// SOFTIB_TREE: the two sides of a test are on different nodes then, so all packets cross switches.
bool is_tree();

class TestFabric {
 public:
  // Of test_shape(); fails the whole program if it cannot start.
  TestFabric();
  ~TestFabric();
  TestFabric(const TestFabric&) = delete;
  TestFabric& operator=(const TestFabric&) = delete;

  // The fabric that all tests of this program share.
  static TestFabric& shared();

  std::string socket() const;
  softib::InProcessDaemon& daemon();
  // Waits up to 20 s for objects and clients to go. Returns those that are left, in words, or
  // an empty string.
  std::string wait_until_empty();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// The status of the softibd behind a socket, as JSON; empty if it does not answer.
std::string status_of(const std::string& socket);
// Returns the objects that are alive according to the status; empty if none.
std::string living_objects(const std::string& status_json);
std::string wait_until_empty(const std::string& socket);
// Waits up to 20 s until softibd has no client and no connection of a program of these tests;
// returns what it has, or an empty string. Its own services have objects of theirs.
std::string wait_until_left(const std::string& socket);
// The content of a counter of a node's first port, as programs find it in /sys; 0 if there is none.
std::uint64_t port_counter(const std::string& socket, const std::string& node,
                           const std::string& name);

}  // namespace ib::conformance
