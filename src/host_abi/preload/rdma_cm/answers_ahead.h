// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Answers that came with the last event, to the commands that librdmacm sends next. These need not
// go to softibd then, for a moment and until any other command of this process is sent. Likewise
// the next event, if it came with the answer to a command, or with the notice of it.
#pragma once

#include "base/time.h"
#include "verbs/control_rdma_cm.h"

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

namespace ib::host_abi::preload {

// Any thread, also in signal handlers: nobody waits. All zeros: there is none.
class AnswersAhead {
 public:
  static constexpr Duration kGoodFor = std::chrono::milliseconds(1);
  static constexpr std::size_t kQuestionBytes = 24;  // of the commands that may be answered so

  // Before a command is sent. Returns its number, for keep().
  std::uint32_t command_follows();
  struct Turn {
    std::uint32_t number;
    Instant since;
  };
  // The last command, and when it was sent.
  Turn last_turn() const;
  // The bytes that followed the answer to a command on this file (RdmaCmAhead), or came with a
  // notice; softibd has made them since then.
  void keep(Turn turn, std::uint32_t file, std::span<const std::byte> answers);
  // Copies the answer to this command into `to`. Returns its size, or 0 if it is not known, or does
  // not fit.
  std::size_t find(std::uint32_t file, std::span<const std::uint8_t> command,
                   std::span<std::uint8_t> to);
  // The event that came with the last answer.
  struct Event {
    std::uint32_t offer = 0;  // in the mailbox: it is the caller's once it has taken that
    std::uint32_t flags = 0;  // rdma_cm_flag
    std::uint32_t size = 0;
    std::array<std::uint8_t, sizeof(verbs::control::RdmaCmOut::bytes)> bytes;
  };
  // Copies it into `to`. Returns false if there is none, or it is longer than `room`.
  bool find_event(std::uint32_t file, std::size_t room, Event& to);
  // The same for the event that is the first of such bytes.
  static bool read_event(std::span<const std::byte> answers, std::size_t room, Event& to);

 private:
  bool try_lock() { return lock_.exchange(1, std::memory_order_acquire) == 0; }
  void unlock() { lock_.store(0, std::memory_order_release); }
  bool is_good_for(std::uint32_t file) const;
  std::size_t find_kept(const verbs::control::RdmaCmAhead& wanted, std::size_t room,
                        std::span<std::uint8_t> to) const;

  std::atomic<std::uint32_t> turn_ = 0;
  std::atomic<Duration::rep> since_ = 0;  // of the clock's start: when the last command was sent
  std::atomic<std::uint32_t> lock_ = 0;
  // Under the lock:
  std::uint32_t kept_turn_ = 0;
  std::uint32_t file_ = 0;
  std::size_t size_ = 0;
  Instant until_{};
  std::array<std::byte, verbs::control::kMostRdmaCmAhead> bytes_{};
};

}  // namespace ib::host_abi::preload
