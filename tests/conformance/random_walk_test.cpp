// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A random walk: mostly valid verbs over several connections between two processes, checked against
// a model (model.h) of every byte and every completion. Each request completes exactly once and in
// order, memory equals the model, and nothing is left at the end.
//
// SOFTIB_SEED=n walks that seed only, SOFTIB_WALKS=n walks n seeds, SOFTIB_STEPS=n takes n steps in
// each.
#include "model.h"
#include "verbs_fixture.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <map>
#include <random>

namespace ib::conformance {
namespace {

constexpr std::uint32_t kAreaBytes = 64 * 1024;
constexpr std::uint32_t kPairs = 4;
constexpr std::uint32_t kSendSlots = 24;

struct ModelPair {
  std::array<ModelLane, 2> lane;  // [0]: from A
  QpType type = QpType::Rc;
};

class Walk {
 public:
  Walk(Side& a, Side& b, std::uint64_t seed) : sides_{&a, &b}, random_(seed) {
    for (std::size_t s = 0; s < 2; ++s) {
      CqSpec spec;
      spec.cqe = 1500;
      for (Cq& cq : cqs_[s]) cq = sides_[s]->new_cq(spec);
      SrqSpec srq;
      srq.max_wr = ModelReceiveQueue::kSlots;
      srq.max_sge = 3;
      shared_[s].srq = sides_[s]->new_srq(srq);
      make_slots(shared_[s], s);
    }
    pairs_.resize(kPairs);
    for (std::size_t p = 0; p < kPairs; ++p) {
      pairs_[p].type = p == 1 ? QpType::Uc : QpType::Rc;
      for (std::size_t l = 0; l < 2; ++l) {
        ModelLane& lane = pairs_[p].lane[l];
        lane.from = static_cast<int>(l);
        lane.type = pairs_[p].type;
        lane.near = new_area(l, kAreaBytes);
        lane.far = new_area(1 - l, kAreaBytes);
        lane.still = new_area(l, kAreaBytes);
        lane.still.region.fill(p * 2 + l);
        for (std::uint32_t i = 0; i < kAreaBytes; ++i) lane.still.bytes[i] = pattern(p * 2 + l, i);
        make_slots(lane.own, 1 - l);
        // Pair 2 takes its receives from the shared queues, pair 3 at B's end only.
        const bool uses_shared = p == 2 || (p == 3 && l == 0);
        lane.receives = uses_shared ? &shared_[1 - l] : &lane.own;
      }
      make_queue_pairs(pairs_[p]);
    }
  }

  void step() {
    ModelPair& pair = pairs_[below(kPairs)];
    ModelLane& lane = pair.lane[below(2)];
    const std::uint32_t dice = below(1000);
    if (dice < 450) return post_send(lane);
    if (dice < 750) return post_receive(lane);
    if (dice < 930) return poll(below(2), below(2));
    if (dice < 950) return refill(lane);
    if (dice < 970) return register_anew(lane);
    if (dice < 978) return resize(below(2), below(2));
    if (dice < 986) return fail_remotely(pair, lane);
    if (dice < 992) return fail_locally(pair, lane);
    if (dice < 995) {
      settle();
      return error_and_reset(pair);
    }
    if (dice < 998) return reset(pair);
    return recreate(pair);
  }

  // Completes all waiting requests and compares all memory.
  void finish() {
    for (ModelPair& pair : pairs_) {
      for (ModelLane& lane : pair.lane) {
        while (!lane.waiting.empty()) post_receive(lane);
      }
    }
    settle();
    for (ModelPair& pair : pairs_) {
      for (ModelLane& lane : pair.lane) {
        compare(lane.near, 0, kAreaBytes);
        compare(lane.far, 0, kAreaBytes);
        compare(lane.own.area, 0, lane.own.area.bytes.size());
      }
    }
    for (const ModelReceiveQueue& queue : shared_) compare(queue.area, 0, queue.area.bytes.size());
    for (std::size_t s = 0; s < 2; ++s) {
      for (const Cq& cq : cqs_[s]) EXPECT_TRUE(cq.drain().empty());
    }
  }

