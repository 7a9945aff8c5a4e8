// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Asymmetric memory barriers: of two sides that must see each other's stores, one passes ten
// million times a second and the other now and then. The frequent side stores and loads with only
// the compiler kept from reordering (light_barrier()); the other pays for both by making every
// thread that runs pass a full barrier, wherever it is (membarrier(2) on Linux).
//
// If the kernel refuses that, join() returns false and both sides must use full barriers.
#pragma once

#include <atomic>

namespace ib::platform {

// Keeps stores before it and loads after it in order as seen by Barriers::threads() and
// processes(), and by no other means.
inline void light_barrier() {
  std::atomic_signal_fence(std::memory_order_seq_cst);
}

class Barriers {
 public:
  virtual ~Barriers() = default;
  // This process takes part from now on. Returns false if it cannot. May be called again.
  virtual bool join() = 0;
  virtual bool joined() const = 0;
  // A full barrier here and in every thread of this process.
  virtual void threads() = 0;
  // The same in every thread of every process that has joined. This process need not have joined.
  virtual void processes() = 0;
};

// For processes that do not join: full barriers on both sides.
class FullBarriers final : public Barriers {
 public:
  bool join() override { return false; }
  bool joined() const override { return false; }
  void threads() override { std::atomic_thread_fence(std::memory_order_seq_cst); }
  void processes() override { std::atomic_thread_fence(std::memory_order_seq_cst); }
};

}  // namespace ib::platform
