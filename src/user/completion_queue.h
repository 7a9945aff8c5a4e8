// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// CompletionQueue: the consumer's side of a completion queue [IBA1 11.4.2].
#pragma once

#include "hca/queues/cq_consumer.h"
#include "hca/queues/receive_ring.h"
#include "user/api.h"
#include "user/biased_lock.h"

#include <atomic>
#include <cstdint>

namespace ib::hca {
class Requester;
}

namespace ib::user {

class Process;

// A completion that was taken: its fields come from private memory or were read once.
struct TakenCompletion {
  std::uint64_t wr_id = 0;
  std::uint32_t qpn = 0;
  verbs::WcStatus status = verbs::WcStatus::Success;
  bool received = false;
};

class CompletionQueue {
 public:
  static Result<std::unique_ptr<CompletionQueue>> create(Hca& hca, Process& process,
                                                         std::uint32_t handle,
                                                         const control::CqOut& out,
                                                         std::uint64_t cookie);

  std::uint32_t index() const { return index_; }
  std::uint32_t handle() const { return handle_; }
  std::uint32_t cqe() const { return cqe_; }
  std::uint64_t cookie() const { return cookie_; }

  // Nothing will complete any more but what is posted from now on.
  bool is_over() const;
  // Polling: lock(), take() as often as wanted, unlock(). take() returns false if there is none;
  // when it is empty it also lets this process's waiting work requests make progress.
  void lock() { lock_.lock(); }
  void unlock() {
    if (consumer_.is_armed()) [[unlikely]]
      fire_for_the_rest();
    lock_.unlock();
  }
  // The same for a thread that may call arm() in between.
  void begin_batch();
  void end_batch();
  bool take(Completion& out);
  // The same, inline (user/take.h): fill(const hca::Cqe&, TakenCompletion).
  template <class Fill>
  bool take_into(Fill&& fill);
  // Whether take_into() would neither find one nor have anything else to do.
  bool is_idle() const;

  // For what nearly every poll is: enter(), take_plain(), leave(). If enter() or leave() fail, or
  // take_plain() returns Other, nothing has happened; then lock(), take(), unlock().
  bool enter() { return lock_.enter(); }
  bool leave() {
    if (consumer_.is_armed()) [[unlikely]]
      return false;
    lock_.leave();
    return true;
  }
  enum class Take : std::uint32_t { Nothing, Taken, Other };
  template <class Fill>
  Take take_plain(Fill&& fill);

  // Requests an event on the channel; hca::CqConsumer.
  void arm(bool solicited_only);
  Status resize(std::uint32_t cqe);
  Status destroy();

 private:
  friend class WorkQueues;
  CompletionQueue(Hca& hca, Process& process, std::uint32_t handle, std::uint64_t cookie);
  void fire_for_the_rest();
  static constexpr std::uint32_t kPollsPerYield = 1u << 12;
  // The ends of a queue pair that complete here; nullptr for one that does not, or does not exist.
  struct Ends {
    std::uint32_t qpn = hca::kNone;
    hca::Requester* sends = nullptr;
    hca::OwnReceives* receives = nullptr;
    std::uint32_t pd = 0;
  };
  static TakenCompletion head_of(const hca::Cqe& slot);
  // Finds the wr_id of a completion. Returns false if the completion is of a queue pair that was
  // reset or destroyed meanwhile, or garbage.
  bool identify(const hca::Cqe& cqe, TakenCompletion& taken, std::uint64_t& wr_id);
  bool identify_shared(const hca::Cqe& cqe, std::uint32_t index, verbs::WcStatus& status,
                       std::uint64_t& wr_id);
  void found_nothing();
  Ends look_up(std::uint32_t qpn) const;
  void forget_last();
  // Voids the completions of a queue pair that is reset or destroyed.
  void discard(std::uint32_t qpn);

  Hca& hca_;
  Process& process_;
  std::uint32_t handle_;
  std::uint32_t index_;
  std::uint32_t cqe_ = 0;
  std::uint64_t cookie_;
  BiasedLock lock_;
  hca::CqConsumer consumer_;
  std::uint32_t empty_polls_ = 0;
  // Of the last completion, so that what follows from it need not wait for a look into a table.
  // A queue pair that goes has it forgotten.
  Ends last_;
  std::atomic<const char*> batch_of_{nullptr};  // names the thread
};

}  // namespace ib::user
