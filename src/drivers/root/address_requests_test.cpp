// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Nodes take the addresses of the network namespaces in which their programs run.
#include "drivers/root/in_a_namespace_test.h"
#include "drivers/test/driver_bench_test.h"
#include "hca/layout/flow.h"

#include <gtest/gtest.h>

#include <initializer_list>
#include <string>
#include <utility>

namespace ib::drivers::test {
namespace {

using namespace verbs::control;
using verbs::EventType;
using verbs::QpType;

SetAddressesIn request(const char* node,
                       std::initializer_list<std::pair<std::uint32_t, const char*>> addresses,
                       std::uint64_t network = kOther) {
  SetAddressesIn in;
  put_text(in.node, node);
  in.network_namespace = network;
  for (const auto& [ip, interface] : addresses) {
    in.addresses[in.count].ip = verbs::ipv4_gid(ip);
    put_text(in.addresses[in.count++].interface, interface);
  }
  return in;
}

class NodeAddresses : public ::testing::Test {
 protected:
  Status set(const SetAddressesIn& in) { return tool.root_call(Code::SetAddresses, in).status; }
  std::string addresses(std::size_t node) {
    std::string text;
    for (const fabric::Address& address : b.fabric.nodes()[node].addresses) {
      text += verbs::address_text(address.ip) + ' ' + address.interface + ';';
    }
    return text;
  }
  const fabric::Port& port(std::size_t node, std::size_t number) {
    return b.fabric.nodes()[node].hcas[0].ports[number - 1];
  }