 private:
  std::uint32_t below(std::uint32_t n) { return static_cast<std::uint32_t>(random_() % n); }
  bool chance(std::uint32_t percent) { return below(100) < percent; }

  ModelArea new_area(std::size_t side, std::uint32_t bytes) {
    ModelArea area;
    area.region = sides_[side]->region(bytes);
    area.bytes.assign(bytes, 0);
    return area;
  }
  void make_slots(ModelReceiveQueue& queue, std::size_t side) {
    queue.area = new_area(side, ModelReceiveQueue::kSlots * ModelReceiveQueue::kSlotBytes);
    for (std::uint32_t i = 0; i < ModelReceiveQueue::kSlots; ++i) queue.free_slots.push_back(i);
  }

  void make_queue_pairs(ModelPair& pair) {
    std::array<Qp, 2> qps;
    for (std::size_t s = 0; s < 2; ++s) {
      QpSpec spec;
      spec.type = pair.type;
      spec.send_cq = cqs_[s][below(2)].handle;
      spec.recv_cq = cqs_[s][below(2)].handle;
      spec.caps = {kSendSlots, ModelReceiveQueue::kSlots, 3, 3, 200, 0};
      if (pair.lane[1 - s].receives->is_shared()) spec.srq = shared_[s].srq.handle;
      qps[s] = sides_[s]->new_qp(spec);
    }
    for (std::size_t l = 0; l < 2; ++l) {
      pair.lane[l].requester = qps[l];
      pair.lane[l].responder = qps[1 - l];
    }
    bring_up(pair);
  }
  static void bring_up(ModelPair& pair) {
    Connection with;
    with.timeout = 0;  // a request without a receive waits until the walk posts one
    connect(pair.lane[0].requester, pair.lane[1].requester, pair.type, with);
  }

  // --- Requests ---

  std::vector<Extent> extents(std::uint32_t bytes, std::uint32_t most) {
    std::vector<Extent> list;
    const std::uint32_t count = 1 + below(most);
    for (std::uint32_t i = 0; i < count; ++i) {
      const std::uint32_t n = i + 1 == count ? bytes : below(bytes + 1);
      list.push_back({below(kAreaBytes - n + 1), n});
      bytes -= n;
    }
    return list;
  }
  std::uint32_t size(std::uint32_t most) {
    const std::uint32_t dice = below(10);
    const std::uint32_t bound = dice < 5 ? 80 : dice < 9 ? 1024 : most;
    return below(std::min(bound, most) + 1);
  }

