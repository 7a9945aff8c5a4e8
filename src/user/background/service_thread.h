// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// ServiceThread: rung by peers (doorbell) and by this process, it serves bounces, flushes queue
// pairs that others moved to Error, and runs waiting work requests on a clock tick when the
// application itself is not polling. It sleeps until it has work.
#pragma once

#include "hca/layout/layout.h"
#include "hca/memory/memory_plane.h"
#include "platform/client_host.h"
#include "user/background/attention.h"
#include "user/background/file_sweep.h"
#include "user/background/waiting_requests.h"
#include "user/poster.h"

#include <atomic>
#include <cstdint>
#include <memory>

namespace ib::user {

class ServiceThread {
 public:
  // The parts of this process in which there is work.
  struct Work {
    platform::ClientHost& host;
    Poster& poster;
    hca::MemoryPlane& plane;
    Attention& attention;
    WaitingRequests& waiting;
  };

  explicit ServiceThread(const Work& work)
      : work_(work), sweep_(work.host, work.poster.files(), work.plane) {}
  ~ServiceThread();  // ends it
  ServiceThread(const ServiceThread&) = delete;
  ServiceThread& operator=(const ServiceThread&) = delete;

  Status start();
  // There is work. The thread ticks as long as something waits; this wakes it if it sleeps without
  // a deadline. Any thread.
  void wake() {
    if (ticks_.load(std::memory_order_seq_cst) == 0) ring();
  }
  // A connection of this process has ended.
  void peer_may_go() {
    if (sweep_.peer_may_go()) wake();
  }
  bool wants_sweep() const { return sweep_.wants_round(); }

 private:
  void run();
  Duration round();
  void ring();

  Work work_;
  std::atomic<std::uint32_t> ticks_{0};  // 1: it wakes up by itself
  std::atomic<bool> stopping_{false};
  // Of the thread itself:
  std::uint32_t linger_ticks_ = 0;
  std::uint32_t runs_seen_ = 0;
  FileSweep sweep_;
  std::unique_ptr<platform::ClientHost::Thread> thread_;
};

}  // namespace ib::user
