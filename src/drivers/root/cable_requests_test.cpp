// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Requests of `softib cable` and `softib switch`: what changes, who hears of it, and what is
// refused.
#include "drivers/test/driver_bench_test.h"
#include "fabric/cables.h"
#include "verbs/control_topology.h"

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

namespace ib::drivers::test {
namespace {

using namespace verbs::control;

using testing::ElementsAre;
using testing::HasSubstr;
using verbs::EventType;
using verbs::PortState;

constexpr std::uint32_t k4x = 2;
constexpr std::uint32_t kEdr = 32;

// Two nodes of two ports each, on the ideal network.
class CableRequests : public ::testing::Test {
 protected:
  template <class In>
  Reply<Nothing> ask(TopologyCode code, const In& in) {
    return tool.root_call(static_cast<Code>(code), in);
  }
  static ChangeCableIn cable(CableAction action, const char* a, std::uint32_t port_a,
                             const char* b = "", std::uint32_t port_b = 0) {
    ChangeCableIn in;
    in.action = action;
    in.width = k4x;
    in.speed = kEdr;
    put_text(in.a.element, a);
    in.a.port = port_a;
    put_text(in.b.element, b);
    in.b.port = port_b;
    return in;
  }
  Reply<Nothing> change(CableAction action, const char* a, std::uint32_t port_a, const char* b = "",
                        std::uint32_t port_b = 0) {
    return ask(TopologyCode::ChangeCable, cable(action, a, port_a, b, port_b));
  }
  void good(const Reply<Nothing>& reply) { EXPECT_EQ(reply.status, Status::Ok) << reply.reason; }
  void refused(const Reply<Nothing>& reply, Status status, const char* text) {
    EXPECT_EQ(reply.status, status);
    EXPECT_THAT(reply.reason, HasSubstr(text));
  }
  Reply<Nothing> change_switch(SwitchAction action, const char* name, std::uint32_t ports = 4) {
    ChangeSwitchIn in;
    in.action = action;
    put_text(in.name, name);
    in.ports = ports;
    return ask(TopologyCode::ChangeSwitch, in);
  }
  nlohmann::json answer() { return nlohmann::json::parse(w.host.last_text); }
  fabric::Port& port(std::size_t node, std::size_t number = 1) {
    return w.fabric.nodes()[node].hcas[0].ports[number - 1];
  }
  std::vector<EventType> events(Process& of) {
    std::vector<EventType> types;
    for (;;) {
      auto request = of.start(of.zero(), Code::WaitEvent, Nothing{});
      w.executor.advance(std::chrono::milliseconds(1));
      if (!request->done) {
        request->irp.cancel();
        return types;
      }
      const EventType type = of.finish<EventOut>(*request).out.type;
      if (type == EventType::PortErr || type == EventType::PortActive) types.push_back(type);
    }
  }

