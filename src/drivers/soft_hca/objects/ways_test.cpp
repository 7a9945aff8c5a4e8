// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Ways through switches: the flows of connections, the table of datagrams, and the counters of the
// ports that packets pass.
#include "drivers/soft_hca/handlers.h"
#include "drivers/soft_hca/hca_device.h"
#include "drivers/soft_hca/objects/connection_paths.h"
#include "drivers/soft_hca/objects/traffic.h"
#include "drivers/test/driver_bench_test.h"
#include "fabric/cables.h"
#include "fabric/subnet_setup.h"
#include "hca/layout/flow.h"

namespace ib::drivers::test {
namespace {

using namespace verbs::control;

using verbs::QpType;

// Port 1 of node0 - switch "one" - switch "two" - port 1 of node1.
struct TwoSwitches {
  TwoSwitches() {
    cable(port(0), outer(*one, 1));
    cable(outer(*one, 2), outer(*two, 2));
    cable(outer(*two, 1), port(1));
    w.executor.advance(std::chrono::milliseconds(5));
  }
  fabric::Element* add(const char* name) {
    fabric::TopologyElement what;
    what.description = name;
    what.kind = fabric::ElementKind::Switch;
    what.ports = 4;
    std::string reason;
    const auto made = fabric::add_switch(w.fabric, what, reason);
    EXPECT_TRUE(made) << reason;
    return *made;
  }
  fabric::Port& outer(const fabric::Element& of, std::uint32_t number) {
    return *w.fabric.graph().port_of(of, number);
  }
  void cable(fabric::Port& one_end, fabric::Port& other_end) {
    fabric::PortChanges changes;
    fabric::plug(w.fabric, one_end, other_end, {}, changes);
    apply_changes(w.core(), changes);
  }
  fabric::Port& port(std::size_t node) { return w.fabric.nodes()[node].hcas[0].ports[0]; }
  void set_table(const fabric::Element& of, std::uint16_t lid, std::uint8_t to) {
    fabric::fresh_tables(w.fabric.graph(), of).set_linear(lid, to);
    w.fabric.graph().mark_forwarding(of);
    follow_forwarding(w.core());
  }
  hca::QpEntry& entry(const Reply<QpOut>& qp) {
    return *w.arena().qp(control::index_of(qp.handle));
  }
  Reply<QpOut> connected(Process& of, std::size_t to, std::uint32_t dest_qpn = 0x77) {
    auto qp = of.qp(QpType::Rc, of.pd(), of.cq());
    of.connect(qp.handle, dest_qpn, port(to).lid);
    return qp;
  }
  std::uint64_t sent(fabric::Port& of) { return port_counters(w.core(), of).sent.packets; }
  std::uint64_t received(fabric::Port& of) { return port_counters(w.core(), of).received.packets; }
  // A poster needs a way from node 0.
  const hca::WayEntry* find(std::uint16_t lid, std::uint16_t pkey = 0xffff) {
    const hca::WayKey key{static_cast<std::uint16_t>(port(0).device_index), lid, pkey};
    RaiseEventIn in;
    in.object = EventObject::Way;
    in.index = static_cast<std::uint32_t>(key.word() >> 32);
    in.generation = static_cast<std::uint32_t>(key.word());
    a.good(a.root_call(Code::RaiseEvent, in));
    return w.arena().find_way(key);
  }

