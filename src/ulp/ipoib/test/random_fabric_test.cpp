// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Random traffic and faults among two to five interfaces. After healing each reaches each, no
// packet waits any longer, and stopping leaves nothing behind.
#include "base/sanitizer.h"
#include "ulp/ipoib/test/fabric_world_test.h"

#include <gtest/gtest.h>

#include <cstdlib>

namespace ib::ipoib {
namespace {

using namespace std::chrono_literals;

// How often the seeds reach what matters.
struct Reached {
  std::uint64_t connected = 0, large = 0, fragmented = 0, segmented = 0, too_big = 0, expired = 0,
                restarts = 0, evicted = 0, no_path = 0;
};

class RandomFabric {
 public:
  RandomFabric(std::uint64_t seed, Reached& reached) : world_(seed), reached_(reached) {
    const unsigned nodes = 2 + world_.draw(4);
    const unsigned mode = world_.draw(3);
    world_.takes_large = world_.draw(2) == 0;
    for (unsigned i = 0; i < nodes; ++i) {
      world_.add_node(mode == 1 || (mode == 2 && world_.draw(2) == 0));
    }
  }

  std::string run() {
    const unsigned steps = 20 + world_.draw(60);
    for (unsigned i = 0; i < steps && world_.fault.empty(); ++i) step();
    heal();
    check_reachable();
    check_end();
    return world_.fault;
  }

 private:
  FabricNode& any() { return world_.node(world_.draw(static_cast<unsigned>(world_.size()))); }
  FabricNode& other_than(const FabricNode& node) {
    const auto all = static_cast<unsigned>(world_.size());
    return world_.node((node.number() + 1 + world_.draw(all - 1)) % all);
  }

