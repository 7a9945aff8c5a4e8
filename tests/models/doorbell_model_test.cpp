// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Requests for a thread that may sleep: the doorbell of a process, and the waiting requests of its
// service thread.
#include "hca/layout/doorbell.h"
#include "tests/models/device_memory.h"

namespace ib::models {
namespace {

constexpr Duration kLong = std::chrono::hours(1);

// A peer submits a request and rings; the service thread looks for requests, or sleeps.
void ring(Scene& scene, const std::function<const void*(hca::ProcessSlot&)>& weak = {}) {
  auto slot = std::make_shared<hca::ProcessSlot>();
  scene.thread([slot] {
    slot->attention.fetch_add(1, std::memory_order_release);
    hca::ring_doorbell(
        *slot, 0, [](hca::Shared32& word) { wake(&word); },
        [](const auto&) { require(false, "it does not listen"); });
  });
  scene.thread([slot] {
    bool done = false;
    hca::answer_doorbell(
        *slot, [&] { return done; },
        [&] {
          done = slot->attention.load(std::memory_order_acquire) != 0;
          return done ? Duration::zero() : kLong;
        },
        [](hca::Shared32& word, std::uint32_t rung, Duration) {
          sleep_on(&word, sizeof(std::uint32_t), rung);
        });
  });
  if (weak) scene.weaken({weak(*slot)});
}

TEST(DoorbellModel, ARequestIsServed) {
  expect_holds([](Scene& scene) { ring(scene); });
}
TEST(DoorbellModel, WaitingNeedsTheOneOrderOfBothSides) {
  expect_fails(
      [](Scene& scene) { ring(scene, [](hca::ProcessSlot& slot) { return &slot.waiting; }); });
}
TEST(DoorbellModel, TheRingOrdersTheRequest) {
  expect_fails(
      [](Scene& scene) { ring(scene, [](hca::ProcessSlot& slot) { return &slot.doorbell; }); });
}

// A request that has to wait is counted, and the service thread is woken unless it ticks; that
// thread ends to tick and looks once more. After WaitingRequests::enroll(), ServiceThread::wake()
// and ServiceThread::round().
void enroll(Scene& scene, std::memory_order counted) {
  struct Service {
    hca::Shared32 count{0};
    hca::Shared32 ticks{1};
    hca::Shared32 doorbell{0};
  };
  auto service = std::make_shared<Service>();
  scene.thread([service, counted] {
    service->count.store(1, counted);
    if (service->ticks.load(std::memory_order_seq_cst) != 0) return;
    service->doorbell.fetch_add(1, std::memory_order_seq_cst);
    wake(&service->doorbell);
  });
  scene.thread([service] {
    for (;;) {
      const std::uint32_t rung = service->doorbell.load(std::memory_order_seq_cst);
      service->ticks.store(0, std::memory_order_seq_cst);
      if (service->count.load(std::memory_order_seq_cst) != 0) return;
      sleep_on(&service->doorbell, sizeof rung, rung);
    }
  });
}

TEST(ServiceThreadModel, NoRequestWaitsForAThreadThatSleeps) {
  expect_holds([](Scene& scene) { enroll(scene, std::memory_order_seq_cst); });
}
TEST(ServiceThreadModel, TheCountNeedsTheOneOrderOfBothSides) {
  expect_fails([](Scene& scene) { enroll(scene, std::memory_order_release); });
}

}  // namespace
}  // namespace ib::models
