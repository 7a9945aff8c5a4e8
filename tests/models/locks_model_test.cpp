// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The locks of the data path: BiasedLock, which its owner takes with plain stores, and ShmLock,
// whose holder may die.
#include "hca/layout/shm_lock.h"
#include "tests/models/device_memory.h"
#include "user/biased_lock.h"

namespace ib::models {
namespace {

// A lock that thread 0 owns, and what it protects.
struct Biased {
  explicit Biased(platform::Barriers& barriers) : lock(barriers) {
    platform::acting_thread = 0;
    for (std::uint32_t i = 0; i < user::BiasedLock::kLocksToOwn; ++i) {
      lock.lock();
      lock.unlock();
    }
  }
  void visit() {
    lock.lock();
    touch_write(&data);
    lock.unlock();
  }
  void visit_if_free() {
    if (!lock.try_lock()) return;
    touch_write(&data);
    lock.unlock();
  }

  user::BiasedLock lock;
  int data = 0;
};

ModelBarriers barriers;

void stranger_comes(Scene& scene, int visits_of_owner, const Weakened& weakened = {}) {
  auto biased = std::make_shared<Biased>(barriers);
  scene.thread([biased, visits_of_owner] {
    for (int i = 0; i < visits_of_owner; ++i) biased->visit();
  });
  scene.thread([biased] { biased->visit(); });
  scene.weaken(weakened);
}

TEST(BiasedLockModel, AStrangerShutsTheOwnerOut) {
  expect_holds([](Scene& scene) { stranger_comes(scene, 1); });
}
TEST(BiasedLockModel, AndTheOwnerComesBack) {
  expect_holds([](Scene& scene) { stranger_comes(scene, 2); });
}
TEST(BiasedLockModel, NeedsABarrierInTheOwner) {
  expect_fails([](Scene& scene) { stranger_comes(scene, 1, {nullptr, false, false, true}); });
}
TEST(BiasedLockModel, NeedsItsOrders) {
  expect_fails([](Scene& scene) { stranger_comes(scene, 1, {nullptr, true, false, false}); });
}

// The service thread takes it only if it is free.
TEST(BiasedLockModel, WhoOnlyTriesTakesNothingThatIsHeld) {
  const auto build = [](Scene& scene, const Weakened& weakened) {
    auto biased = std::make_shared<Biased>(barriers);
    scene.thread([biased] { biased->visit(); });
    scene.thread([biased] { biased->visit_if_free(); });
    scene.weaken(weakened);
  };
  expect_holds([&](Scene& scene) { build(scene, {}); });
  expect_fails([&](Scene& scene) { build(scene, {nullptr, false, false, true}); });
}

// Two processes and softibd, which breaks the lock of the first if that dies with it, as
// drivers/soft_hca/lifetime/death_repair.cpp does.
void holder_dies(Scene& scene, bool repairs, bool weak) {
  struct Shared {
    hca::Shared32 word{0};
    int data = 0;
  };
  auto shared = std::make_shared<Shared>();
  const auto visit = [shared](std::uint32_t slot) {
    const bool taken =
        hca::lock(shared->word, hca::lock_owner(slot), [](std::uint32_t) { spin(); });
    require(taken, "the lock does not become free");
    touch_write(&shared->data);
    hca::unlock(shared->word);
  };
  scene.thread([visit] { visit(0); });
  scene.may_be_killed();
  scene.thread([visit] { visit(1); });
  scene.thread([shared, repairs] {
    await_end(0);
    if (!repairs || shared->word.load() != hca::lock_owner(0)) return;
    touch_write(&shared->data);
    hca::unlock(shared->word);
  });
  if (weak) scene.weaken({&shared->word});
}

TEST(ShmLockModel, TheLockOfADeadProcessIsBrokenOnceAndInOrder) {
  expect_holds([](Scene& scene) { holder_dies(scene, true, false); });
}
TEST(ShmLockModel, ALockThatNobodyBreaksStaysTaken) {
  expect_fails([](Scene& scene) { holder_dies(scene, false, false); });
}
TEST(ShmLockModel, NeedsItsOrders) {
  expect_fails([](Scene& scene) { holder_dies(scene, true, true); });
}

}  // namespace
}  // namespace ib::models