  void step() {
    FabricNode& node = any();
    FabricNode& other = other_than(node);
    switch (world_.draw(24)) {
      case 0:
        node.port.active = !node.port.active;
        node.update_port();
        break;
      case 1:
        node.port.has_pkey = !node.port.has_pkey;
        node.update_port();
        break;
      case 2:
        node.port.lid = Lid{static_cast<std::uint16_t>(1 + world_.draw(1000))};
        node.update_port();
        other.interface().on_port_event(PortEvent::PathsChanged, world_.now());
        break;
      case 3:
        node.restart();
        ++reached_.restarts;
        break;
      case 4: world_.restart_administrator(); break;
      case 5: world_.faults.administrator_is_silent = world_.draw(2) == 0; break;
      case 6: world_.faults.loss_percent = world_.draw(3) * 20; break;
      case 7: world_.faults.refuses_connections = world_.draw(3) == 0; break;
      case 8:
        node.set_member(static_cast<std::uint8_t>(world_.draw(4)), world_.draw(2) == 0);
        break;
      case 9: node.send_to_group(static_cast<std::uint8_t>(world_.draw(4))); break;
      case 10: world_.pass(std::chrono::seconds(world_.draw(600))); break;
      case 11: node.interface().on_path_changed(other.port.gid, world_.now()); break;
      case 12: node.interface().on_send_error(other.port.gid, world_.now()); break;
      case 13:
      case 14:
      case 15:
        // Mostly to a neighbour that is in the kernel's table.
        node.ping(other.number(), 10);
        world_.pass(100ms);
        for (unsigned i = world_.draw(4); i > 0; --i) {
          node.send_large(other.number(), 1000 + world_.draw(60'000));
        }
        break;
      default:
        for (unsigned i = world_.draw(6); i > 0; --i) {
          node.ping(other.number(), world_.draw(4) == 0 ? world_.draw(60'000) : world_.draw(100));
        }
    }
    world_.pass(std::chrono::milliseconds(world_.draw(3000)));
  }

  void heal() {
    world_.faults = {};
    for (std::size_t i = 0; i < world_.size(); ++i) {
      FabricNode& node = world_.node(i);
      node.port.active = node.port.has_pkey = true;
      node.update_port();
    }
    world_.restart_administrator();
    traffic(60);
  }

  void traffic(unsigned seconds) {
    for (unsigned s = 0; s < seconds && world_.fault.empty(); ++s) {
      for (std::size_t i = 0; i < world_.size(); ++i) {
        for (std::size_t j = 0; j < world_.size(); ++j) {
          if (i != j) world_.node(i).ping(static_cast<unsigned>(j), 50);
        }
      }
      world_.pass(1s);
    }
  }

  void check_reachable() {
    for (std::size_t i = 0; i < world_.size(); ++i) {
      FabricNode& node = world_.node(i);
      if (!node.link.carrier) world_.fail("no carrier at " + std::to_string(i));
      node.pings.clear();
    }
    const std::uint64_t queries = world_.path_queries;
    traffic(5);
    if (world_.path_queries - queries > world_.size() * world_.size()) {
      world_.fail("paths are not cached");
    }
    for (std::size_t i = 0; i < world_.size(); ++i) {
      for (unsigned j = 0; j < world_.size(); ++j) {
        if (i == j || world_.node(i).pings[j] == 5) continue;
        world_.fail(std::to_string(world_.node(i).pings[j]) + " of 5 pings from " +
                    std::to_string(j) + " to " + std::to_string(i));
      }
    }
  }

  void count(const Snapshot& snapshot) {
    const Counters& counters = snapshot.counters;
    reached_.connected += counters.connection_messages_received;
    reached_.large += counters.large_sent;
    reached_.fragmented += counters.fragmented;
    reached_.segmented += counters.segmented;
    reached_.too_big += counters.too_big_reports;
    reached_.expired += counters.dropped(Drop::WaitExpired);
    reached_.no_path += counters.dropped(Drop::NoPath);
    reached_.evicted += counters.neighbours_evicted;
  }

  void check_end() {
    for (std::size_t i = 0; i < world_.size(); ++i) {
      const Snapshot snapshot = world_.node(i).interface().snapshot(world_.now());
      count(snapshot);
      std::size_t waiting = 0;
      for (const auto& row : snapshot.paths) waiting += row.waiting_packets;
      for (const auto& row : snapshot.connections) waiting += row.waiting_packets;
      for (const auto& row : snapshot.groups) {
        waiting += row.waiting_packets;
        if (row.membership == Membership::Full && row.state != GroupRow::State::Joined) {
          world_.fail("a group is not joined");
        }
      }
      if (waiting != 0) world_.fail("packets still wait");
    }
    for (std::size_t i = 0; i < world_.size(); ++i) world_.node(i).stop();
    for (std::size_t i = 0; i < world_.size(); ++i) {
      FabricNode& node = world_.node(i);
      if (!node.attached.empty()) world_.fail("still attached");
      if (node.link.carrier) world_.fail("still a carrier");
      if (world_.connections_of(node) != 0) world_.fail("connections are left");
      for (const auto& [mgid, members] : world_.members) {
        if (members.contains(node.number())) world_.fail("memberships are left");
      }
    }
    world_.pass(1h);  // neighbours expire
    for (std::size_t i = 0; i < world_.size(); ++i) {
      const Snapshot snapshot = world_.node(i).interface().snapshot(world_.now());
      if (!snapshot.neighbours.empty() || !snapshot.paths.empty() ||
          !snapshot.connections.empty()) {
        world_.fail("entries are left");
      }
      if (world_.node(i).interface().next_deadline()) world_.fail("a timer is left");
    }
  }

  FabricWorld world_;
  Reached& reached_;
};

unsigned number_from(const char* variable, unsigned otherwise) {
  const char* text = std::getenv(variable);
  return text != nullptr ? static_cast<unsigned>(std::strtoul(text, nullptr, 10)) : otherwise;
}

TEST(IpoibRandomFabricProperty, AfterHealingEachNodeReachesEachAndNothingIsLeft) {
  constexpr unsigned kSeeds = IB_ADDRESS_SANITIZER != 0 ? 60 : 300;
  const unsigned first = number_from("SOFTIB_FIRST_SEED", 1);
  const unsigned seeds = number_from("SOFTIB_SEEDS", kSeeds);
  Reached reached;
  for (unsigned seed = first; seed - first < seeds && !HasFailure(); ++seed) {
    EXPECT_EQ(RandomFabric(seed, reached).run(), "")
        << "repeat with: SOFTIB_FIRST_SEED=" << seed << " SOFTIB_SEEDS=1";
  }
  if (seeds < 200) return;
  const struct {
    const char* what;
    std::uint64_t count;
  } floors[] = {{"connected", reached.connected},   {"large", reached.large},
                {"fragmented", reached.fragmented}, {"segmented", reached.segmented},
                {"too big", reached.too_big},       {"expired", reached.expired},
                {"restarts", reached.restarts},     {"no path", reached.no_path}};
  for (const auto& [what, count] : floors) {
    RecordProperty(what, static_cast<int>(count));
    EXPECT_GT(count, 10u) << what << ": the seeds do not get there";
  }
}

}  // namespace
}  // namespace ib::ipoib
