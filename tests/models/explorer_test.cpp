// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The explorer finds the outcomes that C++ [atomics.order, intro.races] permits, and no others.
// Names as in the literature on memory models.
#include "tests/models/atomics.h"

namespace ib::models {
namespace {

using std::memory_order;
constexpr auto kRelaxed = memory_order::relaxed;
constexpr auto kAcquire = memory_order::acquire;
constexpr auto kRelease = memory_order::release;
constexpr auto kSeqCst = memory_order::seq_cst;

struct Shared {
  std::atomic<int> x{0}, y{0};
  int data = 0;
  std::array<int, 4> seen{};
};
using Body = std::function<void(Shared&)>;

// Whether some run ends so.
bool is_possible(const std::vector<Body>& threads, const std::function<bool(const Shared&)>& end) {
  const Outcome outcome = explore([&](Scene& scene) {
    auto shared = std::make_shared<Shared>();
    for (const Body& body : threads) scene.thread([shared, body] { body(*shared); });
    scene.finally([shared, end] { require(!end(*shared), "so"); });
  });
  EXPECT_TRUE(outcome.complete || !outcome.failure.empty());
  return !outcome.failure.empty();
}

bool store_buffering(memory_order store, memory_order load, bool fence) {
  const auto side = [=](std::atomic<int> Shared::*mine, std::atomic<int> Shared::*other,
                        std::size_t i) {
    return [=](Shared& s) {
      (s.*mine).store(1, store);
      if (fence) std::atomic_thread_fence(kSeqCst);
      s.seen[i] = (s.*other).load(load);
    };
  };
  return is_possible({side(&Shared::x, &Shared::y, 0), side(&Shared::y, &Shared::x, 1)},
                     [](const Shared& s) { return s.seen[0] == 0 && s.seen[1] == 0; });
}

TEST(Explorer, StoreBuffering) {
  EXPECT_TRUE(store_buffering(kRelease, kAcquire, false));
  EXPECT_TRUE(store_buffering(kSeqCst, kAcquire, false)) << "one order needs both operations in it";
  EXPECT_FALSE(store_buffering(kSeqCst, kSeqCst, false));
  EXPECT_FALSE(store_buffering(kRelaxed, kRelaxed, true));
}

bool message_passing(memory_order store, memory_order load) {
  return is_possible({[=](Shared& s) {
                        s.x.store(1, kRelaxed);
                        s.y.store(1, store);
                      },
                      [=](Shared& s) {
                        s.seen[0] = s.y.load(load);
                        s.seen[1] = s.x.load(kRelaxed);
                      }},
                     [](const Shared& s) { return s.seen[0] == 1 && s.seen[1] == 0; });
}

TEST(Explorer, MessagePassing) {
  EXPECT_FALSE(message_passing(kRelease, kAcquire));
  EXPECT_TRUE(message_passing(kRelaxed, kAcquire));
  EXPECT_TRUE(message_passing(kRelease, kRelaxed));
}

// A later store of the same thread is no part of a release sequence; a read-modify-write is.
TEST(Explorer, ReleaseSequences) {
  const auto run = [](const Body& second) {
    return is_possible({[=](Shared& s) {
                          s.x.store(1, kRelaxed);
                          s.y.store(1, kRelease);
                          second(s);
                        },
                        [](Shared& s) {
                          s.seen[0] = s.y.load(kAcquire);
                          s.seen[1] = s.x.load(kRelaxed);
                        }},
                       [](const Shared& s) { return s.seen[0] == 2 && s.seen[1] == 0; });
  };
  EXPECT_TRUE(run([](Shared& s) { s.y.store(2, kRelaxed); }));
  EXPECT_FALSE(run([](Shared& s) { s.y.fetch_add(1, kRelaxed); }));
}

TEST(Explorer, Coherence) {
  EXPECT_FALSE(is_possible({[](Shared& s) { s.x.store(1, kRelaxed); },
                            [](Shared& s) {
                              s.seen[0] = s.x.load(kRelaxed);
                              s.seen[1] = s.x.load(kRelaxed);
                            }},
                           [](const Shared& s) { return s.seen[0] == 1 && s.seen[1] == 0; }));
}

TEST(Explorer, TwoPlusTwoWrites) {
  EXPECT_TRUE(is_possible({[](Shared& s) {
                             s.x.store(1, kRelaxed);
                             s.y.store(2, kRelaxed);
                           },
                           [](Shared& s) {
                             s.y.store(1, kRelaxed);
                             s.x.store(2, kRelaxed);
                           }},
                          [](const Shared& s) { return s.x.load() == 1 && s.y.load() == 1; }));
}

bool independent_reads(bool fence) {
  const auto reader = [=](std::atomic<int> Shared::*one, std::atomic<int> Shared::*other,
                          std::size_t i) {
    return [=](Shared& s) {
      s.seen[i] = (s.*one).load(kAcquire);
      if (fence) std::atomic_thread_fence(kSeqCst);
      s.seen[i + 1] = (s.*other).load(kAcquire);
    };
  };
  return is_possible(
      {[](Shared& s) { s.x.store(1, kRelease); }, [](Shared& s) { s.y.store(1, kRelease); },
       reader(&Shared::x, &Shared::y, 0), reader(&Shared::y, &Shared::x, 2)},
      [](const Shared& s) {
        return s.seen == std::array{1, 0, 1, 0};
      });
}

TEST(Explorer, IndependentReadsOfIndependentWrites) {
  EXPECT_TRUE(independent_reads(false));
  EXPECT_FALSE(independent_reads(true));
}

TEST(Explorer, ReadModifyWritesLoseNothing) {
  const Body add = [](Shared& s) { s.x.fetch_add(1, kRelaxed); };
  EXPECT_FALSE(is_possible({add, add, add}, [](const Shared& s) { return s.x.load() != 3; }));
}

TEST(Explorer, FindsRaces) {
  const auto pass = [](memory_order order) {
    return explore([=](Scene& scene) {
             auto s = std::make_shared<Shared>();
             scene.thread([=] {
               touch_write(&s->data);
               s->x.store(1, order);
             });
             scene.thread([=] {
               if (s->x.load(kAcquire) == 1) touch_read(&s->data);
             });
           })
        .failure;
  };
  EXPECT_EQ(pass(kRelease), "");
  EXPECT_NE(pass(kRelaxed), "");
}

// A barrier made in the other thread stands for its fence, and for no order that it does not give.
TEST(Explorer, ABarrierInTheOtherThreadReplacesItsFence) {
  const auto run = [](bool barrier) {
    return is_possible({[](Shared& s) {
                          s.x.store(1, kRelaxed);
                          s.seen[0] = s.y.load(kRelaxed);
                        },
                        [=](Shared& s) {
                          s.y.store(1, kRelaxed);
                          if (barrier) barrier_everywhere();
                          s.seen[1] = s.x.load(kRelaxed);
                        }},
                       [](const Shared& s) { return s.seen[0] == 0 && s.seen[1] == 0; });
  };
  EXPECT_FALSE(run(true));
  EXPECT_TRUE(run(false));
}

TEST(Explorer, FindsAThreadThatNobodyWakes) {
  const auto run = [](bool wakes) {
    return explore([=](Scene& scene) {
             auto s = std::make_shared<Shared>();
             scene.thread([=] {
               s->x.store(1, kRelaxed);
               if (wakes) wake(&s->x);
             });
             scene.thread([=] { sleep_on(&s->x, sizeof(int), 0); });
           })
        .failure;
  };
  EXPECT_EQ(run(true), "");
  EXPECT_NE(run(false), "");
}

}  // namespace
}  // namespace ib::models
