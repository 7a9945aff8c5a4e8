// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Links train again with the widths and speeds that their ends enable.
#include "fabric/port_states.h"

#include "fabric/management/subnet_test.h"
#include "mad/link_ability.h"

namespace ib::fabric::test {
namespace {

namespace id = mad::smp_attribute;
using mad::PortInfo;
using mad::method::kGet;
using mad::method::kSet;
using verbs::PortState;

constexpr unsigned kDown = 1;

// The link between port 2 of a switch and node 1.
struct Link : Subnet {
  explicit Link(SubnetManagement management = SubnetManagement::Programs)
      : Subnet("star:2", management) {}

  Port& of_switch() { return *graph().port_of(the_switch(), 2); }
  Port& of_node() { return port_of_node(1); }

  template <class Change>
  PortInfo set(Change change, unsigned state = 0) {
    auto info = read<PortInfo>(ask(along({1}, kGet, id::kPortInfo, 2)));
    info.speed_supported_state = static_cast<std::uint8_t>(state);
    info.physical_down_default = 0;
    change(info);
    Smp smp = along({1}, kSet, id::kPortInfo, 2);
    write(smp, info);
    const Smp answer = ask(smp);
    EXPECT_EQ(answer.header.status, mad::kDirectionBit);
    return read<PortInfo>(answer);
  }
  PortInfo train() {
    return set([](PortInfo&) {}, kDown);
  }

 private:
  using Smp = mad::Smp;
};

TEST(LinkTraining, AWidthThatIsEnabledCountsWhenTheLinkTrainsAgain) {
  Link t;
  PortInfo info = t.set([](PortInfo& to) { to.link_width_enabled = 1; });
  EXPECT_EQ(info.link_width_enabled, 1);
  EXPECT_EQ(info.link_width_active, 2) << "until then it stays";
  info = t.train();
  EXPECT_EQ(info.link_width_active, 1);
  EXPECT_EQ(info.link_width_supported, 3) << "the port can still do more";
  EXPECT_EQ(info.speed_supported_state & 15, 2);
  EXPECT_EQ(t.of_node().width, 1) << "the other end too";
  EXPECT_EQ(t.of_node().state, PortState::Init);
  info = t.set([](PortInfo& to) { to.link_width_enabled = 0xff; }, kDown);
  EXPECT_EQ(info.link_width_enabled, 3);
  EXPECT_EQ(info.link_width_active, 2);
}

TEST(LinkTraining, ALinkThatTrainsAgainSetsPortStateChangeOfItsSwitch) {
  Link t;
  const auto bit = [&] { return t.graph().switch_of(t.the_switch()).facts.port_state_change; };
  t.graph().switch_of(t.the_switch()).facts.port_state_change = false;
  t.set([](PortInfo&) {}, static_cast<unsigned>(PortState::Armed));
  EXPECT_FALSE(bit()) << "a manager knows what it sets";
  t.train();
  EXPECT_TRUE(bit());
}

TEST(LinkTraining, SpeedsOfBothMasks) {
  Link t;
  PortInfo info = t.set([](PortInfo& to) { to.speed_ext_enabled = 1; }, kDown);
  EXPECT_EQ(t.of_node().speed, 16) << "FDR";
  info = t.set([](PortInfo& to) { to.speed_ext_enabled = mad::kNoExtendedSpeed; }, kDown);
  EXPECT_EQ(info.speed_ext_enabled, mad::kNoExtendedSpeed);
  EXPECT_EQ(info.speed_ext_active_supported, 0x03);
  EXPECT_EQ(info.speed_active_enabled, 0x47) << "QDR";
  info = t.set([](PortInfo& to) { to.speed_active_enabled = 2; }, kDown);
  EXPECT_EQ(info.speed_active_enabled, 0x22) << "DDR";
  EXPECT_EQ(t.of_node().speed, 2);
}

TEST(LinkTraining, NothingInCommonKeepsTheLinkDownUntilThereIs) {
  Link t;
  t.of_node().settings.width_enabled = 2;
  PortInfo info = t.set([](PortInfo& to) { to.link_width_enabled = 1; }, kDown);
  EXPECT_EQ(info.speed_supported_state & 15, 1);
  EXPECT_EQ(info.physical_down_default >> 4, kPolling);
  EXPECT_EQ(t.of_node().state, PortState::Down);
  EXPECT_EQ(t.of_node().physical_state, kPolling);
  info = t.set([](PortInfo& to) { to.link_width_enabled = 3; });
  EXPECT_EQ(info.physical_down_default >> 4, kLinkUp);
  EXPECT_EQ(t.of_node().state, PortState::Init);
  EXPECT_EQ(t.of_node().width, 2);
}

TEST(LinkTraining, APortThatIsTakenDownComesBackWithWhatIsEnabled) {
  Link t(SubnetManagement::Softib);
  t.of_node().settings.width_enabled = 1;
  set_enabled(t.fabric, t.of_switch(), false, t.changes);
  EXPECT_EQ(t.of_node().width, 2);
  set_enabled(t.fabric, t.of_switch(), true, t.changes);
  EXPECT_EQ(t.of_node().width, 1);
  EXPECT_EQ(t.of_switch().width, 1);
  EXPECT_EQ(t.of_switch().state, PortState::Active);
}

}  // namespace
}  // namespace ib::fabric::test
