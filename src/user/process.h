// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Process: this process as a client of a fabric: connections, device memory, object tables,
// the service thread and the event thread.
//
// Three connections to softibd. main: control calls, which may wait (for quiescence). poster: small
// calls made while a work request executes; these must never wait behind a main call, since that
// may be waiting for this very work request. events: WaitEvent, on a thread of its own.
//
// Lock order: control_lock -> QueuePair send_lock -> recv_lock -> waiting_lock; a CQ's lock is
// taken before send_lock is *tried*. Nothing of the application is called under any of them.
#pragma once

#include "hca/layout/op_scope.h"
#include "hca/memory/memory_plane.h"
#include "user/api.h"
#include "user/poster.h"
#include "user/queue_pair.h"
#include "user/regions.h"
#include "user/spin_lock.h"

#include <atomic>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace ib::user {

// Remembers why a call failed on this thread (last_reason()).
Status failed(Status status, std::string reason);

class Process {
 public:
  // Connects to softibd, maps device memory, starts the service and event threads.
  static Result<std::unique_ptr<Process>> attach(platform::ClientHost& host,
                                                 const ProcessOptions& options, EventSink& events,
                                                 std::string& reason);
  ~Process();
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  const control::AttachOut& info() const { return info_; }  // node name, HCAs
  Result<std::unique_ptr<Hca>> open_hca(std::uint64_t node_guid);
  Result<std::unique_ptr<CompletionChannel>> create_channel();
  // The completion queue with this index that is alive in this process and its cookie, or nothing:
  // turns what came out of a channel's pipe back into an object.
  Result<std::uint64_t> cq_cookie(std::uint64_t cq_index);
  // The program is about to unmap [start, start + length), to map something else there or to take
  // rights away: regions there are from now on read and written by system calls, which return an
  // error where loads and stores would be a signal. Any thread; takes no lock, allocates nothing.
  void mappings_change(std::uint64_t start, std::uint64_t length) {
    regions_->mappings_change(start, length);
  }

  platform::ClientHost& host() { return host_; }
  hca::MemoryPlane& plane() { return *plane_; }
  const hca::Arena& arena() const { return plane_->arena(); }
  Poster& poster() { return *poster_; }
  Regions& regions() { return *regions_; }
  std::mutex& control_lock() { return control_lock_; }
  // False in a child that was forked after the attach: nothing of this is the child's.
  bool is_mine() { return host_.process_number() == number_; }
  bool daemon_gone() const { return daemon_gone_.load(std::memory_order_acquire); }
  // softibd is gone and everything that was outstanding has been flushed.
  bool is_over() const {
    return is_over_.load(std::memory_order_acquire) &&
           !has_unflushed_.load(std::memory_order_acquire);
  }

  // A control call; out-parameters are plain structs of verbs/control.h.
  template <class In>
  Result<std::uint64_t> call(control::Code code, std::uint32_t file, const In& in,
                             std::span<std::byte> out = {}, std::span<const int> handles = {}) {
    return call_bytes(code, file, std::as_bytes(std::span(&in, 1)), out, handles);
  }
  template <class In, class Out>
  Result<std::uint64_t> call_for(control::Code code, std::uint32_t file, const In& in, Out& out) {
    return call_bytes(code, file, std::as_bytes(std::span(&in, 1)),
                      std::as_writable_bytes(std::span(&out, 1)), {});
  }
  // A control call that only the end of its object can refuse: nobody waits for its answer. Returns
  // false if that is not possible now: then call(). Under the control lock.
  template <class In>
  bool submit(control::Code code, std::uint32_t file, const In& in) {
    if (!main_->submit(static_cast<std::uint32_t>(code), file, std::as_bytes(std::span(&in, 1))))
      return false;
    submitted_.store(++submissions_, std::memory_order_release);
    return true;
  }
  // Waits until softibd has executed what was submitted before, or is gone. Not in an OpScope, nor
  // on the service thread: calls may wait for these.
  void settle() {
    if (submitted_.load(std::memory_order_relaxed) != 0) [[unlikely]]
      wait_for_submitted();
  }
  Result<std::uint64_t> call_bytes(control::Code code, std::uint32_t file,
                                   std::span<const std::byte> in, std::span<std::byte> out,
                                   std::span<const int> handles);