  void post_send(ModelLane& lane) {
    if (lane.queue.size() >= kSendSlots) return;
    static constexpr std::array kOpcodes{WrOpcode::Send,           WrOpcode::SendWithImm,
                                         WrOpcode::RdmaWrite,      WrOpcode::RdmaWriteWithImm,
                                         WrOpcode::RdmaRead,       WrOpcode::AtomicCmpSwap,
                                         WrOpcode::AtomicFetchAdd, WrOpcode::AtomicWrite,
                                         WrOpcode::Flush};
    ModelSend send;
    Work& work = send.work;
    work.opcode = kOpcodes[below(lane.type == QpType::Uc ? 4 : 9)];
    const bool is_send = work.opcode == WrOpcode::Send || work.opcode == WrOpcode::SendWithImm;
    const bool needs_receive = is_send || work.opcode == WrOpcode::RdmaWriteWithImm;
    // Which request takes a shared receive must not depend on timing, so none may wait for one. A
    // request of UC must not wait either: a responder that has had receives is given time
    // (RetryState::may_wait) before the message is lost; one that never had any loses it at once,
    // and that case is part of the walk.
    const bool gives_time =
        lane.receives->is_shared() || (lane.type == QpType::Uc && lane.has_received);
    if (needs_receive && gives_time && lane.receives->posted.empty()) return;
    work.wr_id = ++next_id_;
    work.imm = below(~0u);
    work.flags = 0;
    // Unsignalled only if it is executed before the post returns, so that settle() finds its end.
    const bool may_wait = !lane.waiting.empty() || !lane.sends.empty() ||
                          (needs_receive && lane.receives->posted.empty());
    if (may_wait || chance(60) || lane.queue.size() + 1 == kSendSlots) {
      work.flags |= send_flag::kSignaled;
    }
    if (chance(10)) work.flags |= send_flag::kFence;
    if (chance(10)) work.flags |= send_flag::kSolicited;
    const bool is_atomic =
        work.opcode == WrOpcode::AtomicCmpSwap || work.opcode == WrOpcode::AtomicFetchAdd;
    if (is_atomic || work.opcode == WrOpcode::AtomicWrite) {
      send.remote = below(kAreaBytes / 8) * 8u;
      work.compare_add = chance(50) ? lane.far.word(send.remote) : random_();
      work.swap = random_();
      if (is_atomic) send.local = {{below(kAreaBytes / 8) * 8u, 8}};
    } else if (work.opcode == WrOpcode::Flush) {
      send.remote = below(kAreaBytes);
      work.compare_add = below(kAreaBytes - static_cast<std::uint32_t>(send.remote) + 1);
      const std::uint8_t level = chance(50) ? verbs::flush::kRange : verbs::flush::kRegion;
      work.imm = verbs::flush::operands(verbs::flush::kGlobal, level);
    } else {
      const std::uint32_t bytes = size(is_send ? ModelReceiveQueue::kCapacity : 20000);
      send.local = extents(bytes, 3);
      send.remote = below(kAreaBytes - bytes + 1);
      const bool may_be_inline = bytes <= 200 && work.opcode != WrOpcode::RdmaRead;
      if (may_be_inline && chance(40)) work.flags |= send_flag::kInline;
    }
    work.rkey = lane.far.region.rkey;
    work.remote_address = lane.far.region.at(send.remote);
    const bool is_inline = (work.flags & send_flag::kInline) != 0;
    const ModelArea& source = is_inline ? lane.still : lane.near;
    for (const Extent& e : send.local) {
      work.sge.push_back(source.region.sge(e.at, e.length));
      if (!is_inline) continue;
      const auto at = lane.still.bytes.begin() + static_cast<std::ptrdiff_t>(e.at);
      send.inline_bytes.insert(send.inline_bytes.end(), at, at + e.length);
    }
    if (is_inline) send.local.clear();
    post(lane, std::move(send));
  }

  void post(ModelLane& lane, ModelSend send) {
    EXPECT_EQ(lane.requester.try_send(send.work), Status::Ok) << lane.requester.side->reason();
    lane.queue.push_back({send.work.wr_id, (send.work.flags & send_flag::kSignaled) != 0});
    lane.waiting.push_back(std::move(send));
    run(lane);
  }

  void post_receive(ModelLane& lane) {
    ModelReceiveQueue& queue = *lane.receives;
    if (queue.free_slots.empty()) {
      settle();  // unpolled completions may hold all slots
      if (queue.free_slots.empty()) return;
    }
    const std::size_t pick = below(static_cast<std::uint32_t>(queue.free_slots.size()));
    std::swap(queue.free_slots[pick], queue.free_slots.back());
    ModelReceive receive;
    receive.slot = queue.free_slots.back();
    queue.free_slots.pop_back();
    receive.wr_id = ++next_id_;
    std::vector<Sge> sge;
    std::uint64_t at = std::uint64_t{receive.slot} * ModelReceiveQueue::kSlotBytes + below(64);
    std::uint32_t left = ModelReceiveQueue::kCapacity + below(100);
    const std::uint32_t count = 1 + below(3);
    for (std::uint32_t i = 0; i < count; ++i) {
      const std::uint32_t n = i + 1 == count ? left : below(left + 1);
      receive.extents.push_back({at, n});
      sge.push_back(queue.area.region.sge(at, n));
      at += n + below(50);
      left -= n;
    }
    if (queue.is_shared()) {
      queue.srq.receive(receive.wr_id, sge);
    } else {
      lane.responder.receive(receive.wr_id, sge);
      lane.has_received = true;
    }
    queue.posted.push_back(std::move(receive));
    run(lane);
  }

