// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Replaces std::atomic and its fences by the explorer's in all headers that follow. The compiler
// includes it before all else (CMakeLists.txt). Programs that have it link no library of softib,
// since the same names mean something else there.
#pragma once

// Everything of the standard library that the headers under test include, with the real ones.
#include "tests/models/explorer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <chrono>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

// The headers name these std::, and a macro replaces one word only.
namespace std {  // NOLINT(cert-dcl58-cpp)

template <class T>
class model_atomic {
  static_assert(sizeof(T) <= sizeof(std::uint64_t));

 public:
  using value_type = T;
  static constexpr bool is_always_lock_free = true;

  constexpr model_atomic() noexcept : value_{} {}
  constexpr model_atomic(T value) noexcept : value_(value) {}
  model_atomic(const model_atomic&) = delete;
  model_atomic& operator=(const model_atomic&) = delete;

  T load(memory_order order = memory_order_seq_cst) const {
    return unpack(ib::models::load(access(order, order)));
  }
  void store(T value, memory_order order = memory_order_seq_cst) {
    ib::models::store(access(order, order), pack(value));
  }
  operator T() const { return load(); }
  T operator=(T value) {
    store(value);
    return value;
  }
  T exchange(T value, memory_order order = memory_order_seq_cst) {
    return change(order, [&](T) { return value; });
  }
  template <class N>
  T fetch_add(N n, memory_order order = memory_order_seq_cst) {
    return change(order, [&](T old) { return static_cast<T>(old + static_cast<T>(n)); });
  }
  template <class N>
  T fetch_sub(N n, memory_order order = memory_order_seq_cst) {
    return change(order, [&](T old) { return static_cast<T>(old - static_cast<T>(n)); });
  }
  template <class N>
  T fetch_and(N n, memory_order order = memory_order_seq_cst) {
    return change(order, [&](T old) { return static_cast<T>(old & static_cast<T>(n)); });
  }
  bool compare_exchange_strong(T& expected, T wanted, memory_order done, memory_order failed) {
    bool stored = false;
    const std::uint64_t old =
        ib::models::modify(access(done, failed), [&](std::uint64_t value, std::uint64_t& next) {
          next = pack(wanted);
          return stored = value == pack(expected);
        });
    if (!stored) expected = unpack(old);
    return stored;
  }
  bool compare_exchange_strong(T& expected, T wanted, memory_order order = memory_order_seq_cst) {
    const memory_order failed = order == memory_order_acq_rel   ? memory_order_acquire
                                : order == memory_order_release ? memory_order_relaxed
                                                                : order;
    return compare_exchange_strong(expected, wanted, order, failed);
  }
  bool compare_exchange_weak(T& expected, T wanted, memory_order order = memory_order_seq_cst) {
    return compare_exchange_strong(expected, wanted, order);
  }

 private:
  ib::models::Access access(memory_order order, memory_order failed) const {
    return {const_cast<T*>(&value_), sizeof(T), order, failed};
  }
  template <class Next>
  T change(memory_order order, Next&& next_of) {
    return unpack(
        ib::models::modify(access(order, order), [&](std::uint64_t value, std::uint64_t& next) {
          next = pack(next_of(unpack(value)));
          return true;
        }));
  }
  static std::uint64_t pack(T value) {
    std::uint64_t bits = 0;
    std::memcpy(&bits, &value, sizeof value);
    return bits;
  }
  static T unpack(std::uint64_t bits) {
    T value;
    std::memcpy(&value, &bits, sizeof value);
    return value;
  }

  T value_;
};

inline void model_atomic_thread_fence(memory_order order) {
  ib::models::fence(order);
}
// The fibers run in program order.
inline void model_atomic_signal_fence(memory_order) {}

namespace model_this_thread {
inline void yield() {
  ib::models::spin();
}
}  // namespace model_this_thread

}  // namespace std

#define atomic model_atomic
#define atomic_thread_fence model_atomic_thread_fence
#define atomic_signal_fence model_atomic_signal_fence
#define this_thread model_this_thread

namespace ib::models {

inline void expect_holds(const std::function<void(Scene&)>& build) {
  const Outcome outcome = explore(build);
  EXPECT_EQ(outcome.failure, "");
  EXPECT_TRUE(outcome.complete) << "only " << outcome.runs << " runs were tried";
  ::testing::Test::RecordProperty("runs", static_cast<int>(outcome.runs));
}
inline void expect_fails(const std::function<void(Scene&)>& build) {
  EXPECT_NE(explore(build).failure, "") << "the model does not detect the mistake";
}

}  // namespace ib::models