  // Objects by index, for completions and attention. add/remove under control_lock.
  void add(QueuePair& qp);
  void remove(QueuePair& qp);
  QueuePair* find_qp(std::uint32_t qpn) const {
    QueuePair* qp = qps_[hca::qp_index(qpn)].load(std::memory_order_acquire);
    return qp != nullptr && qp->qpn() == qpn ? qp : nullptr;
  }
  void add(SharedReceiveQueue& srq);
  void remove(SharedReceiveQueue& srq);
  SharedReceiveQueue* find_srq(std::uint32_t index) const {
    return index < hca::kMaxSrqs ? srqs_[index].load(std::memory_order_acquire) : nullptr;
  }
  void add(CompletionQueue& cq);
  void remove(CompletionQueue& cq);

  // Work requests that wait. enroll(): the caller holds the QP's send_lock.
  void enroll(QueuePair& qp);
  void withdraw(QueuePair& qp);
  // The service thread flushes again what is in Error: posters had not left yet.
  void flush_later();
  // Called when a poll finds nothing: lets waiting requests go on. Cheap if there are none.
  void poll_found_nothing() {
    if (has_waiting()) run_waiting();
  }
  bool has_waiting() const { return waiting_count_.load(std::memory_order_relaxed) != 0; }
  // Called by every poll: this process needs attention (service_loop.cpp) and the application's own
  // thread is at hand, while the service thread may have to wait for a core.
  void attend() {
    if (is_wanted()) look_around();
  }
  bool is_wanted() const {
    return slot_->attention.load(std::memory_order_relaxed) !=
           attention_seen_.load(std::memory_order_relaxed);
  }
  void serve_bounces();

 private:
  Process(platform::ClientHost& host, EventSink& events) : host_(host), events_(events) {}
  Status start(const ProcessOptions& options, std::string& reason);
  Status map_arena(platform::NativeHandle file, std::string& reason);
  void wait_for_submitted();
  void run_waiting();
  bool give_turns();
  // service_loop.cpp
  void service_loop();
  bool look_around();
  void event_loop();
  void daemon_died();

  platform::ClientHost& host_;
  EventSink& events_;
  control::AttachOut info_;
  std::uint32_t pid_ = 0;
  std::uint64_t number_ = 0;  // of the process that made it
  std::unique_ptr<platform::ControlChannel> main_;
  std::unique_ptr<platform::ControlChannel> event_channel_;
  std::unique_ptr<platform::MappedFile> mapping_;
  std::unique_ptr<hca::ArenaFile> arena_file_;
  hca::ProcessSlot* slot_ = nullptr;  // this process's
  std::unique_ptr<Poster> poster_;
  std::unique_ptr<hca::MemoryPlane> plane_;
  std::unique_ptr<Regions> regions_;
  std::mutex control_lock_;
  // The number of the last call that was submitted; 0: softibd has executed it.
  std::atomic<std::uint64_t> submitted_{0};
  std::uint64_t submissions_ = 0;

  // Sparse tables by index; entries are published and withdrawn with release/acquire.
  std::atomic<QueuePair*>* qps_ = nullptr;
  std::atomic<SharedReceiveQueue*>* srqs_ = nullptr;
  std::atomic<CompletionQueue*>* cqs_ = nullptr;
  std::vector<QueuePair*> own_qps_;  // under control_lock

  SpinLock waiting_lock_;
  std::deque<QueuePair*> waiting_;
  std::atomic<std::uint32_t> waiting_count_{0};
  std::atomic<std::uint32_t> runs_{0};   // of run_waiting, by any thread
  std::atomic<std::uint32_t> timed_{0};  // 1: the service thread wakes up by itself
  std::atomic<bool> stopping_{false};
  std::atomic<bool> daemon_gone_{false};
  std::atomic<bool> is_over_{false};
  std::atomic<std::uint32_t> attention_seen_{0};
  std::atomic<bool> has_unflushed_{false};
  std::uint32_t runs_seen_ = 0;
  std::unique_ptr<platform::ClientHost::Thread> service_;
  std::unique_ptr<platform::ClientHost::Thread> event_thread_;
};

}  // namespace ib::user
