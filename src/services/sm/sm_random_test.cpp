// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Subnet managers on damaged subnets: SMPs get lost, cables and switches come and go, ports have
// foreign M_Keys, nodes have the GUID of others, managers come and die. Some time after the damage
// there is one master, and all that cables join is reached.
//
// SOFTIB_ROUNDS=n: n rounds; SOFTIB_SEED=n: only that round.
#include "base/sanitizer.h"
#include "services/sm/sm_checks_test.h"

#include <chrono>
#include <cstdlib>

namespace ib::services {
namespace {

using namespace std::chrono_literals;
using test::World;

constexpr const char* kPresets[]{"star:6",
                                 "fat-tree:hcas=18,ports=6",
                                 "fat-tree:hcas=30,ports=6",
                                 "torus:3x3,hosts=1",
                                 "torus:4x4",
                                 "torus:3x2x2",
                                 "dragonfly:a=3,p=1,h=1"};

class Round {
 public:
  explicit Round(unsigned seed)
      : random_(seed), preset_(kPresets[random_() % std::size(kPresets)]), world_(preset_, seed) {}

  void run() {
    spoil_nodes();
    add_manager();
    if (world_.roll(2) == 0) add_manager();
    world_.loss = world_.roll(4) == 0 ? 0 : world_.roll(60);
    for (unsigned i = 3 + world_.roll(8); i > 0; --i) {
      world_.run_for(pause());
      damage();
    }
    world_.run_for(pause());
    world_.loss = 0;
    if (world_.seats.empty()) add_manager();
    world_.run_for(120s);
    check();
  }

