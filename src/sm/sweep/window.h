// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Window: the SMPs that wait for an answer, a limited number of them, which are sent again until
// one comes or their retries are over.
#pragma once

#include "base/time.h"
#include "mad/smp.h"
#include "sm/sweep/request.h"

#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <vector>

namespace ib::sm {

class Window {
 public:
  struct Limits {
    std::uint32_t size = 128;
    Duration timeout = std::chrono::milliseconds(200);
    std::uint32_t retries = 3;
  };
  // `random`: makes transaction ids that no other manager has.
  Window(const Limits& limits, std::uint32_t random);

  bool is_full() const { return free_.empty(); }
  bool is_empty() const { return free_.size() == slots_.size(); }
  // Not full. The SMP is sent now, with the transaction id that it gets.
  const mad::Smp& open(const Request& request, const mad::Smp& smp, Instant now);
  // Returns the request that this response answers.
  std::optional<Request> close(const mad::Smp& response);
  struct Due {
    const mad::Smp* again = nullptr;  // to be sent
    std::optional<Request> lost{};    // or its retries are over
  };
  // The next that is due. To be called until there is none.
  std::optional<Due> poll(Instant now);
  std::optional<Instant> deadline();
  // Those that `anew` gives an SMP with another route for are sent again by poll(), as if for the
  // first time.
  using Anew = std::function<std::optional<mad::Smp>(const Request&)>;
  void redirect(const Anew& anew, Instant now);
  // Nobody waits for any of them any longer.
  void clear();

 private:
  struct Slot {
    Request request;
    mad::Smp smp;
    std::uint32_t generation = 0;
    std::uint32_t retries_left = 0;
    bool is_open = false;
  };
  struct Deadline {
    Instant at;
    std::uint32_t slot = 0;
    std::uint32_t generation = 0;
  };
  void drop_stale();
  void release(std::uint32_t slot);

  Limits limits_;
  std::uint32_t random_;
  std::uint32_t last_generation_ = 0;
  std::vector<Slot> slots_;
  std::vector<std::uint32_t> free_;
  std::deque<Deadline> deadlines_;  // all wait the same time, so the oldest is due first
};

}  // namespace ib::sm
