// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The ring of a completion queue and the request for an event, as producers and the consumer
// execute them.
#include "tests/models/device_memory.h"

// One source has it, and the model links no library.
#include "hca/queues/cq_consumer.cpp"  // NOLINT(bugprone-suspicious-include)

namespace ib::models {
namespace {

constexpr std::uint32_t kCq = 3;

struct Ring {
  explicit Ring(std::uint32_t slots) : cq(DeviceMemory::renew(arena.cq(kCq))), slots_(slots) {
    cq.id.ring = hca::place::kHeap;
    cq.id.slots = slots;
    cq.id.cqe = slots - 1;
    cq.id.ring_epoch.store(1);
    for (std::uint32_t i = 0; i < slots; ++i) DeviceMemory::renew(at() + i);
    EXPECT_TRUE(consumer.open(arena, kCq, {slots - 1, slots, cq.id.ring}));
  }
  hca::Cqe* at() {
    return reinterpret_cast<hca::Cqe*>(arena.heap(hca::place::kHeap, slots_ * sizeof(hca::Cqe)));
  }
  hca::CqProducer producer() {
    hca::CqProducer made(arena, kCq);
    EXPECT_TRUE(made.look_again(arena));
    return made;
  }
  static auto writer(std::uint32_t wqe) {
    return [wqe](hca::Cqe& slot) {
      touch_write(&slot.wqe);
      slot.wqe = wqe;
    };
  }
  void events_sent(std::uint32_t count) { host.events.store(count); }
  std::uint32_t poll() {
    while (!consumer.arrived(consumer.head())) spin();
    touch_read(&consumer.head().wqe);
    const std::uint32_t wqe = consumer.head().wqe;
    consumer.advance();
    return wqe;
  }

  hca::Arena arena = DeviceMemory::get().arena();
  ModelHost host;
  hca::CqEntry& cq;
  hca::CqConsumer consumer;

 private:
  std::uint32_t slots_;
};

// Two completions through a ring that holds one: the second waits until the first was polled.
void one_producer(Scene& scene, const std::function<const void*(Ring&)>& weak = {}) {
  auto ring = std::make_shared<Ring>(2u);
  scene.thread([ring, by = ring->producer()]() mutable {
    for (std::uint32_t i = 0; i < 3; ++i) {
      while (!by.push_fast(0, nullptr, Ring::writer(i))) spin();
    }
  });
  scene.thread([ring] {
    for (std::uint32_t i = 0; i < 3; ++i) require(ring->poll() == i, "a completion is another's");
  });
  if (weak) scene.weaken({weak(*ring)});
}

TEST(CompletionRing, TheConsumerReadsWhatWasWritten) {
  expect_holds([](Scene& scene) { one_producer(scene); });
}
TEST(CompletionRing, TheSequenceNumberOrdersTheCompletion) {
  expect_fails(
      [](Scene& scene) { one_producer(scene, [](Ring& ring) { return &ring.at()[0].seq; }); });
}
TEST(CompletionRing, TheConsumersPositionOrdersTheReuseOfASlot) {
  expect_fails([](Scene& scene) {
    one_producer(scene, [](Ring& ring) { return &ring.cq.consumer.consumer; });
  });
}

// Two producers share it.
void two_producers(Scene& scene, bool weak) {
  auto ring = std::make_shared<Ring>(4u);
  ring->cq.id.shared_producers.store(1);
  for (std::uint32_t slot = 0; slot < 2; ++slot) {
    scene.thread([ring, slot, by = ring->producer()]() mutable {
      const hca::Push result =
          by.push_with(ring->arena, ring->host, slot, nullptr, Ring::writer(slot));
      require(result == hca::Push::Done, "a completion has no room");
    });
  }
  scene.finally([ring] {
    require(ring->cq.producer.producer.load() == 2, "a completion is lost");
    require(ring->at()[0].wqe + ring->at()[1].wqe == 1, "a completion is lost");
  });
  if (weak) scene.weaken({&ring->cq.producer.lock});
}

TEST(CompletionRing, ProducersThatShareItTakeTurns) {
  expect_holds([](Scene& scene) { two_producers(scene, false); });
}
TEST(CompletionRing, TheLockOrdersTheProducers) {
  expect_fails([](Scene& scene) { two_producers(scene, true); });
}

// A producer delivers and looks whether the queue is armed; the consumer arms it, looks once more
// and sleeps. `used`: it has been armed before.
void event(Scene& scene, bool used, const Weakened& weakened) {
  auto ring = std::make_shared<Ring>(4u);
  ring->cq.id.channel = 1;
  ring->cq.arm.used.store(used ? 1 : 0);
  scene.thread([ring, by = ring->producer()]() mutable {
    require(by.push_fast(0, nullptr, Ring::writer(7)), "no room");
    if (by.may_fire()) by.fire(ring->host, false);
  });
  scene.thread([ring] {
    ring->consumer.arm(ring->host, false);
    // read() of the channel
    while (ring->host.events.load() == 0) sleep_on(&ring->host.events, sizeof(std::uint32_t), 0);
    require(ring->consumer.arrived(ring->consumer.head()), "an event without a completion");
  });
  scene.weaken(weakened);
}

TEST(CompletionEvent, AnArmedQueueMissesNone) {
  expect_holds([](Scene& scene) { event(scene, true, {}); });
}
TEST(CompletionEvent, NeedsFencesOnBothSides) {
  expect_fails([](Scene& scene) { event(scene, true, {nullptr, false, true, false}); });
}
TEST(CompletionEvent, TheFirstArmMissesNone) {
  expect_holds([](Scene& scene) { event(scene, false, {}); });
}
TEST(CompletionEvent, TheFirstArmNeedsABarrierInTheProducer) {
  expect_fails([](Scene& scene) { event(scene, false, {nullptr, false, false, true}); });
}

// Two completions, the first of which fires; the consumer polls and arms again.
TEST(CompletionEvent, ArmingAgainMissesNone) {
  expect_holds([](Scene& scene) {
    auto ring = std::make_shared<Ring>(4u);
    ring->cq.id.channel = 1;
    ring->cq.arm.used.store(1);
    ring->cq.arm.armed.store(hca::CqEntry::kFiring);  // and the event was sent just now
    ring->events_sent(1);
    scene.thread([ring, by = ring->producer()]() mutable {
      std::uint32_t firing = hca::CqEntry::kFiring;
      ring->cq.arm.armed.compare_exchange_strong(firing, 0, std::memory_order_acq_rel);
      require(by.push_fast(0, nullptr, Ring::writer(1)), "no room");
      if (by.may_fire()) by.fire(ring->host, false);
    });
    scene.thread([ring] {
      ring->consumer.arm(ring->host, false);
      while (ring->host.events.load() == 1) sleep_on(&ring->host.events, sizeof(std::uint32_t), 1);
      require(ring->consumer.arrived(ring->consumer.head()), "an event without a completion");
    });
  });
}

}  // namespace
}  // namespace ib::models