 private:
  unsigned roll(std::size_t sides) { return world_.roll(sides); }
  Duration pause() {
    return std::chrono::milliseconds(roll(3) == 0 ? 0 : roll(3) == 0 ? roll(20'000) : roll(300));
  }
  std::size_t nodes() { return world_.fabric.nodes().size(); }

  // Before a manager comes. Node 0 is left alone.
  void spoil_nodes() {
    if (roll(3) == 0) {
      fabric::Port& port = world_.port_of_node(1 + roll(nodes() - 1));
      port.settings.m_key = 0xabcdef;
      port.settings.m_key_protect = static_cast<std::uint8_t>(1 + roll(3));
      except_.elements.insert(port.element);
    }
    if (roll(3) == 0) {
      fabric::Port& a = world_.port_of_node(1 + roll(nodes() - 1));
      fabric::Port& b = world_.port_of_node(1 + roll(nodes() - 1));
      world_.graph().element_of(a).node_guid = world_.graph().element_of(b).node_guid;
      if (a.element != b.element) except_.elements.insert({a.element, b.element});
    }
  }

  void add_manager() {
    for (int tries = 0; tries < 20; ++tries) {
      const std::size_t node = roll(nodes());
      const fabric::Port& port = world_.port_of_node(node);
      if (except_.elements.contains(port.element)) continue;
      const bool is_taken = std::ranges::any_of(world_.seats, [&](const test::Seat& seat) {
        return seat.port == world_.graph().index_of(port);
      });
      if (is_taken) continue;
      sm::Settings settings;
      settings.priority = static_cast<std::uint8_t>(roll(3));
      settings.lmc = static_cast<std::uint8_t>(lmc_);
      settings.routing = roll(3) == 0 ? sm::Routing::UpDown : sm::Routing::Automatic;
      world_.add_manager(node, settings);
      return;
    }
  }

  fabric::Port* any_cable() {
    for (int tries = 0; tries < 100; ++tries) {
      fabric::Port& port = *world_.graph().port(roll(world_.graph().port_count()));
      if (world_.graph().peer_of(port) != nullptr) return &port;
    }
    return nullptr;
  }

  void damage() {
    fabric::Port* port = any_cable();
    switch (roll(8)) {
      case 0:
      case 1:
        if (port != nullptr) world_.flap(*port);
        return;
      case 2:
        if (port != nullptr) pull_out(*port);
        return;
      case 3: return move_cable();
      case 4: return toggle_switch();
      case 5:
        if (world_.seats.size() < 3) add_manager();
        return;
      case 6:
        if (!world_.seats.empty() && roll(2) == 0) world_.remove_manager(roll(world_.seats.size()));
        return;
      default:
        if (!world_.seats.empty()) {
          world_.seats[roll(world_.seats.size())].manager->request_sweep(roll(2) == 0);
        }
    }
  }

  void pull_out(fabric::Port& port) {
    free_.emplace_back(&port, world_.graph().peer_of(port));
    world_.change([&](auto& changes) { fabric::unplug(world_.fabric, port, changes); });
  }

  // The ends of cables that were pulled out are joined, not always as they were.
  void move_cable() {
    if (free_.empty()) return;
    fabric::Port* const a = free_.back().first;
    fabric::Port* b = free_.back().second;
    free_.pop_back();
    if (!free_.empty() && roll(2) == 0) std::swap(b, free_.back().second);
    std::string reason;
    if (fabric::check_cable(world_.fabric, *a, *b, reason) != Status::Ok) return;
    world_.change([&](auto& changes) { fabric::plug(world_.fabric, *a, *b, {}, changes); });
  }

  void toggle_switch() {
    fabric::Graph& graph = world_.graph();
    for (int tries = 0; tries < 50; ++tries) {
      const fabric::Element& found = graph.element(roll(graph.element_count()));
      if (!found.is_switch()) continue;
      fabric::Element& element = graph.element_of(*graph.port(found.first_port));
      const bool has_power = element.has_power;
      world_.change(
          [&](auto& changes) { fabric::set_power(world_.fabric, element, !has_power, changes); });
      return;
    }
  }

  // Each island of cables that has a manager has one master.
  void check() {
    std::set<std::uint32_t> done;
    for (const test::Seat& seat : world_.seats) {
      const auto joined = test::elements_joined_to(world_, seat.port);
      if (!done.insert(*joined.begin()).second) continue;
      std::vector<const test::Seat*> masters;
      for (const test::Seat& other : world_.seats) {
        const bool is_here = joined.contains(world_.graph().port(other.port)->element);
        if (is_here && other.manager->state() == sm::SmState::Master) masters.push_back(&other);
      }
      if (joined.size() == 1) continue;  // a port without a cable is no subnet
      ASSERT_EQ(masters.size(), 1u) << preset_;
      EXPECT_EQ(test::wrong_with(world_, masters[0]->port, except_), "") << preset_;
      EXPECT_TRUE(world_.settle(*masters[0]->manager, 20s)) << preset_;
    }
  }

  std::mt19937 random_;
  std::string preset_;
  World world_;
  unsigned lmc_ = world_.roll(4) == 0 ? 1 + world_.roll(2) : 0;
  test::Exceptions except_;
  std::vector<std::pair<fabric::Port*, fabric::Port*>> free_;
};

unsigned number_from(const char* name, unsigned otherwise) {
  const char* text = std::getenv(name);
  return text != nullptr ? static_cast<unsigned>(std::strtoul(text, nullptr, 10)) : otherwise;
}

TEST(SubnetManagers, HealDamagedSubnets) {
  const char* one = std::getenv("SOFTIB_SEED");
  const unsigned first = number_from("SOFTIB_SEED", 0);
  const unsigned rounds =
      one != nullptr ? 1 : number_from("SOFTIB_ROUNDS", IB_ADDRESS_SANITIZER != 0 ? 60 : 300);
  for (unsigned seed = first; seed < first + rounds; ++seed) {
    SCOPED_TRACE(testing::Message() << "SOFTIB_SEED=" << seed);
    Round(seed).run();
    if (testing::Test::HasFailure()) return;
  }
}

}  // namespace
}  // namespace ib::services
