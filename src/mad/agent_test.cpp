// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "mad/agent.h"

#include "mad/smp.h"
#include "mad/test/one_element_test.h"

#include <gtest/gtest.h>

#include <bit>
#include <cstring>
#include <random>

namespace ib::mad {
namespace {

constexpr std::uint64_t kNodeGuid = 0x0253460000010000;
constexpr std::uint64_t kPrefix = 0xfe80000000000000;

class Agent : public testing::Test {
 protected:
  Agent() {
    node.description = "node0 softib0";
    node.guid = node.system_image_guid = kNodeGuid;
    node.vendor_id = 0x025346;
    node.device_id = 1;
    node.revision = 1;
    node.partition_cap = 128;
    node.ports = 2;
    port.number = 2;
    port.guid = kNodeGuid + 2;
    port.subnet_prefix = kPrefix;
    port.state = verbs::PortState::Active;
    port.gids = 8;
    port.lid = 0x1234;
    port.sm_lid = 1;
    port.virtual_lanes = 1;
    port.subnet_timeout = 18;
    port.width = port.best_width = 2;
    port.speed = port.best_speed = 32;
    port.physical_state = 5;
    port.capability_mask = 0x00010000;
  }

  static Smp request(std::uint16_t attribute, std::uint32_t modifier = 0) {
    Smp smp;
    smp.header = {kBaseVersion,
                  mgmt_class::kSubnLid,
                  kClassVersion,
                  method::kGet,
                  0,
                  0,
                  0x1122334455667788,
                  attribute,
                  0,
                  modifier};
    return smp;
  }
  Verdict ask(const Smp& smp) {
    const std::vector<std::uint16_t> table(pkeys);
    port.pkeys = table;
    Mad out{};
    const Handled handled =
        answer(OneElement(node, port), port.number, std::bit_cast<Mad>(smp), out);
    port.pkeys = {};
    response = std::bit_cast<Smp>(out);
    reason = handled.reason;
    return handled.verdict;
  }
  // Sends a request, and checks the common part of all answers.
  std::uint16_t status_of(const Smp& smp) {
    EXPECT_EQ(ask(smp), Verdict::Answered) << reason;
    EXPECT_EQ(response.header.method, method::kGetResp);
    EXPECT_EQ(response.header.transaction_id, smp.header.transaction_id);
    EXPECT_EQ(response.header.attribute, smp.header.attribute);
    EXPECT_EQ(response.header.modifier, smp.header.modifier);
    EXPECT_EQ(response.m_key, smp.m_key);
    return response.header.status;
  }
  std::string hex() const {
    std::string text;
    for (const std::uint8_t byte : response.data) {
      constexpr std::string_view kDigits = "0123456789abcdef";
      text += {kDigits[byte >> 4], kDigits[byte & 15]};
    }
    return text;
  }

