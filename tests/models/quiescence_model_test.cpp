// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Objects that are taken away while others work with them: the scopes of posters, the wait for
// them, and queue pairs that nobody has worked with.
#include "hca/layout/first_use.h"
#include "hca/layout/quiescence.h"
#include "hca/memory/op_scope.h"
#include "tests/models/device_memory.h"

namespace ib::models {
namespace {

constexpr std::uint32_t kKey = 0x701;
constexpr std::uint32_t kQp = 9;
constexpr std::uint32_t kSurvivor = 1;  // the slot of another process

// A process with two threads that post, and one that takes its objects away (softibd).
struct Fabric {
  Fabric() {
    hca::ProcessSlot& slot = DeviceMemory::renew(arena.slot(0));
    slot.live.store(1);
    slot.words_used.store(2);
    DeviceMemory::renew(&arena.header()).slots_used.store(1);
    key.id.key.store(kKey);
    key.id.state.store(hca::KeyState::Valid);
    qp.id.qpn.store(kQp);
  }

  // One request by RemoteKeys::granted(), which uses what the key names.
  void post() {
    const hca::OpScope scope(plane);
    if (key.id.state.load(std::memory_order_acquire) != hca::KeyState::Valid ||
        key.id.key.load(std::memory_order_acquire) != kKey) {
      return;
    }
    // Something comes between the two: others may do anything meanwhile.
    qp.requester.messages.store(1, std::memory_order_relaxed);
    touch_read(&key.id.address);
  }
  // Its deregistration by drivers/soft_hca/memory/memory_regions.cpp, and the next use of it.
  void deregister() {
    key.id.state.exchange(hca::KeyState::Invalid, std::memory_order_seq_cst);
    key.id.key.store(0, std::memory_order_seq_cst);
    hca::Quiescence quiet(arena, host.barriers(), 0);
    while (!quiet.done()) spin();
    touch_write(&key.id.address);
  }

  // The process was killed in a scope, and softibd buries it, as retire() in
  // drivers/soft_hca/lifetime/process_slots.cpp does.
  void die_in_a_scope() {
    hca::ProcessSlot& slot = *arena.slot(0);
    slot.generation.store(1);
    slot.threads[0].sequence.store(1);
  }
  void bury() {
    hca::ProcessSlot& slot = *arena.slot(0);
    slot.live.store(0, std::memory_order_seq_cst);
    slot.generation.store(2, std::memory_order_seq_cst);
  }
  // A flush of a survivor, who waits for those that may be delivering.
  void wait_for_posters() {
    hca::Quiescence quiet(arena, host.barriers(), kSurvivor);
    while (!quiet.done()) spin();
  }

  // A request of a queue pair by PeerCache::resolve().
  void use_qp() {
    hca::begin_use(qp);
    if (qp.id.qpn.load(std::memory_order_acquire) != kQp) return;
    qp.requester.messages.store(1, std::memory_order_relaxed);
    touch_read(&qp.id.owner_slot);
  }
  // Its destruction by drivers/soft_hca/objects/qp.cpp. Not without waiting if it was used.
  void destroy_qp() {
    qp.id.qpn.store(0, std::memory_order_seq_cst);
    if (hca::was_never_used(qp)) touch_write(&qp.id.owner_slot);
  }

