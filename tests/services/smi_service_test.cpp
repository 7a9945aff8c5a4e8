// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Traps of agents to a subnet manager at another port: which, with what in them, how often.
#include "services/smi/smi_service.h"

#include "drivers/soft_hca/handlers.h"
#include "fabric/key_violation.h"
#include "fabric/link_errors.h"
#include "fabric/port_states.h"
#include "mad/mgmt_class.h"
#include "mad/smp.h"
#include "services/smi/traps.h"
#include "services/umad/umad_file.h"
#include "services_world.h"

#include <gtest/gtest.h>

#include <bit>

namespace ib::services::test {
namespace {

using namespace std::chrono_literals;

// Its MADs.
class Manager final : public UmadReader {
 public:
  Manager(UmadService& service, std::uint32_t port)
      : file_(service, *this, port, UmadOpener{"manager", 1}) {
    EXPECT_EQ(file_.enable_pkey().status, 0u);
    UmadRegisterIn in;
    in.qpn = 0;
    in.mgmt_class = mad::mgmt_class::kSubnLid;
    in.class_version = 1;
    in.methods[0] = 1u << mad::method::kTrap;
    EXPECT_EQ(file_.add_agent(in).status, 0u);
  }
  // UmadReader
  bool has_room() const override { return true; }
  void deliver(UmadItem item) override {
    mad::Mad mad{};
    std::memcpy(mad.data(), item.bytes.data() + sizeof(UmadHeader), mad.size());
    came.push_back(std::bit_cast<mad::Smp>(mad));
  }
  bool has_gone() const override { return false; }
  void end() override {}

  sa::Notice notice(std::size_t i = 0) const {
    return sa::decode_some<sa::Notice>(std::as_bytes(std::span(came.at(i).data)));
  }
  std::vector<mad::Smp> came;

 private:
  UmadFile file_;
};

// Node 0 has the manager, node 1 the agent that sends.
class SmiServiceTest : public ::testing::Test {
 protected:
  void SetUp() override {
    umad.emplace(w.bench.executor, w.bench.fabric, *w.gsi);
    service.emplace(w.bench.core().smi, w.bench.fabric, w.bench.executor, *umad);
    w.bench.core().on_port_changes = [this](const fabric::PortChanges& changes) {
      service->on_changes(changes);
    };
    manager.emplace(*umad, w.index(0));
    w.bench.fabric.set_capabilities(w.port(0), w.port(0).capability_mask | fabric::kIsSm);
    for (std::size_t i : {0u, 1u}) w.port(i).sm_lid = w.port(0).lid;
  }
  void TearDown() override {
    w.bench.core().on_port_changes = {};
    w.run(60s);
    EXPECT_EQ(service->traps_under_way(), 0u);
    manager.reset();
    service.reset();
    umad.reset();
  }
  void errors(std::size_t node, const fabric::LinkErrors& errors) {
    fabric::PortChanges changes;
    fabric::add_errors(w.bench.fabric, w.port(node), errors, changes);
    drivers::apply_changes(w.bench.core(), changes);
    w.run(1ms);
  }
  void repress(const mad::Smp& trap) {
    mad::Smp smp = trap;
    smp.header.method = mad::method::kTrapRepress;
    GsiAddress to{w.index(0), {}};
    to.remote.lid = w.port(1).lid;
    service->send(to, std::bit_cast<mad::Mad>(smp));
  }
  std::vector<std::uint16_t> numbers() {
    std::vector<std::uint16_t> result;
    for (std::size_t i = 0; i < manager->came.size(); ++i) {
      result.push_back(manager->notice(i).trap);
    }
    return result;
  }