  // --- Completions ---

  void poll(std::size_t side, std::size_t cq) {
    for (const Completion& c : cqs_[side][cq].drain()) check(side, c);
  }

  void check(std::size_t side, const Completion& c) {
    const bool is_receive = static_cast<std::uint32_t>(c.opcode) >= 128;
    ModelLane* lane = nullptr;
    for (ModelPair& pair : pairs_) {
      ModelLane& mine = pair.lane[side];
      if (mine.requester.qpn == c.qpn) lane = is_receive ? &pair.lane[1 - side] : &mine;
    }
    ASSERT_NE(lane, nullptr) << "a completion of an unknown queue pair " << c.qpn;
    std::deque<Expected>& owed = is_receive ? lane->arrivals : lane->sends;
    ASSERT_FALSE(owed.empty()) << "an unexpected completion, wr_id " << c.wr_id << ", status "
                               << static_cast<std::uint32_t>(c.status);
    const Expected expected = owed.front();
    owed.pop_front();
    ASSERT_EQ(c.wr_id, expected.wr_id);
    ASSERT_EQ(c.status, expected.status) << "wr_id " << c.wr_id;
    if (!is_receive) {
      while (!lane->queue.empty()) {
        const std::uint64_t freed = lane->queue.front().first;
        lane->queue.pop_front();
        if (freed == c.wr_id) break;
      }
      return;
    }
    lane->receives->free_slots.push_back(expected.receive.slot);
    if (c.status != WcStatus::Success) return;
    EXPECT_EQ(c.opcode, expected.opcode);
    EXPECT_EQ(c.byte_len, expected.byte_len);
    EXPECT_EQ(c.src_qp, lane->requester.qpn);
    EXPECT_EQ((c.flags & wc_flag::kWithImm) != 0, expected.has_imm);
    EXPECT_EQ(expected.has_imm ? c.imm : 0, expected.has_imm ? expected.imm : 0);
    for (const Extent& e : expected.receive.extents) {
      compare(lane->receives->area, e.at, e.length);
    }
  }

  bool is_owed() const {
    return std::any_of(pairs_.begin(), pairs_.end(), [](const ModelPair& pair) {
      return std::any_of(pair.lane.begin(), pair.lane.end(), [](const ModelLane& lane) {
        return !lane.sends.empty() || !lane.arrivals.empty();
      });
    });
  }
  // Polls until every completion of the model has come.
  void settle() {
    const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(kTimeLimitMs);
    while (is_owed() && !::testing::Test::HasFatalFailure()) {
      for (std::size_t s = 0; s < 2; ++s) {
        for (std::size_t q = 0; q < 2; ++q) poll(s, q);
      }
      ASSERT_LT(std::chrono::steady_clock::now(), end) << "completions are missing";
    }
  }

  void compare(const ModelArea& area, std::uint64_t at, std::uint64_t n) {
    const auto is = area.region.bytes(at, n);
    const auto first = area.bytes.begin() + static_cast<std::ptrdiff_t>(at);
    if (std::equal(is.begin(), is.end(), first)) return;
    const auto differ = std::mismatch(is.begin(), is.end(), first);
    ADD_FAILURE() << "memory of side " << area.region.side->name() << " differs from the model at "
                  << at + static_cast<std::uint64_t>(differ.first - is.begin()) << " of " << at
                  << "+" << n << ": is " << int{*differ.first} << ", should be "
                  << int{*differ.second};
  }

  // --- What happens to areas and queues ---