  hca::Arena arena = DeviceMemory::get().arena();
  ModelHost host;
  hca::KeyEntry& key = DeviceMemory::renew(arena.key(hca::key_index(kKey)));
  hca::QpEntry& qp = DeviceMemory::renew(arena.qp(kQp));
  hca::MemoryPlane plane{arena, host, 0};
};

void revoke(Scene& scene, int requests, const std::function<Weakened(Fabric&)>& weakened = {}) {
  auto fabric = std::make_shared<Fabric>();
  scene.thread([fabric, requests] {
    for (int i = 0; i < requests; ++i) fabric->post();
  });
  scene.thread([fabric] { fabric->deregister(); });
  if (weakened) scene.weaken(weakened(*fabric));
}

TEST(Quiescence, NobodyUsesAKeyThatIsGone) {
  expect_holds([](Scene& scene) { revoke(scene, 1); });
}
// The waiter may find the word of the second one, and the first has ended all the same.
TEST(Quiescence, ASecondScopeEndsTheWaitForTheFirst) {
  expect_holds([](Scene& scene) { revoke(scene, 2); });
}
TEST(Quiescence, NeedsABarrierInThePoster) {
  expect_fails([](Scene& scene) {
    revoke(scene, 1, [](Fabric&) { return Weakened{nullptr, false, false, true}; });
  });
}
TEST(Quiescence, TheEndOfAScopeOrdersItsLoads) {
  expect_fails([](Scene& scene) {
    revoke(scene, 1, [](Fabric& f) { return Weakened{&f.arena.slot(0)->threads[0].sequence}; });
  });
}

// Processes that cannot make others pass a barrier.
TEST(Quiescence, FencesInEveryScopeReplaceTheBarrier) {
  const auto build = [](Scene& scene, bool fenced) {
    auto fabric = std::make_shared<Fabric>();
    fabric->arena.header().fenced_entries.store(fenced ? 1 : 0);
    scene.thread([fabric] { fabric->post(); });
    scene.thread([fabric] {
      fabric->key.id.state.exchange(hca::KeyState::Invalid, std::memory_order_seq_cst);
      platform::FullBarriers full;
      hca::Quiescence quiet(fabric->arena, full, 0);
      while (!quiet.done()) spin();
      touch_write(&fabric->key.id.address);
    });
  };
  expect_holds([&](Scene& scene) { build(scene, true); });
  expect_fails([&](Scene& scene) { build(scene, false); });
}

// Its word stays odd until the slot gets another process, which may be never.
TEST(Quiescence, ThoseWhoDieInAScopeAreNotWaitedForWithoutEnd) {
  expect_holds([](Scene& scene) {
    auto fabric = std::make_shared<Fabric>();
    fabric->die_in_a_scope();
    scene.thread([fabric] { fabric->wait_for_posters(); });
    scene.thread([fabric] { fabric->bury(); });
  });
}

// A process in a section of a stream (streams/section.h): the queue pair that it names is
// softibd's, and so is all that it touches. The key stands for the end, its number for
// SharedEnd::stream.
struct StreamFabric : Fabric {
  StreamFabric() {
    hca::ProcessSlot& slot = DeviceMemory::renew(arena.slot(kSurvivor));
    slot.live.store(1);
    slot.words_used.store(2);
    arena.header().slots_used.store(2);
    qp.id.type = verbs::QpType::Rc;
    qp.connection.dest_qpn = kQp;  // both ends are softibd's
  }
  void work() {
    const hca::OpScope scope(process, hca::executing::queue_pair(kQp));
    if (key.id.key.load(std::memory_order_acquire) != kKey) return;
    touch_read(&key.id.address);
  }
  // The queue pair goes first, and its entry is given away; then softibd waits again, for posters
  // in what else the stream had.
  void end_stream(bool is_told) {
    if (is_told) key.id.key.store(0, std::memory_order_seq_cst);
    qp.id.qpn.store(0, std::memory_order_seq_cst);
    wait();
    qp.id.owner_slot = kStranger;
    key.id.key.store(0, std::memory_order_seq_cst);
    wait();
    touch_write(&key.id.address);
  }
  void wait() {
    hca::Quiescence quiet(arena, host.barriers(), 0);
    while (!quiet.done()) spin();
  }

  static constexpr std::uint32_t kStranger = 2;
  hca::MemoryPlane process{arena, host, kSurvivor};
};

void end_stream(Scene& scene, bool is_told) {
  auto fabric = std::make_shared<StreamFabric>();
  scene.thread([fabric] { fabric->work(); });
  scene.thread([fabric, is_told] { fabric->end_stream(is_told); });
}

TEST(Quiescence, NobodyUsesAStreamThatIsGone) {
  expect_holds([](Scene& scene) { end_stream(scene, true); });
}
TEST(Quiescence, AnEndIsUnfindableBeforeItsQueuePairGoes) {
  expect_fails([](Scene& scene) { end_stream(scene, false); });
}

void first_use(Scene& scene, int users, bool weak_fences) {
  auto fabric = std::make_shared<Fabric>();
  for (int i = 0; i < users; ++i) scene.thread([fabric] { fabric->use_qp(); });
  scene.thread([fabric] { fabric->destroy_qp(); });
  scene.weaken({nullptr, false, weak_fences, false});
}

TEST(FirstUse, NobodyWorksWithAQueuePairThatNobodyUsed) {
  expect_holds([](Scene& scene) { first_use(scene, 1, false); });
}
// It finds it in use, and passes no barrier.
TEST(FirstUse, NorDoesASecondThread) {
  expect_holds([](Scene& scene) { first_use(scene, 2, false); });
}
TEST(FirstUse, NeedsFences) {
  expect_fails([](Scene& scene) { first_use(scene, 1, true); });
}

}  // namespace
}  // namespace ib::models
