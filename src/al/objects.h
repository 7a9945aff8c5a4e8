// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Objects: the completion queues, queue pairs and shared receive queues of a client by what polls
// and events name, and the timer of queue pairs whose requests wait.
#pragma once

#include "al/system.h"
#include "base/export.h"
#include "base/time.h"

#include <cstdint>
#include <map>
#include <memory>

namespace ib::al {

class Ca;
class Poster;
struct Cq;
struct Qp;
struct Srq;

class IB_DRIVER_API Objects {
 public:
  explicit Objects(System& system) : system_(system) {}
  Objects(const Objects&) = delete;
  Objects& operator=(const Objects&) = delete;

  std::map<std::uint32_t, Cq*>& cqs() { return cqs_; }     // by index
  std::map<std::uint32_t, Qp*>& qps() { return qps_; }     // by number
  std::map<std::uint32_t, Srq*>& srqs() { return srqs_; }  // by index

  // The client is open: this sends its notifications.
  void start(Poster& poster) { poster_ = &poster; }
  void stop();

  // When requests that wait are due; after each change of that.
  void arm_timer();
  // Requests that wait, and queue pairs to be flushed.
  void run_waiting();
  // A completion event of the completion queue with this index has come.
  void complete(std::uint32_t cq);
  // The CA is closed: its objects end.
  void end_all_of(const Ca& ca);

 private:
  static constexpr Duration kPosterRetry = std::chrono::microseconds(50);
  static constexpr Duration kLong = std::chrono::milliseconds(1);
  static constexpr Duration kRest = std::chrono::milliseconds(20);

  System& system_;
  Poster* poster_ = nullptr;
  std::map<std::uint32_t, Cq*> cqs_;
  std::map<std::uint32_t, Qp*> qps_;
  std::map<std::uint32_t, Srq*> srqs_;
  std::unique_ptr<platform::Timer> timer_;  // while requests wait
  Instant not_before_{};
};

}  // namespace ib::al