  Bench b{0, in_a_namespace(), verbs::LinkLayer::Ethernet};
  Process tool{b, 9, "", false};
};

TEST_F(NodeAddresses, AreThoseOfTheInterfacesInTheirOrder) {
  ASSERT_EQ(set(request("node0", {{kOne, "eth0"}, {kTwo, "eth1"}})), Status::Ok);
  EXPECT_EQ(addresses(0), "10.0.0.1 eth0;10.0.0.2 eth1;");
  EXPECT_EQ(port(0, 1).gids[1].gid, verbs::ipv4_gid(kOne));
  EXPECT_EQ(port(0, 1).gids[1].interface, "eth0");
  EXPECT_EQ(port(0, 2).gids[1].gid, verbs::ipv4_gid(kTwo)) << "the second port has the second";
  const auto index = b.fabric.graph().index_of(port(0, 1));
  EXPECT_EQ(verbs::Gid(b.arena().port(index)->gids[1]), verbs::ipv4_gid(kOne));
}

TEST_F(NodeAddresses, StayTheDefaultWhereSoftibdIs) {
  const std::string before = addresses(0);
  EXPECT_EQ(set(request("node0", {{kOne, "eth0"}}, kOwn)), Status::Ok);
  EXPECT_EQ(addresses(0), before);
  EXPECT_EQ(set(request("node0", {})), Status::Ok) << "loopback alone";
  EXPECT_EQ(addresses(0), before);
  ASSERT_EQ(set(request("node0", {{kOne, "eth0"}})), Status::Ok);
  EXPECT_EQ(set(request("node0", {{kTwo, "eth0"}}, kOwn)), Status::Ok);
  EXPECT_EQ(addresses(0), before) << "once nobody uses the others";
}

TEST_F(NodeAddresses, ThatWereConfiguredStay) {
  ASSERT_EQ(b.fabric.set_addresses(b.fabric.nodes()[0], {{verbs::ipv4_gid(kTwo), "", 0}}),
            Status::Ok);
  EXPECT_EQ(set(request("node0", {{kOne, "eth0"}})), Status::Ok);
  EXPECT_EQ(addresses(0), "10.0.0.2 ;");
}

TEST_F(NodeAddresses, OfAnotherNodeStayThere) {
  ASSERT_EQ(set(request("node0", {{kOne, "eth0"}})), Status::Ok);
  EXPECT_EQ(set(request("node1", {{kOne, "eth0"}, {kTwo, "eth0"}})), Status::Ok);
  EXPECT_EQ(addresses(1), "10.0.0.2 eth0;");
  const std::string before = addresses(0);
  EXPECT_EQ(set(request("node1", {{kOne, "eth0"}})), Status::Ok) << "nothing is left: the default";
  EXPECT_EQ(addresses(1), "127.77.0.2 lo;127.78.0.2 lo;");
  EXPECT_EQ(addresses(0), before);
}

TEST_F(NodeAddresses, ThatProgramsUseDoNotGo) {
  Process p(b, 11, "node0");
  const auto busy = tool.root_call(Code::SetAddresses, request("node0", {{kOne, "eth0"}}));
  EXPECT_EQ(busy.status, Status::DeviceBusy);
  EXPECT_NE(busy.reason.find("node0 keeps the address 127.77.0.1, 127.78.0.1, which pid 11"),
            std::string::npos)
      << busy.reason;
  EXPECT_EQ(addresses(0), "127.77.0.1 lo;127.78.0.1 lo;");
  p.exit();
  EXPECT_EQ(set(request("node0", {{kOne, "eth0"}})), Status::Ok);
  Process q(b, 12, "node0");
  EXPECT_EQ(set(request("node0", {{kOne, "eth0"}, {kTwo, "eth0"}})), Status::Ok)
      << "one that comes takes none away";
  EXPECT_EQ(addresses(0), "10.0.0.1 eth0;10.0.0.2 eth0;");
}

TEST_F(NodeAddresses, ThatComeAreAnEvent) {
  ASSERT_EQ(set(request("node0", {{kOne, "eth0"}})), Status::Ok);
  Process p(b, 11, "node0");
  ASSERT_EQ(set(request("node0", {{kOne, "eth0"}, {kTwo, "eth0"}})), Status::Ok);
  const auto event = p.root_call<EventOut>(Code::WaitEvent);
  EXPECT_EQ(event.out.type, EventType::GidChange);
  EXPECT_EQ(event.out.index, 1u) << "the other port's GIDs are the same";
  EXPECT_NE(b.trace().find("node0 has the address 10.0.0.1, 10.0.0.2 now"), std::string::npos);
}

TEST_F(NodeAddresses, LeadConnectionsToWhoHasThemNow) {
  Process p(b, 11, "node0");
  const auto qp = p.qp(QpType::Rc, p.pd(), p.cq());
  p.connect(qp.handle, 0x4242, verbs::ipv4_gid(127u << 24 | 77 << 16 | 2));  // of node1
  const auto& connection = b.arena().qp(index_of(qp.handle))->connection;
  EXPECT_EQ(connection.dest_port, b.fabric.graph().index_of(port(1, 1)));
  ASSERT_EQ(set(request("node1", {{kOne, "eth0"}})), Status::Ok);
  EXPECT_EQ(connection.dest_port, hca::kNone);
  EXPECT_EQ(connection.flow.load(), hca::flow::blocked(Cause::PeerUnknown));
  ASSERT_EQ(set(request("node1", {})), Status::Ok);
  EXPECT_EQ(connection.dest_port, b.fabric.graph().index_of(port(1, 1)));
}

TEST_F(NodeAddresses, AreCheckedLikeEverythingThatClientsSay) {
  const std::string before = addresses(0);
  EXPECT_EQ(set(request("node9", {})), Status::NotFound);
  SetAddressesIn in = request("node0", {});
  in.count = kMaxInterfaceAddresses + 1;
  EXPECT_EQ(set(in), Status::InvalidParameter);
  EXPECT_EQ(set(request("node0", {{0, "eth0"}})), Status::InvalidParameter) << "0.0.0.0";
  EXPECT_EQ(set(request("node0", {{224u << 24, "eth0"}})), Status::InvalidParameter);
  for (const char* name : {"", "a/b", "..", "a b", "a\nb", "x:1"}) {
    EXPECT_EQ(set(request("node0", {{kOne, name}})), Status::InvalidParameter) << name;
  }
  EXPECT_EQ(addresses(0), before);
}

TEST_F(NodeAddresses, BeyondTheGidTableAreLeftOut) {
  SetAddressesIn in = request("node0", {});
  for (; in.count < 20; ++in.count) {
    in.addresses[in.count].ip = verbs::ipv4_gid(kOne + in.count);
    put_text(in.addresses[in.count].interface, "eth0");
  }
  EXPECT_EQ(set(in), Status::Ok);
  EXPECT_EQ(b.fabric.nodes()[0].addresses.size(), verbs::limits::kGidTableLength - 1);
}

}  // namespace
}  // namespace ib::drivers::test
