// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "fabric/link_errors.h"

#include "fabric/management/subnet_test.h"

namespace ib::fabric::test {
namespace {

TEST(LinkErrors, CountWhereTheyAreSeen) {
  Subnet t("star:2");
  Port& port = t.port_of_node(0);
  const Port& peer = *t.graph().peer_of(port);
  LinkErrors errors;
  errors.symbol = 7;
  errors.recovery = 2;
  errors.remote = 3;
  errors.discards = 4;
  add_errors(t.fabric, port, errors, t.changes);
  add_errors(t.fabric, port, errors, t.changes);
  EXPECT_EQ(port.counters.symbol_errors, 14u);
  EXPECT_EQ(port.counters.remote_physical_errors, 6u);
  EXPECT_EQ(port.counters.transmit_discards, 8u);
  EXPECT_EQ(port.counters.link_error_recovery, 4u);
  EXPECT_EQ(peer.counters.link_error_recovery, 4u) << "both ends recover";
  EXPECT_EQ(peer.counters.symbol_errors, 0u);
  EXPECT_TRUE(t.changes.empty()) << "no threshold";
}

TEST(LinkErrors, StayAtTheLargestValue) {
  Subnet t("star:2");
  LinkErrors errors;
  errors.symbol = 0xffff'fff0;
  add_errors(t.fabric, t.port_of_node(0), errors, t.changes);
  add_errors(t.fabric, t.port_of_node(0), errors, t.changes);
  EXPECT_EQ(t.port_of_node(0).counters.symbol_errors, 0xffff'ffffu);
}

// More errors in a row than the threshold says, each time.
TEST(LinkErrors, AreTroubleAboveTheThresholdOnly) {
  Subnet t("star:2");
  Port& port = t.port_of_node(0);
  port.settings.error_thresholds = 0x84;  // LocalPhyErrors 8, OverrunErrors 4
  LinkErrors errors;
  errors.physical = 8;
  errors.overrun = 4;
  add_errors(t.fabric, port, errors, t.changes);
  EXPECT_EQ(port.counters.receive_errors, 12u);
  EXPECT_EQ(port.counters.local_physical_errors, 8u);
  EXPECT_EQ(port.counters.buffer_overruns, 4u);
  EXPECT_EQ(port.counters.local_link_integrity_errors, 0u);
  EXPECT_EQ(port.counters.buffer_overrun_errors, 0u);
  EXPECT_TRUE(t.changes.empty());
  errors.physical = 27;
  errors.overrun = 5;
  add_errors(t.fabric, port, errors, t.changes);
  EXPECT_EQ(port.counters.local_link_integrity_errors, 3u);
  EXPECT_EQ(port.counters.buffer_overrun_errors, 1u);
  ASSERT_EQ(t.changes.size(), 1u);
  EXPECT_EQ(t.changes[0].port, t.graph().index_of(port));
  EXPECT_EQ(t.changes[0].what, change::kLinkIntegrity | change::kBufferOverrun);
}

TEST(LinkErrors, SilentFlowControlHasNoThreshold) {
  Subnet t("star:2");
  LinkErrors errors;
  errors.watchdog = 1;
  add_errors(t.fabric, t.port_of_node(0), errors, t.changes);
  ASSERT_EQ(t.changes.size(), 1u);
  EXPECT_EQ(t.changes[0].what, change::kFlowControl);
}

}  // namespace
}  // namespace ib::fabric::test
