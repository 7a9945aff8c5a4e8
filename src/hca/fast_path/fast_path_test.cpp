// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The fast path must refuse whatever the slow path would refuse, delay or do otherwise, and must
// leave no trace then; and what it does must look like the slow path's work.
#include "hca/layout/flow.h"
#include "hca/test/poster_bench_test.h"

#include <gtest/gtest.h>

#include <optional>
#include <ostream>

namespace ib::hca {
namespace {

using verbs::QpState;
using verbs::QpType;
using verbs::WcStatus;
using verbs::WrOpcode;
namespace access = verbs::access;

constexpr std::uint32_t kBacking = 3;

// The pair after two good messages, the peer's memory mapped here, or never to be (ProcessVm): the
// first finds the peer, with the second it and its key are cached for the fast path.
struct Warm : PairBench {
  explicit Warm(QpType type = QpType::Rc, Path path = Path::Adopted) : PairBench(path, 4096, type) {
    if (path == Path::Adopted) adopt();
    for (int i = 0; i < 2; ++i) {
      EXPECT_EQ(post(WrOpcode::RdmaWrite, 16, verbs::send_flag::kSignaled), Status::Ok);
      EXPECT_EQ(next(), WcStatus::Success);
    }
  }
  void adopt() {
    rkey().adopted.address = rkey().id.address;
    rkey().adopted.length = rkey().id.length;
    rkey().adopted.backing = kBacking;
    rkey().adopted.backing_generation = 1;
    host.backing = theirs.data();
    host.backing_size = theirs.size();
  }
  // As softibd does after it has changed an entry that posters read.
  void tell() { advance_epoch(memory.arena(), peer->id.owner_slot); }
  SendWqe request(WrOpcode opcode) {
    SendWqe wqe;
    wqe.wr_id = ++posted;
    wqe.opcode = opcode;
    wqe.flags = verbs::send_flag::kSignaled;
    wqe.sge = &sge;
    wqe.num_sge = 1;
    wqe.imm = 0x01020304;
    wqe.rkey = kRkey;
    wqe.remote_address = std::bit_cast<std::uint64_t>(theirs.data());
    return wqe;
  }
  bool goes_fast(const SendWqe& wqe) {
    const OpScope scope(plane);
    return requester->fast_path().try_post(wqe);
  }
  KeyEntry& rkey() { return *memory.arena().key(key_index(kRkey)); }
  // Registers the local memory again under the same key, with a difference.
  void relabel(void (*change)(LocalKey&)) {
    plane.local_keys().hide(key_index(kLkey));
    LocalKey& key = plane.local_keys().at(key_index(kLkey));
    change(key);
    key.key = kLkey;
  }