  Bench w;
  fabric::Element* one = add("one");
  fabric::Element* two = add("two");
  Process a{w, 11, "node0"};
  Process b{w, 12, "node1"};
};

TEST(Ways, AConnectionFollowsTheTables) {
  TwoSwitches t;
  const auto qp = t.connected(t.a, 1);
  const auto& connection = t.entry(qp).connection;
  EXPECT_EQ(connection.flow.load(), hca::flow::kMemory);
  const std::uint64_t epoch = t.w.arena().slot(t.a.attach.slot)->epoch.load();
  t.set_table(*t.two, t.port(1).lid, fabric::kNoPort);
  EXPECT_EQ(connection.flow.load(), hca::flow::blocked(Cause::WayMissing));
  EXPECT_EQ(connection.way_end, t.w.fabric.graph().index_of(t.outer(*t.two, 2)));
  EXPECT_GT(t.w.arena().slot(t.a.attach.slot)->epoch.load(), epoch) << "posters look again";
  t.set_table(*t.two, t.port(1).lid, 1);
  EXPECT_EQ(connection.flow.load(), hca::flow::kMemory);
}

TEST(Ways, AChangeElsewhereLeavesAFlowAlone) {
  TwoSwitches t;
  const auto qp = t.connected(t.a, 1);
  fabric::Element* other = t.add("other");
  const std::uint64_t epoch = t.w.arena().slot(t.a.attach.slot)->epoch.load();
  t.set_table(*other, t.port(1).lid, fabric::kNoPort);
  t.set_table(*t.one, 0x777, 3);
  EXPECT_EQ(t.w.arena().slot(t.a.attach.slot)->epoch.load(), epoch);
  EXPECT_EQ(t.entry(qp).connection.flow.load(), hca::flow::kMemory);
}

TEST(Ways, ACableBetweenSwitchesThatGoesDownStopsAtOnce) {
  TwoSwitches t;
  const auto qp = t.connected(t.a, 1);
  fabric::PortChanges changes;
  fabric::set_enabled(t.w.fabric, t.outer(*t.one, 2), false, changes);
  apply_changes(t.w.core(), changes);
  EXPECT_EQ(hca::flow::plane_of(t.entry(qp).connection.flow.load()), hca::flow::kNoPlane);
  changes.clear();
  fabric::set_enabled(t.w.fabric, t.outer(*t.one, 2), true, changes);
  apply_changes(t.w.core(), changes);
  t.w.executor.advance(std::chrono::milliseconds(5));
  EXPECT_EQ(t.entry(qp).connection.flow.load(), hca::flow::kMemory);
}

// Posters may have looked at the flow between an epoch that rose and its change.
TEST(Ways, AFlowThatChangesRaisesTheEpochAfterwards) {
  TwoSwitches t;
  const auto qp = t.connected(t.a, 1);
  fabric::fresh_tables(t.w.fabric.graph(), *t.two).set_linear(t.port(1).lid, fabric::kNoPort);
  const std::uint64_t epoch = t.w.arena().slot(t.a.attach.slot)->epoch.load();
  resolve_flows(t.w.core(), Resolve::All);
  EXPECT_EQ(t.entry(qp).connection.flow.load(), hca::flow::blocked(Cause::WayMissing));
  EXPECT_GT(t.w.arena().slot(t.a.attach.slot)->epoch.load(), epoch);
}

TEST(Ways, ALinkWithShortPacketsIsSaid) {
  TwoSwitches t;
  const auto qp = t.connected(t.a, 1);
  t.outer(*t.one, 2).mtu = verbs::Mtu::B1024;
  t.w.fabric.graph().mark_forwarding(*t.one);
  follow_forwarding(t.w.core());
  const std::uint32_t flow = t.entry(qp).connection.flow.load();
  EXPECT_EQ(hca::flow::plane_of(flow), hca::flow::kMemory);
  EXPECT_EQ(hca::flow::mtu_of(flow), verbs::Mtu::B1024);
}

TEST(Ways, EachPortOnTheWayCountsRequestsAndAnswers) {
  TwoSwitches t;
  const auto qp = t.connected(t.a, 1);
  const auto peer = t.connected(t.b, 0, qp.out.qpn);
  t.entry(qp).connection.dest_qpn = peer.out.qpn;
  fabric::Port* const there[] = {&t.outer(*t.one, 2), &t.outer(*t.two, 1)};
  const std::uint64_t before = t.sent(*there[0]);
  const std::uint64_t back = t.received(*there[0]);
  t.entry(qp).requester.messages.fetch_add(10);  // writes, each with an acknowledgement
  EXPECT_EQ(t.sent(*there[0]), before + 10);
  EXPECT_EQ(t.sent(*there[1]), 10u);
  EXPECT_EQ(t.received(t.outer(*t.one, 1)), 10u);
  EXPECT_EQ(t.received(t.outer(*t.two, 2)), 10u);
  EXPECT_EQ(t.received(*there[0]), back + 10) << "acknowledgements come back";
  EXPECT_EQ(t.received(t.port(1)), 10u);
  EXPECT_EQ(t.sent(t.port(1)), 10u);
}

// Packets count where they went, not where later ones go.
TEST(Ways, ARerouteCountsFirst) {
  TwoSwitches t;
  fabric::Port& second = t.outer(*t.one, 3);
  t.cable(second, t.outer(*t.two, 3));
  t.w.executor.advance(std::chrono::milliseconds(5));
  t.set_table(*t.one, t.port(1).lid, 2);
  const auto qp = t.connected(t.a, 1);
  t.entry(qp).requester.messages.fetch_add(5);
  t.set_table(*t.one, t.port(1).lid, 3);
  t.entry(qp).requester.messages.fetch_add(7);
  EXPECT_EQ(t.sent(t.outer(*t.one, 2)), 5u);
  EXPECT_EQ(t.sent(second), 7u);
}

// A third switch between the others, beside their cable; each port has two LIDs, of which the ways
// to the second pass that switch. A manager that does nothing keeps the tables as they are.
struct TwoWays : TwoSwitches {
  static constexpr std::uint16_t kLids[] = {0x10, 0x20};
  TwoWays() {
    cable(outer(*one, 3), outer(*middle, 1));
    cable(outer(*middle, 2), outer(*two, 3));
    w.executor.advance(std::chrono::milliseconds(5));
    fabric::Hca& hca = w.fabric.nodes()[0].hcas[0];
    set_capabilities(w.core(), hca, port(0), port(0).capability_mask | fabric::kIsSm);
    for (std::size_t node = 0; node < 2; ++node) {
      w.fabric.graph().take_lid(port(node), kLids[node], 1);
      publish_ports(w.core(), w.fabric.nodes()[node].hcas[0]);
      for (std::uint16_t path = 0; path < 2; ++path) {
        const auto lid = static_cast<std::uint16_t>(kLids[node] + path);
        const auto over = static_cast<std::uint8_t>(2 + path);
        for (const fabric::Element* of : {one, two, middle}) {
          fabric::fresh_tables(w.fabric.graph(), *of).facts.linear_top = kLids[1] + 1;
        }
        set_table(*one, lid, node == 0 ? 1 : over);
        set_table(*two, lid, node == 1 ? 1 : over);
      }
      set_middle(true);
    }
    left = connected(a, 1);
    right = connected(b, 0, left.out.qpn);
    w.core().qps.find(control::index_of(left.handle))->attr.dest_qpn = right.out.qpn;
    entry(left).connection.dest_qpn = right.out.qpn;
    rearm(a, left, 0x21);
    rearm(b, right, 0x11);
  }
  void rearm(Process& of, const Reply<QpOut>& qp, std::uint16_t lid) {
    QpAttr attr;
    attr.alt_av.dlid = lid;
    attr.alt_av.src_path_bits = 1;
    attr.alt_av.port = 1;
    attr.alt_port = 1;
    attr.mig_state = verbs::MigState::Rearm;
    of.good(of.modify(qp.handle, verbs::QpState::Rts,
                      verbs::qp_attr::kAltPath | verbs::qp_attr::kPathMigState, attr));
  }
  void set_middle(bool leads_on) {
    for (std::size_t node = 0; node < 2; ++node) {
      const auto port = static_cast<std::uint8_t>(1 + node);
      set_table(*middle, kLids[node] + 1, leads_on ? port : fabric::kNoPort);
    }
  }
  void set_cable(bool up) {
    fabric::PortChanges changes;
    fabric::set_enabled(w.fabric, outer(*one, 2), up, changes);
    if (up) {
      for (fabric::Port* end : {&outer(*one, 2), &outer(*two, 2)}) {
        end->state = verbs::PortState::Active;
        w.fabric.graph().mark_forwarding(w.fabric.graph().element_of(*end));
      }
    }
    apply_changes(w.core(), changes);
    w.executor.advance(std::chrono::milliseconds(5));
  }
  // Among the events of its port.
  static bool hears_of_migration(Process& of) {
    constexpr int kMost = 10;
    for (int i = 0; i < kMost; ++i) {
      if (of.root_call<EventOut>(Code::WaitEvent).out.type == verbs::EventType::PathMig)
        return true;
    }
    return false;
  }
  bool is_on_alternate() {
    const bool both =
        entry(left).connection.address.dlid == 0x21 && entry(right).connection.address.dlid == 0x11;
    EXPECT_EQ(both, entry(left).connection.address.dlid == 0x21 ||
                        entry(right).connection.address.dlid == 0x11);
    return both;
  }
  fabric::Element* middle = add("middle");
  Reply<QpOut> left, right;
};

TEST(Ways, AnArmedConnectionLeavesAPathThatBreaks) {
  TwoWays t;
  EXPECT_FALSE(t.is_on_alternate());
  EXPECT_EQ(t.entry(t.left).id.lid, 0x10);
  t.set_cable(false);
  EXPECT_TRUE(t.is_on_alternate());
  for (const auto* qp : {&t.left, &t.right}) {
    EXPECT_EQ(t.entry(*qp).connection.flow.load(), hca::flow::kMemory) << "no request has failed";
  }
  EXPECT_EQ(t.entry(t.left).id.lid, 0x11) << "that of the path bits";
  for (Process* p : {&t.a, &t.b}) EXPECT_TRUE(t.hears_of_migration(*p));
  t.set_cable(true);
  EXPECT_TRUE(t.is_on_alternate()) << "it does not come back by itself";
}

TEST(Ways, AnAlternatePathThatIsBrokenIsTakenWhenItIsWhole) {
  TwoWays t;
  t.set_middle(false);
  EXPECT_FALSE(t.is_on_alternate());
  t.set_cable(false);
  EXPECT_FALSE(t.is_on_alternate());
  EXPECT_EQ(hca::flow::plane_of(t.entry(t.left).connection.flow.load()), hca::flow::kNoPlane);
  t.set_middle(true);
  EXPECT_TRUE(t.is_on_alternate());
  EXPECT_EQ(t.entry(t.left).connection.flow.load(), hca::flow::kMemory);
}

TEST(Ways, DatagramsHaveThemInATable) {
  TwoSwitches t;
  const std::uint16_t lid = t.port(1).lid;
  const hca::WayEntry* way = t.find(lid);
  ASSERT_NE(way, nullptr);
  auto word = hca::WayWord::of(way->word.load());
  EXPECT_EQ(word.stop, Cause::None);
  EXPECT_EQ(word.port, t.port(1).device_index);
  const_cast<hca::WayEntry*>(way)->packets.fetch_add(3);
  const_cast<hca::WayEntry*>(way)->bytes.fetch_add(300);
  EXPECT_EQ(t.sent(t.outer(*t.two, 1)), 3u);
  EXPECT_EQ(port_counters(t.w.core(), t.outer(*t.two, 1)).sent.data, 75u);
  t.set_table(*t.two, lid, fabric::kNoPort);
  EXPECT_EQ(way->word.load(), 0u) << "to be requested again";
  word = hca::WayWord::of(t.find(lid)->word.load());
  EXPECT_EQ(word.stop, Cause::WayMissing);
  EXPECT_EQ(way->end, t.w.fabric.graph().index_of(t.outer(*t.two, 2)));
}

// A port may lose its LID to another one.
TEST(Ways, OneToTheOwnLidDependsOnTheOwnPort) {
  TwoSwitches t;
  const hca::WayEntry* way = t.find(t.port(0).lid);
  ASSERT_NE(way, nullptr);
  EXPECT_EQ(hca::WayWord::of(way->word.load()).port, t.port(0).device_index);
  t.w.fabric.graph().take_lid(t.port(0), 0x99, 0);
  follow_forwarding(t.w.core());
  EXPECT_EQ(way->word.load(), 0u);
}

TEST(Ways, AGroupIsNoAddressOfAQueuePair) {
  TwoSwitches t;
  const hca::WayEntry* way = t.find(0xc001);
  ASSERT_NE(way, nullptr) << "it counts what goes to the group";
  EXPECT_EQ(hca::WayWord::of(way->word.load()).stop, Cause::PeerUnknown);
}

// Those of the server of a READ that goes first.
TEST(Ways, AnswersCountAlthoughTheAnswererGoes) {
  TwoSwitches t;
  const auto qp = t.connected(t.a, 1);
  const auto peer = t.connected(t.b, 0, qp.out.qpn);
  t.entry(qp).connection.dest_qpn = peer.out.qpn;
  const std::uint64_t before = t.sent(t.outer(*t.two, 2));
  t.entry(qp).requester.messages.fetch_add(10);
  t.b.good(t.b.call(Code::DestroyQp, IndexIn{peer.handle, 0}));
  EXPECT_EQ(t.sent(t.outer(*t.two, 2)), before + 10);
}

TEST(Ways, KeysOfNothingGetNoEntry) {
  TwoSwitches t;
  EXPECT_EQ(t.find(0), nullptr);
  const hca::WayKey keys[] = {{0xfffe, 5, 0xffff},  // no such port
                              {1, 5, 0xffff},       // one without a cable
                              {0, 5, 0xffff, 3}};   // a member of no group
  for (const hca::WayKey key : keys) {
    t.w.core().datagram_ways.find(t.w.core(), key);
    EXPECT_EQ(t.w.arena().find_way(key), nullptr);
  }
}

// A process may request ways without end.
TEST(Ways, AFullTableGivesUpOlderOnes) {
  TwoSwitches t;
  for (std::uint32_t pkey = 1; pkey < 3000; ++pkey) {
    for (std::uint16_t lid = 1; lid < 60; ++lid) {
      const hca::WayKey key{static_cast<std::uint16_t>(t.port(0).device_index), lid,
                            static_cast<std::uint16_t>(pkey)};
      t.w.core().datagram_ways.find(t.w.core(), key);
      ASSERT_NE(t.w.arena().find_way(key), nullptr);
    }
  }
  EXPECT_LE(t.w.core().datagram_ways.size(), hca::kMaxWays);
}

}  // namespace
}  // namespace ib::drivers::test
