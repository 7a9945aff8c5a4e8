// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Datagrams of several packets (docs/design/0031): who may send which, what is written where, and
// what is counted; by examples and against a model.
#include "hca/layout/large_datagrams.h"
#include "hca/requester/message_count.h"
#include "hca/test/poster_bench_test.h"
#include "verbs/limits.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <random>

namespace ib::hca {
namespace {

using verbs::Mtu;
using verbs::QpState;
using verbs::QpType;
using verbs::WcStatus;
using verbs::WrOpcode;

constexpr std::uint16_t kLid = 7;
constexpr std::uint32_t kQkey = 0x11;
constexpr std::uint32_t kMost = verbs::limits::kMaxLargeDatagram;
constexpr std::uint32_t kRoom = kMost + 4096;  // of each side's memory
constexpr std::byte kUntouched{0xee};
constexpr std::uint64_t kHeaders = 8 + 12 + 8 + 4;  // LRH, BTH, DETH, ICRC

struct Flags {
  bool mine = true;
  bool theirs = true;
};

// kPeer is behind a switch, on a way with an MTU of its own.
struct LargeBench : PairBench {
  explicit LargeBench(Flags flags = {}, Mtu of_port = Mtu::B2048, Mtu of_way = Mtu::B2048)
      : PairBench(Path::ProcessVm, kRoom, QpType::Ud) {
    const Arena& arena = memory.arena();
    PortEntry& port = *arena.port(0);
    port.pkeys[0].store(0xffff);
    port.mtu.store(of_port);
    port.has_switches.store(1);
    arena.lid(kLid)->store(1);
    peer->id.qkey = kQkey;
    peer->id.takes_large = flags.theirs;
    own->id.takes_large = flags.mine;
    WayKey key;
    key.lid = kLid;
    key.pkey = 0xffff;
    way = arena.way(way_place(key.word()));
    way->key.store(key.word());
    WayWord word;
    word.mtu = of_way;
    way->word.store(word.word());
    std::fill(theirs.begin(), theirs.end(), kUntouched);
    RequesterConfig config;
    config.qp = kMine;
    config.type = QpType::Ud;
    config.pd = 1;
    config.send_cq = 0;
    config.max_wr = 16;
    config.max_sge = 4;
    config.max_inline = 128;
    config.signal_all = true;
    config.takes_large = flags.mine;
    requester = std::make_unique<Requester>(plane, config);
  }
  void send(std::uint32_t bytes, std::uint32_t qpn = kPeer, WrOpcode opcode = WrOpcode::Send) {
    const Sge sge{std::bit_cast<std::uint64_t>(mine.data()), bytes, kLkey};
    SendWqe wqe;
    wqe.opcode = opcode;
    wqe.av.dlid = kLid;
    wqe.remote_qpn = qpn;
    wqe.remote_qkey = kQkey;
    wqe.imm = 0x12345678;
    wqe.wr_id = ++posted;
    wqe.sge = &sge;
    wqe.num_sge = 1;
    const OpScope scope(plane);
    EXPECT_EQ(requester->post(wqe), Status::Ok);
  }
  void expect_way(std::uint64_t packets, std::uint64_t payload) const {
    EXPECT_EQ(way->packets.load(), packets);
    EXPECT_EQ(way->bytes.load(), packets * kHeaders + (payload + 3) / 4 * 4);
  }
  Cause traced() const { return host.traced.empty() ? Cause::None : host.traced.back().cause; }

