// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "drivers/soft_hca/objects/traffic.h"

#include "drivers/test/driver_bench_test.h"

#include <gtest/gtest.h>

namespace ib::drivers::test {
namespace {

using namespace verbs::control;

using verbs::QpState;
using verbs::QpType;

// A queue pair of node0 that sends to ports of node1, by its counters.
struct Sender {
  Sender() {
    to(kOther);
    entry().connection.mtu = verbs::Mtu::B1024;
  }
  void to(std::uint16_t lid) { p.connect(made.handle, 0x77, lid, 14); }
  void reset() { p.good(p.modify(made.handle, QpState::Reset, 0)); }
  hca::QpEntry& entry() { return *b.arena().qp(control::index_of(made.handle)); }
  void write(std::uint64_t bytes, std::uint64_t more_packets, std::uint64_t more_bytes) {
    entry().requester.messages.fetch_add(1);
    entry().requester.bytes.fetch_add(bytes);
    entry().requester.more_packets.fetch_add(more_packets);
    entry().requester.more_bytes.fetch_add(more_bytes);
  }
  PortTotals of(std::uint16_t lid) { return all_port_totals(b.core())[lid - 1u]; }

  static constexpr std::uint16_t kOwn = 1;
  static constexpr std::uint16_t kOther = 3;
  static constexpr std::uint16_t kThird = 4;
  static constexpr std::uint64_t kBase = 24;  // LRH, BTH and ICRC
  Bench b;
  Process p{b, 11, "node0"};
  Reply<QpOut> made = p.qp(QpType::Rc, p.pd(), p.cq());
};

TEST(Traffic, AWriteCrossesBothPortsAndItsAcknowledgementToo) {
  Sender s;
  s.write(1025, 1, 3);
  const PortTotals own = s.of(Sender::kOwn);
  EXPECT_EQ(own.sent_messages, 1u);
  EXPECT_EQ(own.sent_bytes, 1025u);
  EXPECT_EQ(own.sent.all, 2u);
  EXPECT_EQ(own.sent.bytes, 1028u + 16 + 2 * Sender::kBase);
  EXPECT_EQ(own.received_messages, 0u);
  EXPECT_EQ(own.received.all, 1u);
  EXPECT_EQ(own.received.bytes, Sender::kBase + 4);
  const PortTotals other = s.of(Sender::kOther);
  EXPECT_EQ(other.received_messages, 1u);
  EXPECT_EQ(other.received_bytes, 1025u);
  EXPECT_EQ(other.received.bytes, own.sent.bytes);
  EXPECT_EQ(other.sent.bytes, own.received.bytes);
  EXPECT_EQ(other.served.writes, 1u);
  EXPECT_EQ(own.served.writes, 0u);
}

TEST(Traffic, AnAnswerIsSentByThePeer) {
  Sender s;
  s.entry().requester.messages.store(2);
  s.entry().lock.answers.reads.store(1);
  s.entry().lock.answers.bytes.store(1025);
  s.entry().lock.answers.more_packets.store(1);
  s.entry().lock.answers.more_bytes.store(3 + 4);
  s.entry().lock.answers.atomics.store(1);
  const PortTotals other = s.of(Sender::kOther);
  EXPECT_EQ(other.sent_messages, 2u);
  EXPECT_EQ(other.sent_bytes, 1025u + 8);
  EXPECT_EQ(other.sent.all, 3u);
  EXPECT_EQ(other.sent.bytes, 1028u + 4 + 4 + (4 + 8) + 3 * Sender::kBase);
  EXPECT_EQ(other.received.bytes, 16 + 28 + 2 * Sender::kBase);
  EXPECT_EQ(s.of(Sender::kOwn).received.bytes, other.sent.bytes);
  EXPECT_EQ(other.served.reads, 1u);
  EXPECT_EQ(other.served.atomics, 1u);
  EXPECT_EQ(other.served.writes, 0u);
}

TEST(Traffic, StaysWithThePortsThatItCrossed) {
  Sender s;
  s.write(8, 0, 0);
  s.reset();
  s.to(Sender::kThird);
  s.write(8, 0, 0);
  s.write(8, 0, 0);
  EXPECT_EQ(s.of(Sender::kOther).received_messages, 1u);
  EXPECT_EQ(s.of(Sender::kThird).received_messages, 2u);
  s.p.good(s.p.call(Code::DestroyQp, IndexIn{s.made.handle, 0}));
  EXPECT_EQ(s.of(Sender::kOther).received_messages, 1u);
  EXPECT_EQ(s.of(Sender::kThird).received_messages, 2u);
  EXPECT_EQ(s.of(Sender::kOwn).sent_messages, 3u);
}

TEST(Traffic, OfTheDeadIsNotLost) {
  Sender s;
  s.write(8, 0, 0);
  s.p.exit();
  s.b.executor.advance(std::chrono::seconds(1));
  EXPECT_EQ(s.b.objects(), 0u);
  EXPECT_EQ(s.of(Sender::kOwn).sent_messages, 1u);
  EXPECT_EQ(s.of(Sender::kOther).received_messages, 1u);
}

}  // namespace
}  // namespace ib::drivers::test