  NodeFacts node;
  PortFacts port;
  std::vector<std::uint16_t> pkeys{0xffff, 0x8001};
  Smp response;
  std::string reason;
};

TEST_F(Agent, SaysWhichNodeItIs) {
  EXPECT_EQ(status_of(request(smp_attribute::kNodeInfo)), 0);
  EXPECT_EQ(hex(),
            "01010102"
            "0253460000010000"
            "0253460000010000"
            "0253460000010002"
            "0080"
            "0001"
            "00000001"
            "02"
            "025346" +
                std::string(48, '0'));
}

// The agent uses no field of a port that only an HCA's port has.
TEST_F(Agent, ASwitchsPortAnswersAsOne) {
  node.type = NodeType::Switch;
  node.ports = 36;
  port.number = 17;
  port.guid = kNodeGuid;
  port.lid = 0;
  port.gids = 0;
  pkeys.clear();
  EXPECT_EQ(status_of(request(smp_attribute::kNodeInfo)), 0);
  NodeInfo info;
  std::memcpy(&info, response.data.data(), sizeof info);
  EXPECT_EQ(info.node_type, 2);
  EXPECT_EQ(info.num_ports, 36);
  EXPECT_EQ(info.local_port, 17);
  EXPECT_EQ(info.port_guid, Be64(kNodeGuid));
  EXPECT_EQ(status_of(request(smp_attribute::kPortInfo, 17)), 0);
  EXPECT_EQ(status_of(request(smp_attribute::kGuidInfo)), mad_status::kBadField);
  EXPECT_EQ(status_of(request(smp_attribute::kPkeyTable)), mad_status::kBadField);
}

TEST_F(Agent, DescribesTheNode) {
  EXPECT_EQ(status_of(request(smp_attribute::kNodeDescription)), 0);
  EXPECT_STREQ(reinterpret_cast<const char*>(response.data.data()), "node0 softib0");
}

TEST_F(Agent, SaysHowItsPortIs) {
  EXPECT_EQ(status_of(request(smp_attribute::kPortInfo)), 0);
  EXPECT_EQ(hex(),
            "0000000000000000"  // M_Key
            "fe80000000000000"
            "1234"
            "0001"
            "00010000"
            "0000"
            "0000"
            "02"
            "030302"  // 1X and 4X are enabled and supported, 4X is
            "74"      // SDR to QDR, Active
            "52"      // LinkUp, down means polling
            "00"
            "47"
            "50"
            "10"
            "000000"
            "05"
            "00"
            "10"
            "000000000000"
            "08"
            "12"
            "00"
            "00"
            "0000"
            "00000000"
            "0000"
            "23"  // EDR, of FDR and EDR
            "03");
  EXPECT_EQ(status_of(request(smp_attribute::kPortInfo, 2)), 0);
  EXPECT_EQ(status_of(request(smp_attribute::kPortInfo, 1)), mad_status::kBadField);
}

TEST_F(Agent, AnOldSpeedHasNoExtendedOne) {
  port.speed = port.best_speed = 1;
  EXPECT_EQ(status_of(request(smp_attribute::kPortInfo)), 0);
  PortInfo info;
  std::memcpy(&info, response.data.data(), sizeof info);
  EXPECT_EQ(info.speed_active_enabled, 0x11);
  EXPECT_EQ(info.speed_ext_active_supported, 0);
}

TEST_F(Agent, ListsItsTablesBlockByBlock) {
  EXPECT_EQ(status_of(request(smp_attribute::kGuidInfo)), 0);
  EXPECT_EQ(hex(), "0253460000010002" + std::string(112, '0'));
  EXPECT_EQ(status_of(request(smp_attribute::kGuidInfo, 1)), mad_status::kBadField);

  pkeys.assign(33, 0);
  pkeys[1] = 0x8001;
  pkeys[32] = 0x8002;
  EXPECT_EQ(status_of(request(smp_attribute::kPkeyTable)), 0);
  EXPECT_EQ(hex(), "00008001" + std::string(120, '0'));
  EXPECT_EQ(status_of(request(smp_attribute::kPkeyTable, 1)), 0);
  EXPECT_EQ(hex(), "8002" + std::string(124, '0'));
  EXPECT_EQ(status_of(request(smp_attribute::kPkeyTable, 2)), mad_status::kBadField);
  EXPECT_EQ(status_of(request(smp_attribute::kPkeyTable, 1u << 16)), mad_status::kBadField);
  EXPECT_EQ(status_of(request(smp_attribute::kPkeyTable, 2u << 16 | 1)), 0) << "of ibdiagnet";
}

TEST_F(Agent, RefusesInTheAnswersStatus) {
  EXPECT_EQ(status_of(request(0x0012)), mad_status::kAttributeNotSupported);  // a switch's
  Smp other = request(smp_attribute::kNodeInfo);
  other.header.method = method::kSet;
  EXPECT_EQ(status_of(other), mad_status::kAttributeNotSupported) << "nobody can set it";
  other.header.method = 0x03;
  EXPECT_EQ(status_of(other), mad_status::kMethodNotSupported);
  for (const auto field :
       {&MadHeader::base_version, &MadHeader::class_version, &MadHeader::mgmt_class}) {
    other = request(smp_attribute::kPortInfo);
    other.header.*field = 4;
    EXPECT_EQ(status_of(other), mad_status::kBadVersion);
    EXPECT_EQ(hex(), std::string(128, '0'));
  }
}

// A Set(PortInfo) as the port is, but for what `change` does to it.
template <class Change>
Smp set_port_info(const Smp& get, const Smp& now, const Change& change) {
  Smp smp = get;
  smp.header.method = method::kSet;
  PortInfo info;
  std::memcpy(static_cast<void*>(&info), now.data.data(), sizeof info);
  info.physical_down_default &= 15;  // LinkUp is a state that no Set may have
  change(info);
  std::memcpy(smp.data.data(), &info, sizeof info);
  return smp;
}

TEST_F(Agent, TakesASetOfAPortThatCanBe) {
  (void)ask(request(smp_attribute::kPortInfo));
  const Smp now = response;
  const auto verdict_of = [&](auto change) {
    return ask(set_port_info(request(smp_attribute::kPortInfo), now, change));
  };
  const auto refuses = [&](auto change) {
    const Verdict verdict = verdict_of(change);
    return verdict == Verdict::Answered && response.header.status == mad_status::kBadField;
  };
  EXPECT_EQ(verdict_of([](PortInfo&) {}), Verdict::Set);
  EXPECT_EQ(verdict_of([](PortInfo& info) { info.lid = 0xbfff; }), Verdict::Set);
  EXPECT_TRUE(refuses([](PortInfo& info) { info.lid = 0; }));
  EXPECT_TRUE(refuses([](PortInfo& info) { info.lid = 0xc000; }));
  EXPECT_TRUE(refuses([](PortInfo& info) { info.m_key_protect_lmc = 3; })) << "LID 0x1234";
  EXPECT_TRUE(refuses([](PortInfo& info) { info.master_sm_lid = 0; }));
  EXPECT_TRUE(refuses([](PortInfo& info) { info.link_width_enabled = 8; })) << "not supported";
  EXPECT_EQ(verdict_of([](PortInfo& info) { info.link_width_enabled = 0xff; }), Verdict::Set);
  EXPECT_TRUE(refuses([](PortInfo& info) { info.speed_ext_enabled = 4; })) << "HDR";
  EXPECT_EQ(verdict_of([](PortInfo& info) { info.speed_ext_enabled = 30; }), Verdict::Set)
      << "none";
  EXPECT_TRUE(refuses([](PortInfo& info) { info.mtu_sm_sl = 0x60; }));
  EXPECT_TRUE(refuses([](PortInfo& info) { info.operational_vls = 0x50; }));
  EXPECT_TRUE(refuses([](PortInfo& info) { info.physical_down_default = 0x42; }));
  const auto state = [&](PortInfo& info, unsigned wanted) {
    info.speed_supported_state = static_cast<std::uint8_t>(wanted);
    info.physical_down_default = 2;
  };
  EXPECT_TRUE(refuses([&](PortInfo& info) { state(info, 3); })) << "Active to Armed";
  EXPECT_TRUE(refuses([&](PortInfo& info) { state(info, 2); }));
  port.state = verbs::PortState::Init;
  EXPECT_TRUE(refuses([&](PortInfo& info) { state(info, 4); })) << "Init to Active";
  EXPECT_EQ(verdict_of([&](PortInfo& info) { state(info, 3); }), Verdict::Set);
}

TEST_F(Agent, KeepsItsKeyAsItsLevelSays) {
  port.settings.m_key = 0x42;
  Smp get = request(smp_attribute::kPortInfo);
  const auto key_in_answer = [&] {
    PortInfo info;
    std::memcpy(static_cast<void*>(&info), response.data.data(), sizeof info);
    return std::uint64_t{info.m_key};
  };
  for (const unsigned level : {0u, 1u, 2u, 3u}) {
    port.settings.m_key_protect = static_cast<std::uint8_t>(level);
    get.m_key = 0;
    EXPECT_EQ(ask(get), level < 2 ? Verdict::Answered : Verdict::BadKey) << level;
    if (level < 2) {
      EXPECT_EQ(key_in_answer(), level == 0 ? 0x42u : 0u);
    }
    Smp set = get;
    set.header.method = method::kSet;
    EXPECT_EQ(ask(set), Verdict::BadKey) << level;
    get.m_key = 0x42;
    EXPECT_EQ(ask(get), Verdict::Answered);
    EXPECT_EQ(key_in_answer(), 0x42u);
  }
}

TEST_F(Agent, LeavesToASubnetManagerWhatIsItsOwn) {
  EXPECT_EQ(ask(request(smp_attribute::kSmInfo)), Verdict::Passed);
  Smp trap = request(smp_attribute::kNotice);
  trap.header.method = method::kTrap;
  EXPECT_EQ(ask(trap), Verdict::Passed);
}

TEST_F(Agent, AnswersADirectedRouteThatEndsHere) {
  Smp smp = request(smp_attribute::kNodeInfo);
  smp.header.mgmt_class = mgmt_class::kSubnDirected;
  EXPECT_EQ(status_of(smp), kDirectionBit);
  smp.header.class_specific = 0x0001;  // one hop to go
  EXPECT_EQ(ask(smp), Verdict::Ignored);
  EXPECT_NE(reason.find("hops"), std::string::npos) << reason;
  smp.header.class_specific = 0x0201;  // it has arrived
  EXPECT_EQ(status_of(smp), kDirectionBit);
  EXPECT_EQ(response.header.class_specific, 0x0201);
}

TEST_F(Agent, DoesNotAnswerResponses) {
  Smp smp = request(smp_attribute::kNodeInfo);
  for (const unsigned method : {0x81u, 0x82u, 0xffu}) {
    smp.header.method = static_cast<std::uint8_t>(method);
    EXPECT_EQ(ask(smp), Verdict::Ignored);
  }
}

// Any input: an answer is marked as one and belongs to its request.
TEST_F(Agent, PropertyAnyBytesGetAnAnswerOrNone) {
  std::minstd_rand random(1);
  for (int round = 0; round < 20000; ++round) {
    Mad bytes;
    for (std::byte& byte : bytes) byte = static_cast<std::byte>(random() >> 8);
    Smp smp = std::bit_cast<Smp>(bytes);
    if (random() % 4 != 0) {
      const Smp sensible = request(static_cast<std::uint16_t>(0x10 + random() % 8),
                                   static_cast<std::uint32_t>(random() % 3));
      smp.header = sensible.header;
    }
    if ((smp.header.method & method::kResponseBit) != 0) {
      EXPECT_EQ(ask(smp), Verdict::Ignored);
    } else if (ask(smp) == Verdict::Answered) {
      (void)status_of(smp);
    }
  }
}

}  // namespace
}  // namespace ib::mad
