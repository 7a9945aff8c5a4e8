// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "drivers/root/in_a_namespace_test.h"
#include "drivers/test/driver_bench_test.h"
#include "fabric/addressing/ip_interfaces.h"

#include <gtest/gtest.h>

#include <initializer_list>
#include <string>

namespace ib::drivers::test {
namespace {

using verbs::control::SetAddressesIn;
using verbs::control::SetIpInterfaceIn;

class IpInterfaceRequests : public ::testing::Test {
 protected:
  SetIpInterfaceIn interface(std::initializer_list<std::uint32_t> addresses) {
    SetIpInterfaceIn in;
    put_text(in.name, "ib0");
    in.network_namespace = kOther;
    in.node_guid = b.fabric.nodes()[0].hcas[0].node_guid;
    in.port = 1;
    in.pkey = 0xffff;
    for (const std::uint32_t ip : addresses) in.addresses[in.count++] = {verbs::ipv4_gid(ip), 24};
    return in;
  }
  Status set(const SetIpInterfaceIn& in) {
    return driver.root_call(Code::SetIpInterface, in).status;
  }
  // As `softib run` does before a program starts in the network.
  void start_program(std::initializer_list<std::uint32_t> addresses) {
    SetAddressesIn in;
    put_text(in.node, "node0");
    in.network_namespace = kOther;
    for (const std::uint32_t ip : addresses) {
      in.addresses[in.count].ip = verbs::ipv4_gid(ip);
      put_text(in.addresses[in.count++].interface, "ib0");
    }
    ASSERT_EQ(driver.root_call(Code::SetAddresses, in).status, Status::Ok);
  }
  std::string addresses_of_node() {
    std::string text;
    for (const fabric::Address& one : b.fabric.nodes()[0].addresses) {
      text += verbs::address_text(one.ip) + ' ' + one.interface + ';';
    }
    return text;
  }
  std::size_t holders(std::uint32_t ip) {
    return b.fabric.ip_interfaces().with_address(verbs::ipv4_gid(ip)).size();
  }

  Bench b{0, in_a_namespace()};
  Process driver{b, 9, "node0", true, control::attach_flag::kCaEvents};
};

TEST_F(IpInterfaceRequests, AnInterfaceIsThereAsLongAsItsDriver) {
  ASSERT_EQ(set(interface({kOne})), Status::Ok);
  EXPECT_EQ(holders(kOne), 1u);
  ASSERT_EQ(set(interface({kTwo})), Status::Ok);
  EXPECT_EQ(holders(kOne), 0u);
  EXPECT_EQ(holders(kTwo), 1u);
  SetIpInterfaceIn gone;
  put_text(gone.name, "ib0");
  EXPECT_EQ(set(gone), Status::Ok);
  EXPECT_EQ(holders(kTwo), 0u);
  ASSERT_EQ(set(interface({kOne})), Status::Ok);
  driver.exit();
  EXPECT_EQ(holders(kOne), 0u);
}

TEST_F(IpInterfaceRequests, TheAddressesOfProgramsInItsNetworkFollowIt) {
  ASSERT_EQ(set(interface({kOne})), Status::Ok);
  start_program({kOne});
  EXPECT_EQ(addresses_of_node(), "10.0.0.1 ib0;");
  ASSERT_EQ(set(interface({kOne, kTwo})), Status::Ok);
  EXPECT_EQ(addresses_of_node(), "10.0.0.1 ib0;10.0.0.2 ib0;");
  SetIpInterfaceIn other = interface({});
  other.network_namespace = kOther + 1;
  ASSERT_EQ(set(other), Status::Ok);
  EXPECT_EQ(addresses_of_node(), "10.0.0.1 ib0;10.0.0.2 ib0;") << "of another network";
  ASSERT_EQ(set(interface({kTwo})), Status::Ok);
  EXPECT_EQ(addresses_of_node(), "10.0.0.2 ib0;");
}

TEST_F(IpInterfaceRequests, WhatNoInterfaceHasIsRefused) {
  SetIpInterfaceIn in = interface({kOne});
  put_text(in.name, "a/b");
  EXPECT_EQ(set(in), Status::InvalidParameter);
  in = interface({kOne});
  in.pkey = 0x8000;
  EXPECT_EQ(set(in), Status::InvalidParameter);
  in = interface({0xe0000001});
  EXPECT_EQ(set(in), Status::InvalidParameter) << "multicast";
  in = interface({kOne});
  in.addresses[0].bits = 33;
  EXPECT_EQ(set(in), Status::InvalidParameter);
  in = interface({kOne});
  in.count = 65;
  EXPECT_EQ(set(in), Status::InvalidParameter);
  in = interface({kOne});
  in.port = 99;
  EXPECT_EQ(set(in), Status::NotFound);
  in = interface({kOne});
  in.node_guid = b.fabric.nodes()[1].hcas[0].node_guid;
  EXPECT_EQ(set(in), Status::NotFound) << "another node's";
  Process tool{b, 10, "", false};
  EXPECT_EQ(tool.root_call(Code::SetIpInterface, interface({kOne})).status, Status::InvalidState);
  EXPECT_EQ(holders(kOne), 0u);
}

}  // namespace
}  // namespace ib::drivers::test