  Sge sge{std::bit_cast<std::uint64_t>(mine.data()), 8, kLkey};
};

// All traces of a short message.
struct Traces {
  std::uint64_t receives, intent, messages, bytes, sent;
  std::uint32_t queued;
  std::vector<std::byte> theirs;
  bool operator==(const Traces&) const = default;
};
Traces traces(const Warm& w) {
  const auto& r = w.peer->responder;
  const auto& sent = w.own->requester;
  return {r.rq_head,     r.cq_intent,           sent.sends, sent.bytes,
          sent.messages, w.requester->queued(), w.theirs};
}

TEST(FastPath, TakesPlainMessages) {
  for (const QpType type : {QpType::Rc, QpType::Uc}) {
    Warm w(type);
    std::fill(w.theirs.begin(), w.theirs.end(), std::byte{0xee});
    EXPECT_TRUE(w.goes_fast(w.request(WrOpcode::RdmaWrite)));
    EXPECT_TRUE(w.same(8));
    EXPECT_EQ(w.theirs[8], std::byte{0xee});
    EXPECT_EQ(w.next(), WcStatus::Success);
    EXPECT_EQ(w.requester->queued(), 0u);
  }
  Warm w;
  std::fill(w.theirs.begin(), w.theirs.end(), std::byte{0x5a});
  EXPECT_TRUE(w.goes_fast(w.request(WrOpcode::RdmaRead)));
  EXPECT_TRUE(w.same(8));
  EXPECT_EQ(w.next(), WcStatus::Success);
  EXPECT_EQ(w.last.byte_len, 8u);
}

// Memory whose pages its owner has not adopted.
TEST(FastPath, TakesPlainMessagesForFarMemory) {
  for (const Path path : {Path::ProcessVm, Path::Auto}) {
    Warm w(QpType::Rc, path);
    std::fill(w.theirs.begin(), w.theirs.end(), std::byte{0xee});
    for (int i = 0; i < 2; ++i) {
      w.mine[0] = std::byte(i + 1);
      EXPECT_TRUE(w.goes_fast(w.request(WrOpcode::RdmaWrite)));
      EXPECT_TRUE(w.same(8));
      EXPECT_EQ(w.theirs[8], std::byte{0xee});
      EXPECT_EQ(w.next(), WcStatus::Success);
    }
    std::fill(w.theirs.begin(), w.theirs.end(), std::byte{0x5a});
    EXPECT_TRUE(w.goes_fast(w.request(WrOpcode::RdmaRead)));
    EXPECT_TRUE(w.same(8));
    EXPECT_EQ(w.next(), WcStatus::Success);
    w.receive(5, 4096);
    w.sge.length = kInlineScatter + 1;
    w.mine[0] = std::byte{77};
    EXPECT_TRUE(w.goes_fast(w.request(WrOpcode::Send)));
    EXPECT_TRUE(w.same(w.sge.length));
    EXPECT_EQ(w.next(), WcStatus::Success);
    const Cqe* received = w.memory.completion(1, 0);
    ASSERT_NE(received, nullptr);
    EXPECT_EQ(received->byte_len, w.sge.length);
    EXPECT_EQ(received->inline_length, 0u);
  }
}

// Pages that are adopted but not mapped here yet: the slow path maps them first.
TEST(FastPath, LetsAdoptedPagesBeMappedFirst) {
  Warm w(QpType::Rc, Path::Auto);
  w.adopt();
  w.tell();
  EXPECT_FALSE(w.goes_fast(w.request(WrOpcode::RdmaWrite)));
  EXPECT_EQ(w.post(WrOpcode::RdmaWrite, 8), Status::Ok);  // maps them
  EXPECT_EQ(w.next(), WcStatus::Success);
  w.host.reach.vm = Status::Malformed;
  EXPECT_TRUE(w.goes_fast(w.request(WrOpcode::RdmaWrite)));
}

// The cache of far memory is dropped when pages begin to move: see "moving". Then they are here.
TEST(FastPath, TakesMemoryThatHasComeNear) {
  Warm w(QpType::Rc, Path::ProcessVm);
  EXPECT_TRUE(w.goes_fast(w.request(WrOpcode::RdmaWrite)));
  EXPECT_EQ(w.next(), WcStatus::Success);
  w.adopt();
  w.tell();
  w.host.reach.vm = Status::Malformed;
  EXPECT_EQ(w.post(WrOpcode::RdmaWrite, 8), Status::Ok);  // maps it
  EXPECT_EQ(w.next(), WcStatus::Success);
  EXPECT_TRUE(w.goes_fast(w.request(WrOpcode::RdmaWrite)));
}

// Counted are packets after the first and padding (message_count.h), by both paths alike.
TEST(FastPath, CountsThePacketsOfAMessage) {
  for (const std::uint32_t bytes : {8u, 13u, 256u, 257u, 1024u, 1025u}) {
    for (const bool fast : {true, false}) {
      Warm w;
      w.own->connection.mtu = verbs::Mtu::B256;
      w.sge.length = bytes;
      const auto post = [&](WrOpcode opcode) {
        if (fast) return w.goes_fast(w.request(opcode));
        const OpScope scope(w.plane);
        return w.requester->post(w.request(opcode), Way::Slow) == Status::Ok;
      };
      const std::uint64_t messages = w.own->requester.messages;
      const std::uint64_t sent = w.own->requester.bytes;
      ASSERT_TRUE(post(WrOpcode::RdmaWrite));
      ASSERT_TRUE(post(WrOpcode::RdmaRead));
      const std::uint64_t more = (bytes - 1) / 256;
      const std::uint64_t padding = (4 - bytes % 4) % 4;
      EXPECT_EQ(w.own->requester.messages - messages, 2u);
      EXPECT_EQ(w.own->requester.bytes - sent, bytes) << "a READ sends none";
      EXPECT_EQ(w.own->requester.more_packets, more) << bytes;
      EXPECT_EQ(w.own->requester.more_bytes, padding) << bytes;
      const auto& answers = w.own->lock.answers;
      EXPECT_EQ(answers.bytes, bytes);
      EXPECT_EQ(answers.more_packets, more) << bytes;
      EXPECT_EQ(answers.more_bytes, padding + (more != 0 ? 4 : 0)) << bytes;
    }
  }
}

TEST(FastPath, DeliversASendLikeTheLongWay) {
  for (const WrOpcode opcode : {WrOpcode::Send, WrOpcode::SendWithImm}) {
    Warm w;
    w.receive(5, 8);
    w.receive(6, 100);
    const std::uint64_t sent = w.own->requester.messages;
    EXPECT_TRUE(w.goes_fast(w.request(opcode)));  // the fast path, a full receive
    EXPECT_TRUE(w.same(8));
    const Sge two[] = {{w.sge.address, 4, kLkey}, {w.sge.address + 4, 4, kLkey}};
    SendWqe same = w.request(opcode);
    same.sge = two;
    same.num_sge = 2;
    EXPECT_FALSE(w.goes_fast(same));
    {
      const OpScope scope(w.plane);
      EXPECT_EQ(w.requester->post(same), Status::Ok);  // the slow path
    }
    const Cqe* first = w.memory.completion(1, 0);
    const Cqe* second = w.memory.completion(1, 1);
    ASSERT_TRUE(first != nullptr && second != nullptr);
    EXPECT_EQ(first->wqe, 5u);
    EXPECT_EQ(second->wqe, 6u);
    EXPECT_EQ(std::memcmp(first, second, offsetof(Cqe, wqe)), 0);
    constexpr std::size_t kAfter = offsetof(Cqe, byte_len);
    EXPECT_EQ(std::memcmp(reinterpret_cast<const std::byte*>(first) + kAfter,
                          reinterpret_cast<const std::byte*>(second) + kAfter,
                          offsetof(Cqe, seq) - kAfter),
              0);
    EXPECT_EQ(w.own->requester.messages - sent, 2u);
    EXPECT_EQ(w.own->requester.sends, 2u);
    EXPECT_EQ(w.own->requester.more_bytes, opcode == WrOpcode::Send ? 0u : 8u);
    EXPECT_EQ(w.peer->responder.rq_head, 2u);
    EXPECT_EQ(w.peer->responder.cq_intent, 0u);
    EXPECT_EQ(w.next(), WcStatus::Success);
    EXPECT_EQ(w.next(), WcStatus::Success);
  }
}

struct Obstacle {
  const char* name;
  WrOpcode opcode;
  void (*place)(Warm&, SendWqe&);
  bool told = true;  // false: it must be detected without a raised epoch
};
void PrintTo(const Obstacle& o, std::ostream* out) {
  *out << o.name;
}

class FastPathRefuses : public ::testing::TestWithParam<Obstacle> {};

void expect_refused_without_a_trace(Warm& w, const Obstacle& obstacle) {
  if (obstacle.opcode == WrOpcode::Send) w.receive(5, 100);
  SendWqe wqe = w.request(obstacle.opcode);
  std::vector<std::byte> mine = w.mine;
  std::fill(w.theirs.begin(), w.theirs.end(), std::byte{0xee});
  obstacle.place(w, wqe);
  if (obstacle.told) w.tell();
  const Traces before = traces(w);
  EXPECT_FALSE(w.goes_fast(wqe));
  EXPECT_EQ(traces(w), before);
  EXPECT_EQ(w.mine, mine);
  EXPECT_EQ(w.memory.completion(1, 0), nullptr);
  EXPECT_EQ(w.next(), std::nullopt);
  EXPECT_TRUE(w.host.raised.empty());
}

TEST_P(FastPathRefuses, AndLeavesNoTrace) {
  Warm w;
  expect_refused_without_a_trace(w, GetParam());
}

class FarShortWayRefuses : public ::testing::TestWithParam<Obstacle> {};

TEST_P(FarShortWayRefuses, AndLeavesNoTrace) {
  Warm w(QpType::Rc, Path::ProcessVm);
  EXPECT_TRUE(w.goes_fast(w.request(
      GetParam().opcode == WrOpcode::RdmaRead ? WrOpcode::RdmaRead : WrOpcode::RdmaWrite)));
  EXPECT_EQ(w.next(), WcStatus::Success);
  expect_refused_without_a_trace(w, GetParam());
}

void set_port(Warm& w, std::uint32_t port, verbs::PortState state) {
  w.memory.arena().port(port)->state = state;
}

constexpr WrOpcode kWrite = WrOpcode::RdmaWrite;
constexpr WrOpcode kRead = WrOpcode::RdmaRead;
constexpr WrOpcode kSend = WrOpcode::Send;

const Obstacle kOfTheRequest[] = {
    {"no piece", kWrite, [](Warm&, SendWqe& r) { r.num_sge = 0; }, false},
    {"an empty piece", kWrite, [](Warm& w, SendWqe&) { w.sge.length = 0; }, false},
    {"atomic", WrOpcode::AtomicFetchAdd, [](Warm&, SendWqe&) {}, false},
    {"atomic write", WrOpcode::AtomicWrite, [](Warm&, SendWqe&) {}, false},
    {"flush", WrOpcode::Flush,
     [](Warm&, SendWqe& r) {
       r.imm = verbs::flush::operands(verbs::flush::kGlobal, verbs::flush::kRegion);
     },
     false},
    {"write with imm", WrOpcode::RdmaWriteWithImm, [](Warm&, SendWqe&) {}, false},
    {"send with invalidate", WrOpcode::SendWithInv, [](Warm&, SendWqe&) {}, false},
    {"local invalidate", WrOpcode::LocalInv, [](Warm&, SendWqe&) {}, false},
    {"too much inline", kWrite,
     [](Warm& w, SendWqe& r) {
       r.inline_data = true;
       w.sge.length = 129;
     },
     false},
    {"inline read", kRead, [](Warm&, SendWqe& r) { r.inline_data = true; }, false},
    {"unknown lkey", kWrite, [](Warm& w, SendWqe&) { w.sge.lkey ^= 1; }, false},
    {"lkey 0", kWrite, [](Warm& w, SendWqe&) { w.sge.lkey = 0; }, false},
    {"lkey 0, when the one before was deregistered", kWrite,
     [](Warm& w, SendWqe&) {
       w.plane.local_keys().hide(key_index(kLkey));
       w.sge.lkey = 0;
     },
     false},
    {"lkey of no entry", kWrite, [](Warm& w, SendWqe&) { w.sge.lkey = ~0u; }, false},
    {"deregistered lkey", kWrite,
     [](Warm& w, SendWqe&) { w.plane.local_keys().hide(key_index(kLkey)); }, false},
    {"lkey of another PD", kWrite,
     [](Warm& w, SendWqe&) { w.relabel([](LocalKey& k) { k.pd = 2; }); }, false},
    {"null lkey", kWrite,
     [](Warm& w, SendWqe&) { w.relabel([](LocalKey& k) { k.kind = KeyKind::Null; }); }, false},
    {"lkey may not be written", kRead,
     [](Warm& w, SendWqe&) { w.relabel([](LocalKey& k) { k.access = 0; }); }, false},
    {"smaller local region", kWrite,
     [](Warm& w, SendWqe&) { w.relabel([](LocalKey& k) { k.length = 7; }); }, false},
    {"local region that wraps around", kWrite,
     [](Warm& w, SendWqe&) { w.relabel([](LocalKey& k) { k.length = ~k.iova + 1; }); }, false},
    {"before the local region", kWrite, [](Warm& w, SendWqe&) { w.sge.address -= 1; }, false},
    {"after the local region", kWrite, [](Warm& w, SendWqe&) { w.sge.address += 4089; }, false},
    {"local wrap", kWrite, [](Warm& w, SendWqe&) { w.sge.address = ~0ull - 3; }, false},
    {"queue full", kWrite,
     [](Warm& w, SendWqe&) {
       for (int i = 0; i < 16; ++i) EXPECT_EQ(w.post(kWrite, 8), Status::Ok);
       std::fill(w.theirs.begin(), w.theirs.end(), std::byte{0xee});
       w.polled += 16;  // not ours to look at
     },
     false},
    {"one waits", kWrite, [](Warm& w, SendWqe&) { EXPECT_EQ(w.post(kSend, 8), Status::Ok); },
     false},
};
INSTANTIATE_TEST_SUITE_P(OfTheRequest, FastPathRefuses, ::testing::ValuesIn(kOfTheRequest));

const Obstacle kOfTheConnection[] = {
    {"own SQD", kWrite, [](Warm& w, SendWqe&) { w.own->id.state = QpState::Sqd; }, false},
    {"own error", kWrite, [](Warm& w, SendWqe&) { w.own->id.state = QpState::Error; }, false},
    {"own RTR", kWrite, [](Warm& w, SendWqe&) { w.own->id.state = QpState::Rtr; }, false},
    {"after reset", kWrite, [](Warm& w, SendWqe&) { w.requester->reset(); }, false},
    {"other destination", kWrite, [](Warm& w, SendWqe&) { w.own->connection.dest_qpn = 9; }},
    {"peer is another", kWrite, [](Warm& w, SendWqe&) { w.peer->id.qpn = kPeer + kMaxQps; }},
    {"peer is gone", kWrite, [](Warm& w, SendWqe&) { w.peer->id.qpn = 0; }},
    {"peer is new", kWrite, [](Warm& w, SendWqe&) { w.peer->id.generation = 2; }},
    {"peer in error", kWrite, [](Warm& w, SendWqe&) { w.peer->id.state = QpState::Error; }, false},
    {"peer in init", kWrite, [](Warm& w, SendWqe&) { w.peer->id.state = QpState::Init; }, false},
    {"peer's state is garbage", kWrite,
     [](Warm& w, SendWqe&) { w.peer->id.state = static_cast<QpState>(77); }, false},
    {"peer has another peer", kWrite, [](Warm& w, SendWqe&) { w.peer->connection.dest_qpn = 8; }},
    {"peer is at another port", kWrite, [](Warm& w, SendWqe&) { w.own->connection.dest_port = 1; }},
    {"no port has the address", kWrite,
     [](Warm& w, SendWqe&) { w.own->connection.dest_port = kNone; }},
    {"no plane carries it", kWrite,
     [](Warm& w, SendWqe&) { w.own->connection.flow = flow::kNoPlane; }},
    {"the flow is blocked", kWrite,
     [](Warm& w, SendWqe&) { w.own->connection.flow = flow::blocked(Cause::PortDown); }},
    {"other partition", kWrite, [](Warm& w, SendWqe&) { w.peer->id.pkey = 0xfffe; }},
    {"limited members", kWrite,
     [](Warm& w, SendWqe&) { w.peer->id.pkey = w.own->id.pkey = 0x7fff; }},
    {"port down", kWrite, [](Warm& w, SendWqe&) { set_port(w, 0, verbs::PortState::Down); }},
    {"port asleep", kWrite, [](Warm& w, SendWqe&) { set_port(w, 0, kPortAsleep); }},
    {"peer's port down", kWrite, [](Warm& w, SendWqe&) { w.peer->id.port = 1; }},
    {"peer's port is garbage", kWrite, [](Warm& w, SendWqe&) { w.peer->id.port = ~0u; }},
    {"no right to write", kWrite,
     [](Warm& w, SendWqe&) { w.peer->id.access = w.peer->id.access & ~access::kRemoteWrite; },
     false},
    {"no right to read", kRead,
     [](Warm& w, SendWqe&) { w.peer->id.access = w.peer->id.access & ~access::kRemoteRead; },
     false},
    {"no reads there", kRead, [](Warm& w, SendWqe&) { w.peer->id.max_dest_rd_atomic = 0; }, false},
    {"no reads here", kRead,
     [](Warm& w, SendWqe&) {
       w.limits.max_rd_atomic = 0;
       w.requester->set_limits(w.limits);
     },
     false},
};
INSTANTIATE_TEST_SUITE_P(OfTheConnection, FastPathRefuses, ::testing::ValuesIn(kOfTheConnection));

const Obstacle kOfTheKey[] = {
    {"unknown rkey", kWrite, [](Warm&, SendWqe& r) { r.rkey ^= 0x80; }, false},
    {"rkey 0", kWrite, [](Warm&, SendWqe& r) { r.rkey = 0; }, false},
    {"rkey of no entry", kWrite, [](Warm&, SendWqe& r) { r.rkey = ~0u; }, false},
    {"deregistered", kWrite, [](Warm& w, SendWqe&) { w.rkey().id.state = KeyState::Invalid; }},
    {"moving", kWrite, [](Warm& w, SendWqe&) { w.rkey().id.state = KeyState::Moving; }},
    {"of another process", kWrite, [](Warm& w, SendWqe&) { w.rkey().id.owner_slot = 2; }},
    {"of this process", kWrite,
     [](Warm& w, SendWqe&) { w.rkey().id.owner_slot = w.peer->id.owner_slot = 0; }},
    {"of another PD", kWrite, [](Warm& w, SendWqe&) { w.rkey().id.pd = 2; }},
    {"not to be written", kWrite,
     [](Warm& w, SendWqe&) { w.rkey().id.access &= ~access::kRemoteWrite; }},
    {"not to be read", kRead,
     [](Warm& w, SendWqe&) { w.rkey().id.access &= ~access::kRemoteRead; }},
    {"before the region", kWrite, [](Warm&, SendWqe& r) { r.remote_address -= 1; }, false},
    {"after the region", kWrite, [](Warm&, SendWqe& r) { r.remote_address += 4089; }, false},
    {"wraps around", kWrite, [](Warm&, SendWqe& r) { r.remote_address = ~0ull - 3; }, false},
    {"null", kWrite, [](Warm& w, SendWqe&) { w.rkey().id.kind = KeyKind::Null; }},
    {"window", kWrite, [](Warm& w, SendWqe&) { w.rkey().id.kind = KeyKind::Window2; }},
    {"device memory beyond the heap", kWrite,
     [](Warm& w, SendWqe&) {
       w.rkey().id.kind = KeyKind::DeviceMemory;
       w.rkey().id.address = kArenaSpace - 4;
     }},
};
INSTANTIATE_TEST_SUITE_P(OfTheKey, FastPathRefuses, ::testing::ValuesIn(kOfTheKey));
INSTANTIATE_TEST_SUITE_P(OfTheKey, FarShortWayRefuses, ::testing::ValuesIn(kOfTheKey));

const Obstacle kOfTheMapping[] = {
    {"other backing", kWrite, [](Warm& w, SendWqe&) { w.rkey().adopted.backing = 4; }},
    {"no backing", kWrite, [](Warm& w, SendWqe&) { w.rkey().adopted.backing = kNone; }},
    {"newer backing", kWrite, [](Warm& w, SendWqe&) { w.rkey().adopted.backing_generation = 2; }},
    {"beyond the backing", kWrite, [](Warm& w, SendWqe&) { w.rkey().adopted.offset = 4089; }},
    {"garbage offset", kWrite, [](Warm& w, SendWqe&) { w.rkey().adopted.offset = ~0ull - 3; }},
};
INSTANTIATE_TEST_SUITE_P(OfTheMapping, FastPathRefuses, ::testing::ValuesIn(kOfTheMapping));

const Obstacle kOfTheOtherProcess[] = {
    {"process_vm fails", kWrite, [](Warm& w, SendWqe&) { w.host.reach.vm = Status::Malformed; },
     false},
    {"process has ended", kWrite, [](Warm& w, SendWqe&) { w.host.reach.vm = Status::NotFound; },
     false},
    {"process has ended, as softibd says", kRead,
     [](Warm& w, SendWqe&) { w.memory.arena().slot(1)->live = 0; }, false},
    {"pages have gone", kRead, [](Warm& w, SendWqe&) { w.host.reach.accessible.clear(); }, false},
    {"a small message, for its completion", kSend, [](Warm&, SendWqe&) {}, false},
};
INSTANTIATE_TEST_SUITE_P(OfTheOtherProcess, FarShortWayRefuses,
                         ::testing::ValuesIn(kOfTheOtherProcess));

// The receive posted at the head, as its owner wrote it.
std::byte* at_head(Warm& w) {
  return w.memory.arena().base() + w.peer->geometry.rq_ring;
}
void change_receive(Warm& w, std::uint32_t num_sge, std::uint32_t length, std::uint32_t key) {
  const ReceiveWqe wqe{5, num_sge, 0};
  const Sge sge{std::bit_cast<std::uint64_t>(w.theirs.data()), length, key};
  std::memcpy(at_head(w), &wqe, sizeof wqe);
  std::memcpy(at_head(w) + sizeof wqe, &sge, sizeof sge);
}

const Obstacle kOfTheReceive[] = {
    {"none posted", kSend, [](Warm& w, SendWqe&) { w.peer->responder.rq_head = 1; }, false},
    {"garbage head", kSend, [](Warm& w, SendWqe&) { w.peer->responder.rq_head = 1000; }, false},
    {"shared queue that does not exist", kSend, [](Warm& w, SendWqe&) { w.peer->id.srq = 0; }},
    {"too small", kSend, [](Warm& w, SendWqe&) { change_receive(w, 1, 7, kRkey); }, false},
    {"two pieces", kSend, [](Warm& w, SendWqe&) { change_receive(w, 2, 8, kRkey); }, false},
    {"no piece", kSend, [](Warm& w, SendWqe&) { change_receive(w, 0, 8, kRkey); }, false},
    {"unknown key", kSend, [](Warm& w, SendWqe&) { change_receive(w, 1, 8, kRkey + 1); }, false},
    {"not to be written", kSend,
     [](Warm& w, SendWqe&) { w.rkey().id.access = access::kRemoteWrite; }},
    {"CQ with timestamps", kSend,
     [](Warm& w, SendWqe&) {
       w.memory.arena().cq(1)->id.flags = verbs::control::cq_flag::kTimestamp;
     }},
};
INSTANTIATE_TEST_SUITE_P(OfTheReceive, FastPathRefuses, ::testing::ValuesIn(kOfTheReceive));

// A legitimate change refreshes the cache, and the request takes the fast path all the same.
struct Change {
  const char* name;
  WrOpcode opcode;
  void (*make)(Warm&);
};
void PrintTo(const Change& c, std::ostream* out) {
  *out << c.name;
}
class FastPathRefreshes : public ::testing::TestWithParam<Change> {};

TEST_P(FastPathRefreshes, AndGoesOn) {
  const Change& change = GetParam();
  Warm w;
  w.receive(5, 100);
  w.receive(6, 100);
  change.make(w);
  for (int i = 0; i < 2; ++i) {
    std::fill(w.theirs.begin(), w.theirs.end(), std::byte{0xee});
    EXPECT_TRUE(w.goes_fast(w.request(change.opcode)));
    EXPECT_TRUE(w.same(8));
    EXPECT_EQ(w.next(), WcStatus::Success);
  }
  EXPECT_EQ(w.memory.arena().cq(1)->producer.lock, 0u);
}

const Change kChanges[] = {
    {"nothing", kSend, [](Warm&) {}},
    {"something, somewhere", kSend, [](Warm& w) { w.tell(); }},
    {"own region registered anew", kWrite, [](Warm& w) { w.relabel([](LocalKey&) {}); }},
    {"completion queues shared", kSend,
     [](Warm& w) {
       for (const std::uint32_t cq : {0u, 1u}) w.memory.arena().cq(cq)->id.shared_producers = 1;
     }},
    {"completion queues resized", kSend,
     [](Warm& w) {
       for (const std::uint32_t cq : {0u, 1u}) w.memory.arena().cq(cq)->id.ring_epoch += 1;
     }},
    {"timestamps for what is sent", kSend,
     [](Warm& w) {
       w.memory.arena().cq(0)->id.flags = verbs::control::cq_flag::kTimestamp;
       w.tell();
     }},
};
INSTANTIATE_TEST_SUITE_P(All, FastPathRefreshes, ::testing::ValuesIn(kChanges));

TEST(FastPath, KnowsDeviceMemoryForOneRequestAtATime) {
  Warm w;
  KeyEntry& key = w.rkey();
  key.id.kind = KeyKind::DeviceMemory;
  key.id.address = w.memory.allocate(key.id.length);
  w.tell();
  const std::byte* bytes = w.memory.arena().heap(key.id.address, 8);
  for (std::byte first{1}; first != std::byte{4};
       first = std::byte(std::to_integer<int>(first) + 1)) {
    w.mine[0] = first;
    EXPECT_TRUE(w.goes_fast(w.request(WrOpcode::RdmaWrite)));
    EXPECT_EQ(std::memcmp(bytes, w.mine.data(), 8), 0);
    EXPECT_EQ(w.next(), WcStatus::Success);
  }
  key.id.state = KeyState::Invalid;  // not told: looked at each time, as long as it is of no kind
                                     // that is known
  EXPECT_FALSE(w.goes_fast(w.request(WrOpcode::RdmaWrite)));
}

// An adapter has the acknowledgement before an answer of the receiver can come.
TEST(FastPath, FiresTheEventsOfBothCompletionQueuesTheOwnOneFirst) {
  Warm w;
  for (const std::uint32_t cq : {0u, 1u}) {
    CqEntry& entry = *w.memory.arena().cq(cq);
    entry.id.channel = 1;
    entry.arm.armed = 1;
  }
  w.tell();
  w.receive(5, 100);
  w.host.on_notify = [&w] { EXPECT_NE(w.memory.completion(0, 2), nullptr); };
  EXPECT_TRUE(w.goes_fast(w.request(WrOpcode::Send)));
  EXPECT_EQ(w.host.notified, (std::vector<std::uint32_t>{0, 1}));
  EXPECT_EQ(w.next(), WcStatus::Success);
  ASSERT_NE(w.memory.completion(1, 0), nullptr);
  EXPECT_TRUE(w.goes_fast(w.request(WrOpcode::RdmaWrite)));  // not armed any more
  EXPECT_EQ(w.host.notified.size(), 2u);
}

// A change is detected when the epoch of either end rises, and not for that of another process.
TEST(FastPath, LooksAgainForTheChangesOfTheTwoEndsOnly) {
  for (const std::uint32_t slot : {0u, 1u, 2u}) {
    Warm w;
    w.memory.arena().header().slots_used.store(3);
    w.peer->id.pkey = 0xfffe;  // of another partition
    advance_epoch(w.memory.arena(), slot);
    EXPECT_EQ(w.goes_fast(w.request(WrOpcode::RdmaWrite)), slot == 2) << slot;
  }
}

// Where the pages of a backing are is this process's own knowledge; device memory cannot make it
// use a mapping that is gone.
TEST(FastPath, DoesNotUseAMappingThatWasReplaced) {
  Warm w;
  std::vector<std::byte> elsewhere(w.theirs.size(), std::byte{0xee});
  std::fill(w.theirs.begin(), w.theirs.end(), std::byte{0xee});
  w.host.backing = elsewhere.data();
  w.rkey().adopted.backing_generation = 2;
  w.tell();
  EXPECT_EQ(w.post(WrOpcode::RdmaWrite, 8), Status::Ok);  // maps it again
  w.memory.arena().slot(1)->epoch.fetch_sub(1);           // somebody forges
  EXPECT_EQ(w.post(WrOpcode::RdmaWrite, 8), Status::Ok);
  EXPECT_EQ(w.theirs[0], std::byte{0xee});
  EXPECT_NE(elsewhere[0], std::byte{0xee});
}

TEST(FastPath, KnowsTheAdoptedPartOfARegionOnly) {
  Warm w;
  KeyEntry& key = w.rkey();
  key.adopted.address += 1024;  // the first and the last quarter are not in whole pages
  key.adopted.length = 2048;
  w.host.backing_size = 2048;
  w.host.backing = w.theirs.data() + 1024;
  key.adopted.backing_generation = 2;
  w.tell();
  SendWqe wqe = w.request(WrOpcode::RdmaWrite);
  const std::uint64_t start = wqe.remote_address;
  wqe.remote_address += 1024;
  {
    const OpScope scope(w.plane);
    EXPECT_EQ(w.requester->post(wqe), Status::Ok);  // the slow path maps it
  }
  EXPECT_EQ(w.next(), WcStatus::Success);
  for (const std::uint64_t offset : {1024u, 2000u, 3064u}) {
    std::fill(w.theirs.begin(), w.theirs.end(), std::byte{0xee});
    wqe.remote_address = start + offset;
    EXPECT_TRUE(w.goes_fast(wqe)) << offset;
    EXPECT_EQ(std::memcmp(w.theirs.data() + offset, w.mine.data(), 8), 0) << offset;
    EXPECT_EQ(w.next(), WcStatus::Success);
  }
  for (const std::uint64_t offset : {0u, 1017u, 3065u, 4088u}) {
    wqe.remote_address = start + offset;
    EXPECT_FALSE(w.goes_fast(wqe)) << offset;
  }
}

// The bytes are in the receive's buffer by then, where the slow path puts them too.
TEST(FastPath, LeavesAFullCompletionQueueToTheLongWay) {
  Warm w;
  w.receive(5, 100);
  w.memory.arena().cq(1)->producer.producer = 63;
  EXPECT_FALSE(w.goes_fast(w.request(WrOpcode::Send)));
  EXPECT_EQ(w.peer->responder.rq_head, 0u);
  EXPECT_EQ(w.peer->responder.cq_intent, 0u);
  EXPECT_TRUE(w.host.raised.empty());
  EXPECT_EQ(w.post(WrOpcode::Send, 8), Status::Ok);
  EXPECT_EQ(w.next(), WcStatus::RemOpErr);
  EXPECT_EQ(w.last.vendor_err, static_cast<std::uint32_t>(Cause::CqOverflow));
  EXPECT_EQ(w.host.raised.size(), 2u);  // the CQ, the queue pair
}

// A process that died, or hostile bytes.
TEST(FastPath, LeavesACompletionQueueThatItCannotUseToTheLongWay) {
  void (*const makes[])(CqEntry&) = {
      [](CqEntry& cq) {
        cq.id.shared_producers = 1;
        cq.producer.lock = lock_owner(5);
      },
      [](CqEntry& cq) {
        cq.id.slots = 3;
        cq.id.ring_epoch = 7;
      },
      [](CqEntry& cq) {
        cq.id.ring = kArenaSpace - 64;
        cq.id.ring_epoch = 7;
      },
  };
  for (const auto make : makes) {
    Warm w;
    w.receive(5, 100);
    make(*w.memory.arena().cq(1));
    EXPECT_FALSE(w.goes_fast(w.request(WrOpcode::Send)));
    EXPECT_EQ(w.peer->responder.rq_head, 0u);
    EXPECT_EQ(w.peer->responder.cq_intent, 0u);
    EXPECT_EQ(w.requester->queued(), 0u);
  }
}

}  // namespace
}  // namespace ib::hca