  void refill(ModelLane& lane) {
    if (!lane.is_idle()) return;
    settle();
    ModelArea& area = chance(50) ? lane.near : lane.far;
    const std::uint64_t seed = random_();
    const std::uint32_t n = below(kAreaBytes);
    const std::uint32_t at = below(kAreaBytes - n);
    area.region.fill(seed, at, n);
    for (std::uint32_t i = 0; i < n; ++i) area.bytes[at + i] = pattern(seed, i);
  }

  void register_anew(ModelLane& lane) {
    if (!lane.is_idle()) return;
    settle();
    ModelArea& area = chance(50) ? lane.near : lane.far;
    Side& side = *area.region.side;
    RegionSpec spec;
    spec.pd = side.pd();
    spec.access = kAllAccess;
    spec.address = area.region.memory;
    spec.length = kAreaBytes;
    spec.iova = chance(30) ? std::uint64_t{below(1000)} * 4096 : spec.address;
    const std::uint32_t old = area.region.handle;
    const bool overlap = chance(50);  // the new region before the old one goes, or after
    Status gone = overlap ? Status::Ok : side.destroy(Kind::Region, old);
    area.region = side.region_over(spec);
    if (overlap) gone = side.destroy(Kind::Region, old);
    EXPECT_EQ(gone, Status::Ok) << side.reason();
    compare(area, 0, kAreaBytes);
  }

  void resize(std::size_t side, std::size_t cq) {
    Reply reply = sides_[side]->expect(
        Command::ResizeCq,
        Message().put(cqs_[side][cq].handle).put(std::uint32_t{700 + below(900)}));
  }

  // --- Failures ---

  void fail_remotely(ModelPair& pair, ModelLane& lane) {
    if (!lane.is_idle() || lane.queue.size() >= kSendSlots) return;
    ModelSend bad;
    bad.work = rdma(WrOpcode::RdmaWrite, ++next_id_, {lane.near.region.sge(0, 8)}, lane.far.region);
    bad.work.rkey ^= 0x5a;
    settle();  // requests that the model has executed may still be under way and would be flushed
    EXPECT_EQ(lane.requester.try_send(bad.work), Status::Ok);
    lane.queue.push_back({bad.work.wr_id, true});
    Expected failed;
    failed.wr_id = bad.work.wr_id;
    failed.status = pair.type == QpType::Uc ? WcStatus::Success : WcStatus::RemAccessErr;
    lane.sends.push_back(failed);
    if (pair.type == QpType::Rc) error_and_reset(pair);
  }

  void fail_locally(ModelPair& pair, ModelLane& lane) {
    if (!lane.is_idle() || lane.queue.size() >= kSendSlots) return;
    Work bad = send_work(++next_id_, {lane.near.region.sge(0, 8)}, WrOpcode::RdmaWrite);
    bad.sge[0].lkey ^= 0x5a;
    settle();
    EXPECT_EQ(lane.requester.try_send(bad), Status::Ok);
    lane.queue.push_back({bad.wr_id, true});
    Expected failed;
    failed.wr_id = bad.wr_id;
    failed.status = WcStatus::LocProtErr;
    lane.sends.push_back(failed);
    if (pair.type == QpType::Rc) return error_and_reset(pair);
    lane.requester.to(QpState::Rts);  // out of SQE
  }

  void flushed(std::deque<Expected>& owed, std::uint64_t wr_id, const ModelReceive& receive) {
    Expected expected;
    expected.wr_id = wr_id;
    expected.status = WcStatus::WrFlushErr;
    expected.receive = receive;
    owed.push_back(expected);
  }

  // Moves both ends to Error: waiting requests are flushed in order. Then resets and reconnects
  // them.
  void error_and_reset(ModelPair& pair) {
    const std::size_t first = below(2);
    pair.lane[first].requester.to(QpState::Error);
    pair.lane[1 - first].requester.to(QpState::Error);
    for (ModelLane& lane : pair.lane) {
      for (const ModelSend& send : lane.waiting) flushed(lane.sends, send.work.wr_id, {});
      lane.waiting.clear();
      if (lane.receives->is_shared()) continue;
      for (const ModelReceive& r : lane.own.posted) flushed(lane.arrivals, r.wr_id, r);
      lane.own.posted.clear();
    }
    settle();
    reset(pair);
  }