  Bench w;
  Process program{w, 11, "node0"};
  Process tool{w, 13, "", false};
};

TEST_F(CableRequests, ProgramsSeeACableThatComesAndGoes) {
  good(change(CableAction::Add, "node0", 1, "node1/softib0", 1));
  EXPECT_EQ(answer()["ends"][1]["text"], "port 1 of softib0 on node1");
  EXPECT_EQ(answer()["width"], "4x");
  EXPECT_EQ(answer()["is_up"], true);
  EXPECT_THAT(events(program), ElementsAre(EventType::PortErr, EventType::PortActive));
  EXPECT_EQ(w.fabric.graph().peer_of(port(0)), &port(1));
  good(change(CableAction::Down, "node1", 1));
  EXPECT_EQ(answer()["is_up"], false);
  EXPECT_THAT(events(program), ElementsAre(EventType::PortErr));
  good(change(CableAction::Up, "node0", 1));
  EXPECT_THAT(events(program), ElementsAre(EventType::PortActive));
  good(change(CableAction::Remove, "node1", 1));
  EXPECT_EQ(w.fabric.graph().peer_of(port(0)), nullptr);
  EXPECT_THAT(events(program), ElementsAre(EventType::PortErr, EventType::PortActive))
      << "it is on the ideal network again";
}

TEST_F(CableRequests, SwitchesComeAndGo) {
  good(change_switch(SwitchAction::Add, "hub"));
  const std::string guid = answer()["guid"];
  good(change(CableAction::Add, "node0", 1, "hub", 1));
  good(change(CableAction::Add, "node1", 1, guid.c_str(), 2));
  EXPECT_EQ(port(0).state, PortState::Active);
  EXPECT_TRUE(w.fabric.graph().reaches(port(0), port(1)));
  (void)events(program);
  good(change_switch(SwitchAction::Down, "hub"));
  EXPECT_THAT(events(program), ElementsAre(EventType::PortErr));
  good(change_switch(SwitchAction::Up, "hub"));
  EXPECT_THAT(events(program), ElementsAre(EventType::PortActive));
  good(change_switch(SwitchAction::Remove, guid.c_str()));
  const fabric::Graph& graph = w.fabric.graph();
  const auto& hub = graph.element(graph.element_count() - 1);
  EXPECT_EQ(graph.port_of(hub, 0)->counters.link_downed, 0u) << "port 0 has no link";
  refused(change(CableAction::Show, "hub", 1), Status::NotFound, "no switch, node or HCA \"hub\"");
  EXPECT_EQ(w.fabric.graph().peer_of(port(0)), nullptr);
}

TEST_F(CableRequests, ErrorsAreCountedAndALinkGoesAsOftenAsTheySay) {
  good(change(CableAction::Add, "node0", 1, "node1", 1));
  (void)events(program);
  CableErrorsIn in;
  put_text(in.end.element, "node0");
  in.end.port = 1;
  in.symbol = 5;
  in.downed = 3;
  const std::uint32_t before = port(0).counters.link_downed;
  const std::uint32_t of_peer = port(1).counters.link_downed;
  good(ask(TopologyCode::CableErrors, in));
  EXPECT_EQ(port(0).counters.symbol_errors, 5u);
  EXPECT_EQ(port(0).counters.link_downed, before + 3);
  EXPECT_EQ(port(1).counters.link_downed, of_peer + 3);
  EXPECT_EQ(port(1).state, PortState::Active);
  EXPECT_THAT(events(program), ElementsAre(EventType::PortErr, EventType::PortActive));
  in.end.port = 2;
  refused(ask(TopologyCode::CableErrors, in), Status::NotFound,
          "port 2 of softib0 on node0 has no cable");
  good(change(CableAction::Down, "node0", 1));
  in.end.port = 1;
  refused(ask(TopologyCode::CableErrors, in), Status::InvalidParameter, "is down already");
}

TEST_F(CableRequests, MistakesAreRefusedInWordsAndChangeNothing) {
  good(change(CableAction::Add, "node0", 1, "node1", 1));
  refused(change(CableAction::Add, "node0", 2, "node1", 1), Status::AlreadyExists,
          "port 1 of softib0 on node1 has a cable already, to port 1 of softib0 on node0");
  refused(change(CableAction::Add, "node0", 2, "node0", 2), Status::InvalidParameter,
          "both ends are port 2 of softib0 on node0");
  refused(change(CableAction::Add, "node0", 3, "node1", 2), Status::NotFound,
          "has ports 1 to 2, not 3");
  refused(change(CableAction::Add, "node0", 0, "node1", 2), Status::NotFound,
          "has ports 1 to 2, not 0");
  refused(change(CableAction::Add, "node7", 1, "node1", 2), Status::NotFound,
          "no switch, node or HCA \"node7\" in this fabric");
  refused(change(CableAction::Add, "node0/softib4", 1, "node1", 2), Status::NotFound,
          "node0 has no HCA \"softib4\"");
  refused(change(CableAction::Remove, "node0", 2), Status::NotFound, "has no cable");
  ChangeCableIn odd = cable(CableAction::Add, "node0", 2, "node1", 2);
  odd.width = 3;
  refused(ask(TopologyCode::ChangeCable, odd), Status::InvalidParameter, "the codes 3 for");
  odd.width = 0x102;
  refused(ask(TopologyCode::ChangeCable, odd), Status::InvalidParameter, "the codes 258 for");
  refused(change(static_cast<CableAction>(9), "node0", 1), Status::InvalidParameter, "no action 9");
  refused(change_switch(static_cast<SwitchAction>(9), "hub"), Status::InvalidParameter,
          "no action 9");
  refused(change_switch(SwitchAction::Remove, "hub"), Status::NotFound, "no switch \"hub\"");
  refused(change_switch(SwitchAction::Add, "node0"), Status::AlreadyExists, "the name of HCA");
  refused(change_switch(SwitchAction::Add, ""), Status::InvalidParameter, "needs a name");
  refused(change_switch(SwitchAction::Add, "hub", 0), Status::InvalidParameter, "has 1 to 254");
  refused(change_switch(SwitchAction::Add, "hub", 1'000'000), Status::InvalidParameter,
          "has 1 to 254");
  EXPECT_EQ(w.fabric.graph().peer_of(port(0, 2)), nullptr);
  EXPECT_EQ(w.fabric.graph().switch_count(), 0u);
}

}  // namespace
}  // namespace ib::drivers::test
