// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "services/rdma_cm/words/words.h"

#include "cm/event_text.h"
#include "services/rdma_cm/service/listing.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

namespace ib::services::rdma_cm {
namespace {

using testing::Test;
using ucma::Error;
using verbs::LinkLayer;

EndpointAddress at(const verbs::Gid& ip, std::uint16_t port) {
  EndpointAddress address = any_address(verbs::is_ipv4(ip) ? Family::Ipv4 : Family::Ipv6, port);
  address.ip = ip;
  return address;
}
EndpointAddress at(std::uint32_t ipv4, std::uint16_t port) {
  return at(verbs::ipv4_gid(ipv4), port);
}

class ConnectionWords : public Test {
 protected:
  fabric::Fabric fabric =
      *fabric::Fabric::create({.nodes = {"a", "b", "c"},
                               .link_layers = {{.node = "c", .link_layer = LinkLayer::Ethernet}}});
  fabric::Node& node(std::size_t index) { return fabric.nodes()[index]; }
  fabric::Hca& hca(std::size_t index) { return node(index).hcas[0]; }
  fabric::Port& port(std::size_t index) { return hca(index).ports[0]; }
  EndpointAddress address(std::size_t index) { return at(node(index).addresses[0].ip, 7471); }
  std::string obstacle() { return obstacle_text(fabric, port(0), &port(1)); }
  // Why node a cannot reach it, as rdma_resolve_addr is told.
  std::string no_way(const EndpointAddress& to, Error expected) {
    Way way;
    const EndpointAddress from = any_address(to.family);
    EXPECT_EQ(find_way(fabric, node(0), from, to, way), expected);
    return no_way_text(fabric, node(0), from, to, expected);
  }
};

TEST_F(ConnectionWords, APlaceIsAnAddressAndItsNode) {
  EXPECT_EQ(place_text(fabric, address(1)), "127.77.0.2:7471 (b)");
  EXPECT_EQ(place_text(fabric, at(0x0a010203, 5)), "10.1.2.3:5");
}

TEST_F(ConnectionWords, EachObstacleHasItsPort) {
  EXPECT_EQ(obstacle(), "");
  port(1).state = verbs::PortState::Down;
  EXPECT_EQ(obstacle(), "port 1 of softib0 of b is down");
  port(0).state = verbs::PortState::Down;
  EXPECT_EQ(obstacle(), "port 1 of softib0 of a is down") << "the own one first";
  port(0).state = port(1).state = verbs::PortState::Active;
  hca(1).asleep = true;
  EXPECT_EQ(obstacle(), "port 1 of softib0 of b sleeps");
  hca(1).present = false;
  EXPECT_EQ(obstacle(), "port 1 of softib0 of b is gone");
  hca(1).present = true;
  hca(1).asleep = false;
  EXPECT_EQ(obstacle_text(fabric, port(0), nullptr),
            "no port has the address of the path any more");
  EXPECT_EQ(
      obstacle_text(fabric, port(0), &port(2)),
      "port 1 of softib0 of a is an InfiniBand port, port 1 of softib0 of c an Ethernet port");
  port(1).pkeys = {0x9234};
  EXPECT_EQ(obstacle(),
            "port 1 of softib0 of a and port 1 of softib0 of b have no partition in common "
            "(`softib partition add`)");
}

TEST_F(ConnectionWords, ACableLeadsToItsOtherEndOnly) {
  fabric::Fabric other = *fabric::Fabric::create({.nodes = {"a", "b"}, .hcas_per_node = 2});
  fabric::Port& a = other.nodes()[0].hcas[0].ports[0];
  ASSERT_EQ(other.graph().connect(a, other.nodes()[0].hcas[1].ports[0]), Status::Ok);
  EXPECT_EQ(obstacle_text(other, a, &other.nodes()[1].hcas[0].ports[0]),
            "no cable leads from port 1 of softib0 of a to port 1 of softib0 of b");
}

TEST_F(ConnectionWords, AnAddressOfNobodyNamesThoseThatThereAre) {
  EXPECT_EQ(no_way(at(0x0a010203, 5), Error::NetUnreachable),
            "10.1.2.3 belongs to no node of this fabric; nodes have 127.77.0.1 (a), 127.77.0.2 "
            "(b), 127.77.0.3 (c)");
  EXPECT_EQ(no_way(at(verbs::make_gid(0xfd00'0000'0000'0000, 9), 5), Error::NetUnreachable),
            "fd00::9 belongs to no node of this fabric; its nodes have no IPv6 address");
}

TEST_F(ConnectionWords, AFabricOfManyNodesNamesEightAddresses) {
  std::vector<std::string> names;
  for (int i = 0; i < 20; ++i) names.push_back("n" + std::to_string(i));
  const fabric::Fabric large = *fabric::Fabric::create({.nodes = names});
  const std::string text = no_way_text(large, large.nodes()[0], any_address(Family::Ipv4),
                                       at(0x0a010203, 5), Error::NetUnreachable);
  EXPECT_NE(text.find("(n7) ..."), std::string::npos) << text;
  EXPECT_EQ(text.find("(n8)"), std::string::npos) << text;
}

TEST_F(ConnectionWords, ADownPortIsNamedAtItsNode) {
  port(1).state = verbs::PortState::Down;
  EXPECT_EQ(no_way(address(1), Error::HostUnreachable), "port 1 of softib0 of b is down");
  port(1).state = verbs::PortState::Active;
  hca(0).asleep = true;
  EXPECT_EQ(no_way(address(1), Error::NoDevice), "port 1 of softib0 of a sleeps");
}

TEST_F(ConnectionWords, OtherLinkLayersAreNamed) {
  EXPECT_EQ(
      no_way(address(2), Error::HostUnreachable),
      "a has InfiniBand ports only, c has Ethernet ports only, and the two link layers do not "
      "reach each other");
}

TEST_F(ConnectionWords, AForeignAddressCannotBeBound) {
  EXPECT_EQ(not_own_text(node(0), address(1)),
            "127.77.0.2 is not an address of a, which has 127.77.0.1");
}

TEST(ConnectionTexts, EveryReasonSaysWhatToCheck) {
  for (const cm::NumberedText& one : cm::reject_reasons()) {
    const std::string text = rejection_text(static_cast<std::uint16_t>(one.number));
    EXPECT_NE(text.find("(reason " + std::to_string(one.number) + ", " + one.text.name + ")"),
              std::string::npos)
        << text;
    EXPECT_NE(text.find("; check "), std::string::npos) << text;
  }
  for (const cm::NumberedText& one : cm::sidr_statuses()) {
    const std::string text = datagram_refusal_text(static_cast<std::uint32_t>(one.number));
    EXPECT_NE(text.find(one.text.sentence), std::string::npos) << text;
  }
  EXPECT_NE(rejection_text(999).find("(reason 999, unknown)"), std::string::npos);
}

TEST(ConnectionTexts, AMessageHasItsNumberOfTries) {
  EXPECT_EQ(message_text({Unanswered::Kind::Req, 16}), "REQ (sent 16 times)");
  EXPECT_EQ(message_text({Unanswered::Kind::SidrReq, 1}), "SIDR_REQ (sent 1 time)");
  EXPECT_EQ(message_text({Unanswered::Kind::Dreq}), "DREQ");
}

// Each number that programs see has a card of `softib explain`.
TEST(ConnectionTexts, EveryEventAndErrorOfTheServiceIsInTheTables) {
  const auto events = cm::rdma_events();
  ASSERT_EQ(events.size(), static_cast<std::size_t>(ucma::Event::TimewaitExit) + 1);
  for (std::size_t i = 0; i < events.size(); ++i) {
    EXPECT_EQ(events[i].number, static_cast<std::int32_t>(i));
  }
  EXPECT_STREQ(events[static_cast<std::size_t>(ucma::Event::Rejected)].text.name,
               "RDMA_CM_EVENT_REJECTED");
  for (const Error error :
       {Error::NoEntry, Error::Again, Error::NoMemory, Error::Access, Error::Fault, Error::NoDevice,
        Error::Invalid, Error::NoSpace, Error::NotImplemented, Error::NoProtocol,
        Error::AddressInUse, Error::NoAddress, Error::NetDown, Error::NetUnreachable,
        Error::IsConnected, Error::TimedOut, Error::HostUnreachable}) {
    const auto errors = cm::rdma_errors();
    EXPECT_TRUE(std::any_of(errors.begin(), errors.end(), [error](const cm::NumberedText& one) {
      return one.number == static_cast<std::int32_t>(error);
    })) << static_cast<std::int32_t>(error);
  }
}

TEST(ConnectionListing, BothEndsFindEachOther) {
  const EndpointAddress client = at(0x7f4d0001, 40000);
  const EndpointAddress server = at(0x7f4d0002, 7471);
  std::vector<Listing> all(6);
  all[0].space = all[1].space = "TCP";
  all[0].local = all[1].peer = client;
  all[0].peer = all[1].local = server;
  all[2].qpn = all[3].peer_qpn = 5;  // of drivers: no addresses
  all[2].peer_qpn = all[3].qpn = 6;
  all[4].space = "UDP";  // the same addresses in another space
  all[4].local = server;
  all[4].peer = client;
  all[5].space = "TCP";  // a listener
  all[5].local = server;
  find_other_ends(all);
  EXPECT_EQ(all[0].other_end, 1u);
  EXPECT_EQ(all[1].other_end, 0u);
  EXPECT_EQ(all[2].other_end, 3u);
  EXPECT_EQ(all[3].other_end, 2u);
  EXPECT_FALSE(all[4].other_end);
  EXPECT_FALSE(all[5].other_end);
}

}  // namespace
}  // namespace ib::services::rdma_cm
