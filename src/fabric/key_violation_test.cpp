// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "fabric/key_violation.h"

#include "fabric/management/subnet_test.h"

namespace ib::fabric::test {
namespace {

constexpr std::uint16_t kPkey = 0x8001;

KeyViolation violation(Subnet& t, bool is_pkey) {
  KeyViolation v;
  v.from = &t.port_of_node(0);
  v.to = &t.port_of_node(1);
  v.is_pkey = is_pkey;
  v.key = kPkey;
  return v;
}

TEST(KeyViolation, CountsAtTheReceiver) {
  Subnet t("star:2");
  const Port& receiver = t.port_of_node(1);
  EXPECT_EQ(count_violations(t.fabric, violation(t, true), 3), &receiver);
  EXPECT_EQ(count_violations(t.fabric, violation(t, false), 2), &receiver);
  EXPECT_EQ(receiver.settings.p_key_violations, 3u);
  EXPECT_EQ(receiver.settings.q_key_violations, 2u);
  count_violations(t.fabric, violation(t, true), 0xffff'ffff);
  EXPECT_EQ(receiver.settings.p_key_violations, 0xffffu) << "it stays there";
}

TEST(KeyViolation, ASwitchThatEnforcesPartitionsDropsThePacket) {
  Subnet t("star:2");
  Port& first = *t.graph().peer_of(t.port_of_node(0));
  Port& last = *t.graph().peer_of(t.port_of_node(1));
  last.settings.enforcement = 4;
  EXPECT_EQ(count_violations(t.fabric, violation(t, true), 1), &last);
  EXPECT_EQ(last.counters.transmit_constraint_errors, 1u);
  first.settings.enforcement = 8;
  EXPECT_EQ(count_violations(t.fabric, violation(t, true), 1), &first);
  EXPECT_EQ(first.counters.receive_constraint_errors, 1u);
  EXPECT_EQ(count_violations(t.fabric, violation(t, false), 1), &t.port_of_node(1)) << "a Q_Key";
  first.pkeys = last.pkeys = {0xffff, kPkey};
  EXPECT_EQ(count_violations(t.fabric, violation(t, true), 1), &t.port_of_node(1));
  EXPECT_EQ(t.port_of_node(1).settings.p_key_violations, 1u);
}

TEST(KeyViolation, APortThatIsSaidToDropCountsIfItDoes) {
  Subnet t("fat-tree:levels=2,ports=4");
  Port& middle = *t.graph().port_of(t.the_switch(), 3);
  KeyViolation v = violation(t, true);
  v.at = &middle;
  EXPECT_EQ(count_violations(t.fabric, v, 1), nullptr);
  EXPECT_EQ(t.port_of_node(1).settings.p_key_violations, 0u) << "no packet came there";
  middle.settings.enforcement = kEnforcesOut;
  EXPECT_EQ(count_violations(t.fabric, v, 2), &middle);
  EXPECT_EQ(middle.counters.transmit_constraint_errors, 2u);
}

TEST(KeyViolation, EachDirectionHasItsBit) {
  Subnet t("star:2");
  t.graph().peer_of(t.port_of_node(0))->settings.enforcement = 4;
  t.graph().peer_of(t.port_of_node(1))->settings.enforcement = 8;
  EXPECT_EQ(count_violations(t.fabric, violation(t, true), 1), &t.port_of_node(1));
}

}  // namespace
}  // namespace ib::fabric::test
