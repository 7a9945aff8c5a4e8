// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "services/sm/sm_service.h"

#include "fabric/management/subnet_test.h"
#include "platform/virtual_executor.h"

#include <chrono>
#include <optional>

namespace ib::services {
namespace {

using namespace std::chrono_literals;

class SmServiceTest : public testing::Test, private fabric::Smi::Receiver {
 protected:
  SmServiceTest() { smi.set_receiver(this); }

  void start(std::uint32_t burst) {
    service.emplace(
        smi, fabric, executor,
        [this](fabric::Port& port, bool is_sm) {
          const std::uint32_t others = port.capability_mask & ~fabric::kIsSm;
          fabric.set_capabilities(port, is_sm ? others | fabric::kIsSm : others);
        },
        SmService::Options{.port = port(0), .settings = {}, .random = 1, .burst = burst});
  }
  std::uint32_t port(std::size_t node) {
    return fabric.graph().index_of(fabric.nodes()[node].hcas[0].ports[0]);
  }
  const fabric::Port& port_of(std::size_t node) { return fabric.nodes()[node].hcas[0].ports[0]; }

  bool on_smp(std::uint32_t at, const fabric::PacketLids& lids, const mad::Mad& mad) override {
    return service && service->on_smp(at, lids, mad);
  }
  void on_bad_key(std::uint32_t, const fabric::PacketLids&, const mad::Mad&) override {}

  platform::VirtualExecutor executor;
  fabric::Fabric fabric =
      fabric::test::make_subnet("fat-tree:hcas=12,ports=6", fabric::SubnetManagement::Programs);
  fabric::Smi smi{fabric, {.now = [this] { return executor.now(); }, .on_changes = {}}};
  std::optional<SmService> service;
};

TEST_F(SmServiceTest, BringsItsSubnetUpAndHasIsSmAsLongAsItIsThere) {
  start(4096);
  EXPECT_NE(port_of(0).capability_mask & fabric::kIsSm, 0u);
  executor.advance(1ms);
  EXPECT_TRUE(service->manager().is_settled());
  for (std::size_t node = 0; node < 12; ++node) {
    EXPECT_EQ(port_of(node).state, verbs::PortState::Active);
    EXPECT_NE(port_of(node).lid, 0);
  }
  service.reset();
  EXPECT_EQ(port_of(0).capability_mask & fabric::kIsSm, 0u);
}

TEST_F(SmServiceTest, OtherWorkHasItsTurnBetweenBursts) {
  start(10);
  bool was_settled = true;
  executor.post([&] { was_settled = service->manager().is_settled(); });
  executor.advance(1ms);
  EXPECT_FALSE(was_settled);
  EXPECT_TRUE(service->manager().is_settled());
}

TEST_F(SmServiceTest, SweepsByTheClockAndOnRequest) {
  start(4096);
  executor.advance(1ms);
  const auto first = service->manager().generation();
  executor.advance(11s);
  const auto second = service->manager().generation();
  EXPECT_GT(second, first);
  service->request_sweep(true);
  executor.advance(1ms);
  EXPECT_GT(service->manager().generation(), second);
}

}  // namespace
}  // namespace ib::services
