// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Routing engines on graphs by hand: everything is reached, and no circle of buffers is closed
// where an engine promises that.
#include "base/sanitizer.h"
#include "sm/routing/credit_loops.h"
#include "sm/routing/engine.h"
#include "sm/routing/multicast.h"
#include "sm/subnet/subnet.h"

#include <gtest/gtest.h>

#include <random>
#include <set>

namespace ib::sm {
namespace {

// Switches with LIDs from 1 on; channel adapters have the next ones.
struct Net {
  Graph graph;
  std::uint16_t lid = 0;

  void add_switches(std::size_t count) {
    graph.switches.resize(graph.size() + count);
    for (std::size_t i = graph.size() - count; i < graph.size(); ++i) {
      graph.add_destination(static_cast<std::uint32_t>(i), {++lid, 1, 0});
    }
  }
  void add_adapters(std::uint32_t at, unsigned count, std::uint16_t lids = 1) {
    for (unsigned i = 0; i < count; ++i) {
      graph.add_destination(
          at, {static_cast<std::uint16_t>(lid + 1), lids, static_cast<std::uint8_t>(i + 1)});
      lid = static_cast<std::uint16_t>(lid + lids);
    }
  }
};

constexpr std::uint8_t kFirst = 100;  // ports between switches

Net fat_tree(unsigned leaves, unsigned spines, unsigned hosts) {
  Net net;
  net.add_switches(leaves + spines);
  for (unsigned i = 0; i < leaves; ++i) {
    net.add_adapters(i, hosts);
    for (unsigned s = 0; s < spines; ++s) {
      net.graph.add_link(i, static_cast<std::uint8_t>(kFirst + s), leaves + s,
                         static_cast<std::uint8_t>(kFirst + i));
    }
  }
  net.graph.finish();
  return net;
}

Net ring(unsigned size) {
  Net net;
  net.add_switches(size);
  for (unsigned i = 0; i < size; ++i) {
    net.add_adapters(i, 1);
    net.graph.add_link(i, kFirst, (i + 1) % size, kFirst + 1);
  }
  net.graph.finish();
  return net;
}

Net torus(unsigned x, unsigned y) {
  Net net;
  net.add_switches(std::size_t{x} * y);
  for (unsigned i = 0; i < x * y; ++i) {
    net.add_adapters(i, 1);
    net.graph.add_link(i, kFirst, i / x * x + (i + 1) % x, kFirst + 1);
    net.graph.add_link(i, kFirst + 2, (i + x) % (x * y), kFirst + 3);
  }
  net.graph.finish();
  return net;
}

Net random_net(unsigned seed) {
  std::mt19937 random(seed);
  const auto roll = [&](std::size_t sides) { return static_cast<unsigned>(random() % sides); };
  Net net;
  const unsigned size = 2 + roll(20);
  net.add_switches(size);
  std::vector<std::uint8_t> next(size, kFirst);
  for (unsigned i = 0; i < size; ++i) {
    if (roll(3) != 0) net.add_adapters(i, 1 + roll(3), static_cast<std::uint16_t>(1 + roll(4)));
    if (i > 0 && roll(20) != 0) {
      const unsigned to = roll(i);
      net.graph.add_link(i, next[i]++, to, next[to]++);
    }
  }
  for (unsigned i = roll(2 * size); i > 0; --i) {
    const unsigned a = roll(size);
    const unsigned b = roll(size);
    if (a != b) net.graph.add_link(a, next[a]++, b, next[b]++);
  }
  net.graph.finish();
  return net;
}

std::unique_ptr<Engine> engine_for(const Net& net, Routing routing, std::string_view name) {
  std::string reason;
  auto engine = choose_engine(routing, net.graph, reason);
  EXPECT_EQ(engine->name(), name) << reason;
  return engine;
}

void expect_good(const Net& net, const Engine& engine) {
  const Tables tables = fill_tables(net.graph, engine);
  EXPECT_EQ(find_unreached(net.graph, tables), "");
  if (engine.is_deadlock_free()) {
    EXPECT_EQ(find_credit_loop(net.graph, tables, engine), "");
  }
}

TEST(Routing, MinHopOnARingHasACreditLoopThatTheCheckerFinds) {
  const Net net = ring(6);
  const auto engine = engine_for(net, Routing::MinHop, "min-hop");
  const Tables tables = fill_tables(net.graph, *engine);
  EXPECT_EQ(find_unreached(net.graph, tables), "");
  EXPECT_NE(find_credit_loop(net.graph, tables, *engine), "");
}

TEST(Routing, UpDownOnARingHasNone) {
  const Net net = ring(6);
  expect_good(net, *engine_for(net, Routing::UpDown, "up/down"));
}

TEST(Routing, EnginesReachEverythingOnRandomGraphs) {
  for (unsigned seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    const Net net = random_net(seed);
    for (const Routing routing : {Routing::MinHop, Routing::UpDown, Routing::Automatic}) {
      std::string reason;
      const auto engine = choose_engine(routing, net.graph, reason);
      SCOPED_TRACE(engine->name());
      expect_good(net, *engine);
    }
  }
}

TEST(Routing, AFatTreeIsTakenForOneAndSharesItsSpines) {
  const Net net = fat_tree(4, 4, 4);
  const auto engine = engine_for(net, Routing::Automatic, "fat-tree");
  expect_good(net, *engine);
  // The adapters of each leaf come down by all spines, one each.
  const Tables tables = fill_tables(net.graph, *engine);
  for (std::uint32_t from = 0; from < 4; ++from) {
    for (std::uint32_t to = 0; to < 4; ++to) {
      if (from == to) continue;
      std::set<std::uint8_t> ups;
      for (const Destination& destination : net.graph.switches[to].destinations) {
        if (destination.is_adapter()) ups.insert(tables[from][destination.lid]);
      }
      EXPECT_EQ(ups.size(), 4u);
    }
  }
}

TEST(Routing, EnginesHaveNames) {
  for (const char* name : {"automatic", "min-hop", "up/down", "fat-tree", "torus"}) {
    ASSERT_TRUE(routing_of(name)) << name;
    EXPECT_EQ(routing_name(*routing_of(name)), name);
  }
  EXPECT_FALSE(routing_of("shortest"));
}

TEST(Routing, WhatIsNoFatTreeIsRoutedUpAndDownWithTheReason) {
  const Net net = ring(5);
  std::string reason;
  const auto engine = choose_engine(Routing::FatTree, net.graph, reason);
  EXPECT_EQ(engine->name(), "up/down");
  EXPECT_EQ(reason,
            "routing is up/down, not fat-tree: a cable joins two switches of level 0 (0: with "
            "channel adapters)");
}

TEST(Routing, AFatTreeWithoutACommonSpineIsStillReached) {
  Net net;
  net.add_switches(5);  // leaves 0 to 2, spines 3 and 4
  for (std::uint32_t i = 0; i < 3; ++i) net.add_adapters(i, 2);
  net.graph.add_link(0, kFirst, 3, 1);
  net.graph.add_link(1, kFirst, 3, 2);
  net.graph.add_link(1, kFirst + 1, 4, 1);
  net.graph.add_link(2, kFirst, 4, 2);
  net.graph.finish();
  std::string reason;
  const auto engine = choose_engine(Routing::FatTree, net.graph, reason);
  EXPECT_EQ(engine->name(), "up/down");
  EXPECT_NE(reason.find("no common switch above"), std::string::npos) << reason;
  expect_good(net, *engine);
}

TEST(Routing, ATorusGoesByDimensionsOnTwoLanes) {
  for (const auto& [x, y] : {std::pair{3u, 3u}, {4u, 4u}, {5u, 4u}, {7u, 3u}}) {
    const Net net = torus(x, y);
    const auto engine = engine_for(net, Routing::Torus, "torus");
    EXPECT_TRUE(engine->has_lanes());
    expect_good(net, *engine);
  }
}

// The check has to follow each pair of switches, since lanes depend on both.
TEST(Routing, ATorusWithoutItsSecondLaneHasACreditLoop) {
  struct OneLane final : Engine {
    explicit OneLane(const Engine& engine) : inner(engine) {}
    std::string_view name() const override { return "one lane"; }
    bool is_deadlock_free() const override { return false; }
    bool prepare(const Graph&, std::string&) override { return true; }
    void fill(std::uint32_t at, std::span<std::uint8_t> table) const override {
      inner.fill(at, table);
    }
    const Engine& inner;
  };
  const Net net = torus(5, 4);
  const auto engine = engine_for(net, Routing::Torus, "torus");
  const OneLane one(*engine);
  EXPECT_NE(find_credit_loop(net.graph, fill_tables(net.graph, one), one), "");
}

TEST(Routing, ATorusWithACableLessIsNone) {
  Net net = torus(4, 4);
  auto& links = net.graph.switches[5].links;
  const Link gone = links.front();
  links.erase(links.begin());
  std::erase_if(net.graph.switches[gone.to].links,
                [&](const Link& link) { return link.to == 5 && link.port == gone.to_port; });
  net.graph.finish();
  std::string reason;
  const auto engine = choose_engine(Routing::Torus, net.graph, reason);
  EXPECT_EQ(engine->name(), "up/down");
  EXPECT_NE(reason.find("not torus"), std::string::npos) << reason;
  expect_good(net, *engine);
}

TEST(Routing, PortsShareTheLidsOfAdapters) {
  const Net net = fat_tree(2, 4, 8);
  const auto engine = engine_for(net, Routing::MinHop, "min-hop");
  const Tables tables = fill_tables(net.graph, *engine);
  std::map<std::uint8_t, int> loads;
  for (const Destination& destination : net.graph.switches[1].destinations) {
    if (destination.is_adapter()) ++loads[tables[0][destination.lid]];
  }
  EXPECT_EQ(loads.size(), 4u);
  for (const auto& [port, load] : loads) EXPECT_EQ(load, 2) << int{port};
}

// --- Losses ---

// The links of a way by a LID, and whether it arrives.
struct Way {
  std::vector<std::pair<std::uint32_t, Link>> links;
  bool arrives = false;
};

Way way_to(const Graph& graph, const Tables& tables, std::uint32_t from, std::uint16_t lid) {
  Way way;
  for (std::uint32_t at = from; way.links.size() <= graph.size();) {
    const std::uint8_t port = tables[at][lid];
    for (const Destination& own : graph.switches[at].destinations) {
      way.arrives = way.arrives || (own.lid <= lid && lid <= own.last() && own.port == port);
    }
    const auto& links = graph.switches[at].links;
    const auto link = std::ranges::find(links, port, &Link::port);
    if (way.arrives || link == links.end()) return way;
    way.links.emplace_back(at, *link);
    at = link->to;
  }
  return way;
}

bool has_link(const Graph& graph, const std::pair<std::uint32_t, Link>& link) {
  const auto& links = graph.switches[link.first].links;
  return std::ranges::find(links, link.second) != links.end();
}

void remove_link(Graph& graph, unsigned roll) {
  std::vector<std::pair<std::uint32_t, Link>> all;
  for (std::uint32_t i = 0; i < graph.size(); ++i) {
    for (const Link& link : graph.switches[i].links) all.emplace_back(i, link);
  }
  if (all.empty()) return;
  const auto [at, link] = all[roll % all.size()];
  std::erase(graph.switches[at].links, link);
  std::erase(graph.switches[link.to].links, Link{at, link.to_port, link.port});
  graph.finish();
}

// One LID of an adapter more, at a switch that has one.
void add_lid(Net& net, unsigned roll) {
  for (std::uint32_t i = 0; i < net.graph.size(); ++i) {
    const auto at = static_cast<std::uint32_t>((i + roll) % net.graph.size());
    if (!net.graph.switches[at].has_adapters) continue;
    net.graph.add_destination(at, {++net.lid, 1, 90});
    return;
  }
}

void renew_tables(const Graph& graph, const Engine& engine, const StaleWays& stale,
                  Tables& tables) {
  for (std::uint32_t at = 0; at < graph.size(); ++at) {
    tables[at].resize(std::size_t{graph.top_lid} + 1, kNoRoute);
    const Tables before{tables[at]};
    std::vector<std::uint16_t> changed;
    if (at < stale.size()) engine.renew(at, stale[at], tables[at], changed);
    for (std::uint16_t lid = 0; lid <= graph.top_lid; ++lid) {
      const bool is_told = std::ranges::find(changed, lid) != changed.end();
      EXPECT_EQ(is_told, tables[at][lid] != before[0][lid]);
    }
  }
}

void expect_ways_kept(const Graph& before, const Tables& old, const Graph& now,
                      const Tables& tables) {
  for (std::uint32_t from = 0; from < now.size(); ++from) {
    if (!now.switches[from].has_adapters) continue;
    for (const GraphSwitch& to : before.switches) {
      for (const Destination& destination : to.destinations) {
        if (!destination.is_adapter()) continue;
        const Way way = way_to(before, old, from, destination.lid);
        const bool is_whole =
            std::ranges::all_of(way.links, [&](const auto& link) { return has_link(now, link); });
        if (!is_whole) continue;
        EXPECT_EQ(way_to(now, tables, from, destination.lid).links, way.links)
            << "from " << from << " to LID " << destination.lid;
      }
    }
  }
}

// Returns how often the engine has adapted.
unsigned lose_links(Net net, Routing routing, unsigned seed) {
  std::mt19937 generator(seed);
  const auto random = [&] { return static_cast<unsigned>(generator()); };
  std::string reason;
  Graph graph = net.graph;
  const auto engine = choose_engine(routing, graph, reason);
  Tables tables = fill_tables(graph, *engine);
  for (unsigned times = 1; times <= 6; ++times) {
    const Graph before = graph;
    const Tables old = tables;
    for (unsigned i = 1 + random() % 2; i > 0; --i) remove_link(net.graph, random());
    if (random() % 4 == 0) add_lid(net, random());
    const auto change = change_between(before, net.graph);
    EXPECT_TRUE(change);
    graph = net.graph;
    StaleWays stale;
    if (!change || !engine->adapt(*change, stale)) return times - 1;
    renew_tables(graph, *engine, stale, tables);
    EXPECT_EQ(find_unreached(graph, tables), "");
    if (engine->is_deadlock_free()) {
      EXPECT_EQ(find_credit_loop(graph, tables, *engine), "");
    }
    expect_ways_kept(before, old, graph, tables);
    if (testing::Test::HasFailure()) return times;
  }
  return 6;
}

TEST(Losses, EnginesKeepTheWaysThatAreLeft) {
  constexpr unsigned kSeeds = IB_ADDRESS_SANITIZER != 0 ? 40 : 200;
  unsigned adapted = 0;
  for (unsigned seed = 0; seed < kSeeds; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    for (const Routing routing : {Routing::MinHop, Routing::UpDown, Routing::Automatic}) {
      SCOPED_TRACE(routing_name(routing));
      adapted += lose_links(random_net(seed), routing, seed);
      adapted += lose_links(fat_tree(2 + seed % 5, 2 + seed % 4, 3), routing, seed);
      if (testing::Test::HasFailure()) return;
    }
  }
  EXPECT_GT(adapted, 5 * kSeeds);
}

// Each spine is to have a share of what the lost cable has carried.
TEST(Losses, WhatALinkHasCarriedIsSharedByTheOthers) {
  for (const Routing routing : {Routing::Automatic, Routing::MinHop}) {
    Net net = fat_tree(2, 4, 12);
    Graph graph = net.graph;
    std::string reason;
    const auto engine = choose_engine(routing, graph, reason);
    Tables tables = fill_tables(graph, *engine);
    const Graph before = graph;
    std::erase(net.graph.switches[0].links, Link{3, kFirst + 1, kFirst});
    std::erase(net.graph.switches[3].links, Link{0, kFirst, kFirst + 1});
    net.graph.finish();
    graph = net.graph;
    StaleWays stale;
    ASSERT_TRUE(engine->adapt(*change_between(before, graph), stale));
    renew_tables(graph, *engine, stale, tables);
    std::map<std::uint8_t, int> loads;
    for (const Destination& destination : graph.switches[1].destinations) {
      if (destination.is_adapter()) ++loads[tables[0][destination.lid]];
    }
    EXPECT_EQ(loads.size(), 3u) << engine->name();
    for (const auto& [port, load] : loads) EXPECT_EQ(load, 4) << engine->name() << int{port};
  }
}

TEST(Losses, MoreThanALossIsNoChangeToAdaptTo) {
  const Net net = fat_tree(3, 2, 2);
  Graph less = net.graph;
  remove_link(less, 0);
  EXPECT_EQ(change_between(net.graph, less)->ends.size(), 2u);
  EXPECT_FALSE(change_between(less, net.graph));
  EXPECT_FALSE(change_between(net.graph, net.graph)->is_any);
  Graph other = net.graph;
  other.add_destination(3, {200, 1, 7});  // the first one of a spine
  EXPECT_FALSE(change_between(net.graph, other));
  other = net.graph;
  other.add_destination(0, {200, 1, 7});
  EXPECT_EQ(change_between(net.graph, other)->arrivals, std::vector<std::uint32_t>{0});
}

// --- Multicast ---

// Copies that come to members when one of them sends.
std::multiset<std::pair<std::uint32_t, int>> deliver(const Graph& graph,
                                                     const std::map<std::uint32_t, PortSet>& tree,
                                                     Member from) {
  std::multiset<std::pair<std::uint32_t, int>> got;
  std::vector<Member> queue{from};
  while (!queue.empty() && got.size() < 1000) {
    const Member at = queue.back();
    queue.pop_back();
    const auto ports = tree.find(at.at);
    if (ports == tree.end()) continue;
    for (int port = 0; port < 256; ++port) {
      const bool is_set =
          (ports->second[static_cast<std::size_t>(port) / 64] >> port % 64 & 1) != 0;
      if (!is_set || port == at.port) continue;
      const Link* out = nullptr;
      for (const Link& link : graph.switches[at.at].links) {
        if (link.port == port) out = &link;
      }
      if (out != nullptr) {
        queue.push_back({out->to, out->to_port});
      } else {
        got.insert({at.at, port});
      }
    }
  }
  return got;
}

TEST(Multicast, EachOtherMemberGetsOneCopy) {
  for (unsigned seed = 0; seed < 100; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    const Net net = random_net(seed);
    std::vector<Member> members;
    for (std::uint32_t i = 0; i < net.graph.size(); ++i) {
      for (const Destination& destination : net.graph.switches[i].destinations) {
        if (destination.is_adapter() && (destination.lid + seed) % 3 != 0) {
          members.push_back({i, destination.port, (destination.lid + seed) % 5 != 0});
        }
      }
    }
    if (members.empty()) continue;
    // Those that no way joins to the first one are left out.
    const auto tree = make_tree(net.graph, members, seed);
    std::vector<bool> is_joined(net.graph.size());
    std::vector<std::uint32_t> queue{members[0].at};
    is_joined[queue[0]] = true;
    for (std::size_t i = 0; i < queue.size(); ++i) {
      for (const Neighbor& neighbor : net.graph.switches[queue[i]].neighbors) {
        if (!is_joined[neighbor.to]) queue.push_back(neighbor.to);
        is_joined[neighbor.to] = true;
      }
    }
    std::erase_if(members, [&](const Member& member) { return !is_joined[member.at]; });
    for (const Member& from : members) {
      std::multiset<std::pair<std::uint32_t, int>> wanted;
      for (const Member& to : members) {
        const bool is_other = to.at != from.at || to.port != from.port;
        if (is_other && to.receives) wanted.insert({to.at, to.port});
      }
      EXPECT_EQ(deliver(net.graph, tree, from), wanted);
    }
  }
}

TEST(Multicast, OnlySwitchesBetweenMembersTakePart) {
  const Net net = fat_tree(4, 4, 4);
  EXPECT_EQ(make_tree(net.graph, std::vector<Member>{{0, 1}, {0, 2}}, 3).size(), 1u);
  EXPECT_EQ(make_tree(net.graph, std::vector<Member>{{0, 1}, {2, 2}}, 3).size(), 3u);
}

}  // namespace
}  // namespace ib::sm