  ServicesWorld w;
  std::optional<UmadService> umad;
  std::optional<SmiService> service;
  std::optional<Manager> manager;
};

TEST_F(SmiServiceTest, ErrorsOfALinkBecomeTrapsAboveTheirThresholds) {
  w.port(1).settings.error_thresholds = 0x88;
  fabric::LinkErrors few;
  few.physical = few.overrun = 8;
  errors(1, few);
  EXPECT_TRUE(manager->came.empty());
  fabric::LinkErrors many;
  many.physical = many.overrun = 9;
  many.watchdog = 1;
  errors(1, many);
  EXPECT_EQ(numbers(), (std::vector<std::uint16_t>{129, 130, 131}));
  const sa::Notice notice = manager->notice();
  EXPECT_EQ(notice.type, sa::notice_type::kUrgent);
  EXPECT_EQ(notice.producer, sa::producer::kChannelAdapter);
  EXPECT_EQ(notice.issuer_lid, w.port(1).lid);
  EXPECT_EQ(notice.details[3], w.port(1).lid);  // LIDADDR
  EXPECT_EQ(notice.details[4], 1);              // PORTNO
}

TEST_F(SmiServiceTest, ATrapIsRepeatedUntilItIsRepressedAndUnderWayOnce) {
  fabric::LinkErrors errors_of_link;
  errors_of_link.watchdog = 1;
  errors(1, errors_of_link);
  errors(1, errors_of_link);
  EXPECT_EQ(manager->came.size(), 1u) << "the second one says nothing new";
  w.run(1100ms);  // SubnetTimeOut 18 is 1.07 s
  EXPECT_EQ(manager->came.size(), 2u);
  repress(manager->came[0]);
  EXPECT_EQ(service->traps_under_way(), 0u);
  w.run(10s);
  EXPECT_EQ(manager->came.size(), 2u);
  errors(1, errors_of_link);
  EXPECT_EQ(manager->came.size(), 3u) << "a new one";
}

TEST_F(SmiServiceTest, WrongKeysAreTraps) {
  fabric::KeyViolation violation;
  violation.from = &w.port(0);
  violation.to = &w.port(1);
  violation.is_pkey = true;
  violation.key = 0x8001;
  violation.service_level = 3;
  violation.source_qp = 0x112233;
  violation.target_qp = 0x445566;
  service->on_key_violation(violation, w.port(1));
  violation.is_pkey = false;
  violation.key = 0x11223344;
  service->on_key_violation(violation, w.port(1));
  w.run(1ms);
  ASSERT_EQ(numbers(), (std::vector<std::uint16_t>{257, 258}));
  const sa::Notice notice = manager->notice(1);
  EXPECT_EQ(notice.type, sa::notice_type::kSecurity);
  EXPECT_EQ(notice.issuer_lid, w.port(1).lid);
  const auto& d = notice.details;
  EXPECT_EQ(d[3], w.port(0).lid);
  EXPECT_EQ(d[5], w.port(1).lid);
  const std::array<std::uint8_t, 12> keys{0x11, 0x22, 0x33, 0x44, 0x30, 0x11,
                                          0x22, 0x33, 0,    0x44, 0x55, 0x66};
  EXPECT_TRUE(std::equal(keys.begin(), keys.end(), d.begin() + 6));
  EXPECT_TRUE(std::ranges::equal(w.port(0).gid(), std::span(d).subspan(18, 16)));
  EXPECT_TRUE(std::ranges::equal(w.port(1).gid(), std::span(d).subspan(34, 16)));
}

TEST_F(SmiServiceTest, NobodyIsToldWhereSoftibManages) {
  w.bench.fabric.set_capabilities(w.port(0), 0);
  fabric::LinkErrors errors_of_link;
  errors_of_link.watchdog = 1;
  errors(1, errors_of_link);
  EXPECT_EQ(service->traps_under_way(), 0u);
}

// A switch that drops packets for their P_Key says where.
TEST(BadKeyNotice, OfASwitchHasItsPort) {
  fabric::Graph graph(2, 8);
  graph.append_element(fabric::ElementKind::ChannelAdapter, 1);
  graph.append_port(2, verbs::LinkLayer::InfiniBand);
  graph.append_element(fabric::ElementKind::Switch, 3);
  for (int i = 0; i < 3; ++i) graph.append_port(3, verbs::LinkLayer::InfiniBand);
  fabric::KeyViolation violation;
  violation.from = violation.to = graph.port(0);
  violation.is_pkey = true;
  violation.key = 0x8001;
  violation.service_level = 3;
  violation.source_qp = 0x112233;
  violation.target_qp = 0x445566;
  const sa::Notice notice = bad_key_notice(graph, violation, *graph.port(3));
  EXPECT_EQ(notice.trap, 259);
  EXPECT_EQ(notice.producer, sa::producer::kSwitch);
  EXPECT_EQ(notice.issuer_lid, graph.port(1)->lid);
  const std::array<std::uint8_t, 16> expected{0,    0xff, 0,    1,    0, 1,    0x80, 1,
                                              0x30, 0x11, 0x22, 0x33, 0, 0x44, 0x55, 0x66};
  EXPECT_TRUE(std::equal(expected.begin(), expected.end(), notice.details.begin()));
  EXPECT_EQ(notice.details[49], graph.port(1)->lid);
  EXPECT_EQ(notice.details[50], 2) << "PORTNO";
}

}  // namespace
}  // namespace ib::services::test