  void reset(ModelPair& pair) {
    const std::size_t first = below(2);
    pair.lane[first].requester.to(QpState::Reset);
    pair.lane[1 - first].requester.to(QpState::Reset);
    forget(pair);
    bring_up(pair);
  }

  void recreate(ModelPair& pair) {
    for (ModelLane& lane : pair.lane) EXPECT_EQ(lane.requester.try_destroy(), Status::Ok);
    forget(pair);
    make_queue_pairs(pair);
  }

  // Unpolled completions are void, and so are posted receives, except those of a shared queue.
  void forget(ModelPair& pair) {
    for (ModelLane& lane : pair.lane) {
      // A receive whose completion was not polled may or may not have its data in place.
      for (const Expected& lost : lane.arrivals) renew(*lane.receives, lost.receive);
      if (!lane.receives->is_shared()) {
        for (const ModelReceive& r : lane.own.posted) renew(lane.own, r);
        lane.own.posted.clear();
      }
      // Requests with unpolled completions may or may not have been executed.
      if (!lane.sends.empty() || !lane.arrivals.empty()) {
        for (ModelArea* area : {&lane.near, &lane.far})
          area->bytes = area->region.bytes(0, kAreaBytes);
      }
      lane.has_received = false;
      lane.waiting.clear();
      lane.sends.clear();
      lane.arrivals.clear();
      lane.queue.clear();
    }
  }
  void renew(ModelReceiveQueue& queue, const ModelReceive& receive) {
    queue.free_slots.push_back(receive.slot);
    for (const Extent& e : receive.extents) {
      const auto is = queue.area.region.bytes(e.at, e.length);
      std::copy(is.begin(), is.end(), queue.area.bytes.begin() + static_cast<std::ptrdiff_t>(e.at));
    }
  }

  std::array<Side*, 2> sides_;
  std::mt19937_64 random_;
  std::array<std::array<Cq, 2>, 2> cqs_;
  std::array<ModelReceiveQueue, 2> shared_;
  std::vector<ModelPair> pairs_;
  std::uint64_t next_id_ = 0;
};

std::uint64_t number_from(const char* name, std::uint64_t otherwise) {
  const char* value = std::getenv(name);
  return value == nullptr ? otherwise : std::strtoull(value, nullptr, 0);
}

class RandomWalk : public VerbsTest {};
IB_EVERY_SETTING(RandomWalk);

TEST_P(RandomWalk, EveryCompletionComesOnceInOrderAndMemoryEqualsTheModel) {
  const std::uint64_t steps = number_from("SOFTIB_STEPS", 600);
  const bool one = std::getenv("SOFTIB_SEED") != nullptr;
  const std::uint64_t first = number_from("SOFTIB_SEED", 1);
  const std::uint64_t walks = one ? 1 : number_from("SOFTIB_WALKS", 2);
  for (std::uint64_t seed = first; seed < first + walks; ++seed) {
    const std::string again =
        "SOFTIB_SEED=" + std::to_string(seed) + " SOFTIB_STEPS=" + std::to_string(steps) +
        " test-bin/random_walk_test --gtest_filter='*/" + setting_name({GetParam(), 0}) + "'";
    SCOPED_TRACE("repeat with: " + again);
    Walk walk(*a, *b, seed);
    for (std::uint64_t i = 0; i < steps; ++i) {
      walk.step();
      if (HasFailure()) {
        ADD_FAILURE() << "at step " << i;
        return;
      }
    }
    walk.finish();
    (void)a->expect(Command::DestroyAll);
    (void)b->expect(Command::DestroyAll);
    a->forget_defaults();
    b->forget_defaults();
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace ib::conformance