  WayEntry* way = nullptr;
};

TEST(LargeDatagram, IsCountedInPacketsAtBothEndsAndOnItsWay) {
  LargeBench b;
  b.receive(1, 40 + 5001);
  b.send(5001, kPeer, WrOpcode::SendWithImm);
  EXPECT_EQ(b.next(), WcStatus::Success);
  const Cqe* const got = b.memory.completion(1, 0);
  ASSERT_NE(got, nullptr);
  EXPECT_EQ(got->byte_len, 5041u);
  EXPECT_EQ(got->imm, 0x12345678u);
  EXPECT_TRUE(std::equal(b.mine.begin(), b.mine.begin() + 5001, b.theirs.begin() + 40));
  const std::uint64_t on_wire = 3 * kHeaders + 5004 + 4;
  EXPECT_EQ(b.way->packets.load(), 3u);
  EXPECT_EQ(b.way->bytes.load(), on_wire);
  const auto& sent = b.own->requester;
  EXPECT_EQ(sent.messages.load(), 1u);
  EXPECT_EQ(sent.bytes.load(), 5001u);
  EXPECT_EQ(sent.more_packets.load(), 2u);
  EXPECT_EQ(sent.bytes.load() + sent.more_bytes.load(), on_wire);
  const auto& received = b.peer->responder;
  EXPECT_EQ(received.messages.load(), 1u);
  EXPECT_EQ(received.bytes.load(), 5001u);
  EXPECT_EQ(received.unicast_packets.load(), 3u);
  EXPECT_EQ(received.unicast_bytes.load(), on_wire);
}

TEST(LargeDatagram, HasPacketsOfTheMtuOfItsWay) {
  LargeBench b({}, Mtu::B4096, Mtu::B1024);
  b.receive(1, 40 + 4096);
  b.send(4096);
  EXPECT_EQ(b.next(), WcStatus::Success);
  b.expect_way(4, 4096);
  EXPECT_EQ(b.peer->responder.unicast_packets.load(), 4u);
}

TEST(LargeDatagram, AGroupGetsNone) {
  LargeBench b;
  b.send(2049, kMulticastQpn);
  EXPECT_EQ(b.next(), WcStatus::LocLenErr);
}

// A port in the middle drops the packet, whatever its receiver takes.
TEST(LargeDatagram, APlainSenderLosesWhatTheWayDoesNotCarry) {
  LargeBench b({false, true}, Mtu::B4096, Mtu::B1024);
  b.receive(1, 40 + 4096);
  b.send(4096);
  EXPECT_EQ(b.next(), WcStatus::Success);
  EXPECT_EQ(b.traced(), Cause::WayMtu);
  b.expect_way(0, 0);
  EXPECT_EQ(b.own->requester.more_packets.load(), 0u);
}

// Its packets pass the ports before the one where they end, and come to no receiver.
TEST(LargeDatagram, WhoseWayEndsIsCountedUpToThere) {
  LargeBench b;
  WayWord word;
  word.stop = Cause::WayPartition;
  word.mtu = Mtu::B2048;
  b.way->word.store(word.word());
  b.receive(1, 40 + 5000);
  b.send(5000);
  EXPECT_EQ(b.next(), WcStatus::Success);
  EXPECT_EQ(b.traced(), Cause::WayPartition);
  b.expect_way(3, 5000);
  EXPECT_EQ(b.own->requester.more_packets.load(), 2u);
  EXPECT_EQ(b.memory.arena().port(0)->arrivals.unicast_packets.load(), 0u);
}

TEST(LargeDatagram, ThatWaitsForAReceiveIsCountedOnce) {
  LargeBench b;
  b.receive(1, 40 + 5000);
  b.send(5000);
  b.send(5000);
  EXPECT_EQ(b.next(), WcStatus::Success);
  EXPECT_EQ(b.next(), std::nullopt);
  for (int i = 0; i < 3; ++i) {
    b.host.time += std::chrono::milliseconds(2);
    EXPECT_TRUE(b.progress());
  }
  b.receive(2, 40 + 5000);
  EXPECT_FALSE(b.progress());
  EXPECT_EQ(b.next(), WcStatus::Success);
  b.expect_way(6, 10'000);
  EXPECT_EQ(b.own->requester.more_packets.load(), 4u);
  EXPECT_EQ(b.peer->responder.unicast_packets.load(), 6u);
}

TEST(LargeDatagram, ThatItsReceiverDropsHasComeToItsPort) {
  LargeBench b;
  b.receive(1, 40 + 4999);
  b.send(5000);
  EXPECT_EQ(b.next(), WcStatus::Success);
  EXPECT_EQ(b.traced(), Cause::RemoteLength);
  EXPECT_EQ(b.memory.arena().port(0)->arrivals.unicast_packets.load(), 3u);
  b.expect_way(3, 5000);
  EXPECT_EQ(b.theirs[0], kUntouched);
}

// Device memory does not decide about what its own queue pair may send.
TEST(LargeDatagram, AForgedFlagOfTheSenderIsNotBelieved) {
  LargeBench b({false, true});
  b.own->id.takes_large = 1;
  b.receive(1, 40 + 5000);
  b.send(5000);
  EXPECT_EQ(b.next(), WcStatus::LocLenErr);
  EXPECT_EQ(b.own->id.state.load(), QpState::Sqe);
}

// A plain queue pair whose flag somebody has written gets no more than its receive holds.
TEST(LargeDatagram, AForgedFlagOfTheReceiverWritesNothingOutsideOfItsReceive) {
  for (const std::uint8_t forged : std::array<std::uint8_t, 3>{1, 2, 0xff}) {
    LargeBench b({true, false});
    b.peer->id.takes_large = forged;
    b.receive(1, 40 + 2048);
    b.send(kMost);
    EXPECT_EQ(b.next(), WcStatus::Success);
    EXPECT_EQ(b.traced(), Cause::RemoteLength);
    EXPECT_EQ(std::count(b.theirs.begin(), b.theirs.end(), kUntouched), kRoom);
  }
}

TEST(LargeDatagram, TheLookTellsWhoTakesThem) {
  LargeBench b;
  const Arena& arena = b.memory.arena();
  verbs::AddressVector av;
  av.dlid = kLid;
  EXPECT_TRUE(takes_large(arena, 0, av, kPeer));
  EXPECT_FALSE(takes_large(arena, 0, av, kPeer + (1u << 20))) << "another use of its entry";
  EXPECT_FALSE(takes_large(arena, 0, av, 0));
  EXPECT_FALSE(takes_large(arena, 0, av, 0xffffff));
  EXPECT_FALSE(takes_large(arena, kNone, av, kPeer));
  av.dlid = kLid + 1;
  EXPECT_FALSE(takes_large(arena, 0, av, kPeer)) << "no port has that LID";
  av.dlid = kLid;
  b.peer->id.type = QpType::Rc;
  EXPECT_FALSE(takes_large(arena, 0, av, kPeer));
  b.peer->id.type = QpType::Ud;
  b.peer->id.takes_large = 0;
  EXPECT_FALSE(takes_large(arena, 0, av, kPeer));
}

// --- Against a model ---

struct Case {
  Flags flags;
  Mtu of_port = Mtu::B2048;
  Mtu of_way = Mtu::B2048;
  bool is_there = true;
  std::uint32_t bytes = 0;
  std::vector<std::uint32_t> pieces;  // of the receive

  std::uint32_t room() const {
    std::uint32_t sum = 0;
    for (const std::uint32_t piece : pieces) sum += piece;
    return sum;
  }
};

Case random_case(std::mt19937& random) {
  const auto below = [&](std::uint32_t n) { return static_cast<std::uint32_t>(random() % n); };
  Case c;
  c.flags = {below(4) != 0, below(4) != 0};
  c.of_port = static_cast<Mtu>(1 + below(5));
  c.of_way = static_cast<Mtu>(1 + below(5));
  c.is_there = below(8) != 0;
  // Often a multiple of the MTU, or a byte more or less.
  const std::uint32_t mtu = std::min(mtu_bytes(c.of_port), mtu_bytes(c.of_way));
  c.bytes = below(3) == 0 ? below(kMost + 100) : below(17) * mtu + below(3);
  if (c.bytes != 0 && below(2) == 0) --c.bytes;
  if (below(16) == 0) c.bytes = kMost - 1 + below(3);
  const std::uint32_t count = 1 + below(4);
  std::uint32_t left = c.bytes + 40 + below(200);
  if (below(4) == 0) left = below(left);
  for (std::uint32_t i = 1; i < count; ++i) {
    c.pieces.push_back(below(left + 1));
    left -= c.pieces.back();
  }
  c.pieces.push_back(left);
  return c;
}

struct Expected {
  WcStatus status = WcStatus::Success;
  bool delivered = false;
  bool passes_way = true;
  std::uint64_t packets = 1;
};

Expected expect_of(const Case& c) {
  const std::uint32_t own = mtu_bytes(c.of_port);
  const std::uint32_t path = std::min(own, mtu_bytes(c.of_way));
  Expected e;
  const bool both = c.flags.mine && (c.flags.theirs || !c.is_there);
  if (c.bytes > own && (!both || c.bytes > kMost)) {
    return {WcStatus::LocLenErr, false, false, 0};
  }
  if (c.bytes > path && !both) return {WcStatus::Success, false, false, 1};
  if (c.bytes > path) e.packets = (c.bytes + path - 1) / path;
  e.delivered = c.is_there && c.bytes + 40 <= c.room();
  return e;
}

// Pieces lie one after the other, with a gap of 8 bytes behind each, and nothing else is written.
void expect_memory(const LargeBench& b, const Case& c, bool delivered) {
  std::vector<std::byte> wanted(kRoom, kUntouched);
  std::uint32_t at = 0;
  std::uint32_t in_message = 0;
  for (const std::uint32_t piece : c.pieces) {
    const std::uint32_t from = std::max(in_message, 40u);
    const std::uint32_t end = std::min(in_message + piece, c.bytes + 40);
    if (delivered && from < end) {
      std::copy_n(b.mine.begin() + from - 40, end - from, wanted.begin() + at + from - in_message);
    }
    at += piece + 8;
    in_message += piece;
  }
  const auto differs = std::mismatch(wanted.begin(), wanted.end(), b.theirs.begin()).first;
  ASSERT_TRUE(differs == wanted.end()) << "byte " << differs - wanted.begin();
}

void check(const Case& c) {
  LargeBench b(c.flags, c.of_port, c.of_way);
  std::vector<Sge> room;
  std::uint64_t at = std::bit_cast<std::uint64_t>(b.theirs.data());
  for (const std::uint32_t piece : c.pieces) {
    room.push_back({at, piece, kRkey});
    at += piece + 8;
  }
  b.memory.post_receive(*b.peer, 1, room);
  b.send(c.bytes, c.is_there ? kPeer : kPeer + (1u << 20));
  const Expected wanted = expect_of(c);
  ASSERT_EQ(b.next(), wanted.status);
  ASSERT_EQ(b.memory.completion(1, 0) != nullptr, wanted.delivered);
  ASSERT_NO_FATAL_FAILURE(expect_memory(b, c, wanted.delivered));
  const std::uint64_t on_wire = wanted.packets * kHeaders + (c.bytes + 3u) / 4 * 4;
  ASSERT_EQ(b.way->packets.load(), wanted.passes_way ? wanted.packets : 0);
  ASSERT_EQ(b.way->bytes.load(), wanted.passes_way ? on_wire : 0);
  const auto& sent = b.own->requester;
  const bool left = wanted.status == WcStatus::Success;
  ASSERT_EQ(sent.messages.load() + sent.more_packets.load(), wanted.packets);
  ASSERT_EQ(sent.bytes.load() + sent.more_bytes.load(), left ? on_wire : 0);
  const auto& port = b.memory.arena().port(0)->arrivals;
  const auto& got = b.peer->responder;
  const std::uint64_t arrived = wanted.passes_way ? wanted.packets : 0;
  ASSERT_EQ(got.unicast_packets.load(), wanted.delivered ? arrived : 0);
  ASSERT_EQ(got.unicast_packets.load() + port.unicast_packets.load(), arrived);
  ASSERT_EQ(got.unicast_bytes.load() + port.unicast_bytes.load(), arrived != 0 ? on_wire : 0);
}

TEST(LargeDatagramProperty, OutcomeMemoryAndCountersAreThoseOfTheModel) {
  std::mt19937 random(20270301);
  for (int i = 0; i < 400; ++i) {
    const Case c = random_case(random);
    SCOPED_TRACE(::testing::Message()
                 << "case " << i << ": " << c.bytes << " bytes, room " << c.room() << " in "
                 << c.pieces.size() << ", flags " << c.flags.mine << c.flags.theirs << ", MTUs "
                 << mtu_bytes(c.of_port) << " " << mtu_bytes(c.of_way) << ", there " << c.is_there);
    ASSERT_NO_FATAL_FAILURE(check(c));
  }
}

}  // namespace
}  // namespace ib::hca
