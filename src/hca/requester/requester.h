// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Requester: executes the work requests of one queue pair against its peer [IBA1 9.7, 10.7].
//
// "Whoever posts, executes": post() finds the peer's queue pair and receive in device memory, moves
// the bytes and writes both completions, before it returns. A request that cannot run now (no
// receive posted, peer not ready, pages moving, byte budget spent) waits at the head of the queue,
// all later ones behind it; progress() runs them on.
//
// Thread rule: the caller holds the queue pair's send lock and an OpScope. Being connected to the
// peer makes this the only writer of the peer's responder line (layout.h). Never blocks, but for
// path 3 and for locks of device memory, both bounded.
#pragma once

#include "base/time.h"
#include "hca/memory/copy.h"
#include "hca/memory/memory_plane.h"
#include "hca/queues/cq_producer.h"
#include "hca/queues/receive_source.h"

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

namespace ib::hca {

// A send-queue request, ready to run.
struct SendWqe {
  std::uint64_t wr_id = 0;
  verbs::WrOpcode opcode = verbs::WrOpcode::Send;
  std::uint32_t flags = 0;  // verbs::send_flag
  const Sge* sge = nullptr;
  std::uint32_t num_sge = 0;
  std::uint32_t imm = 0;
  std::uint32_t rkey = 0;
  std::uint32_t remote_qpn = 0;
  std::uint64_t remote_address = 0;
  std::uint64_t compare_add = 0;
  std::uint64_t swap = 0;
  verbs::AddressVector av;       // datagrams
  std::uint16_t pkey_index = 0;  // Gsi: with which P_Key of its port [IBA1 11.4.1.1]
  std::uint32_t remote_qkey = 0;
  std::uint32_t remote_srqn = 0;
  std::uint32_t window = kNone;  // BindMw: key indexes
  std::uint32_t bind_region = kNone;
  std::uint64_t bind_address = 0;
  std::uint64_t bind_length = 0;
  std::uint32_t bind_access = 0;
  std::uint32_t bind_rkey = 0;
  bool inline_data = false;  // SGEs are plain pointers, valid during the post
  // Of a request that had to wait (Requester::store): its inline data was copied.
  bool stored = false;
  std::uint32_t inline_bytes = 0;
  const std::byte* kept_inline = nullptr;
};

struct RequesterConfig {
  std::uint32_t qp = 0;
  verbs::QpType type = verbs::QpType::Rc;
  std::uint32_t pd = 0;
  std::uint32_t send_cq = kNone;
  std::uint32_t max_wr = 0;
  std::uint32_t max_sge = 0;
  std::uint32_t max_inline = 0;
  bool signal_all = false;
  bool block_loopback = false;  // UD multicast: not to itself
};

// What modify-QP says about patience.
struct RetryLimits {
  std::uint8_t timeout = 0;  // 4.096 us << timeout; 0: for ever
  std::uint8_t retry_count = 7;
  std::uint8_t rnr_retry = 7;  // 7: for ever
  std::uint8_t max_rd_atomic = 1;

  // Those of a successful modify-QP; `mask`: verbs::qp_attr.
  void change(std::uint32_t mask, const verbs::control::QpAttr& attr) {
    if ((mask & verbs::qp_attr::kTimeout) != 0) timeout = attr.timeout;
    if ((mask & verbs::qp_attr::kRetryCnt) != 0) retry_count = attr.retry_cnt;
    if ((mask & verbs::qp_attr::kRnrRetry) != 0) rnr_retry = attr.rnr_retry;
    if ((mask & verbs::qp_attr::kMaxQpRdAtomic) != 0) max_rd_atomic = attr.max_rd_atomic;
  }
};

struct Grh;

enum class Way : std::uint32_t { Shortest, Long };

class Requester {
 public:
  Requester(MemoryPlane& plane, const RequesterConfig& config);

  // Accepts one request and executes it if nothing waits before it. Errors as in
  // user::QueuePair::post_send; a request that fails *in execution* is Ok here and completes in
  // error. Way::Long: it is none for the short way, as the caller has found out.
  Status post(const SendWqe& wqe, Way way = Way::Shortest);
  // Begins to fetch the line that the next request probably writes first: another core polls it.
  // What post() does meanwhile is then for nothing. To be called about as long before as that
  // takes, 100 cycles: a line that comes earlier is polled away again. Any thread.
  void announce() const { prefetch_for_write(next_line_.load(std::memory_order_relaxed)); }
  // The short way, which post() tries first (inline, in requester_short.h). No: it is no request
  // for it, or nothing is known of where it goes, and nothing has changed; learn_and_post() or
  // post(). Rest: finish_short().
  enum class Posted : std::uint32_t { No, Done, Rest };
  static bool has_short_way(verbs::WrOpcode opcode) {
    return is_plain_send(opcode) || opcode == verbs::WrOpcode::RdmaWrite ||
           opcode == verbs::WrOpcode::RdmaRead;
  }
  template <class Send>
  Posted post_short(Send send);
  template <class Send>
  bool learn_and_post(Send send);
  void finish_short(verbs::WrOpcode opcode, std::uint32_t flags, std::uint32_t bytes) noexcept;
  bool try_short(const SendWqe& wqe);  // all of that, if it is one piece
  // Runs what waits, at most `most` requests, so that queue pairs can take turns. Waits: see
  // wake_at; More: only because of `most`.
  enum class Progress : std::uint32_t { Idle, Waits, More };
  Progress progress(std::uint32_t most = ~0u);
  bool waiting() const { return waiting_.load(std::memory_order_relaxed) > 0; }
  // When progress() is due even if nothing happens; meaningful if waiting().
  Instant wake_at() const { return wake_at_; }

  // Whether a request failed since the last reset().
  bool took_error() const { return took_error_; }
  // The queue pair went to Error by other hands: completes what waits with a flush error.
  void flush();
  // Back to Reset: forgets everything.
  void reset();
  void set_limits(const RetryLimits& limits) { limits_ = limits; }

  // A completion for the request at `position` was polled: its slot and all before it are free.
  // Gives the request's wr_id; false if no such request is outstanding.
  bool polled(std::uint32_t position, std::uint64_t& wr_id) {
    const std::uint64_t freed = freed_.load(std::memory_order_relaxed);
    const std::uint64_t full = freed + (position - static_cast<std::uint32_t>(freed));
    if (full >= posted_.load(std::memory_order_acquire)) return false;
    wr_id = records_[full & mask_].wr_id;
    freed_.store(full + 1, std::memory_order_release);
    return true;
  }
  std::uint32_t queued() const {
    return static_cast<std::uint32_t>(posted_.load(std::memory_order_relaxed) -
                                      freed_.load(std::memory_order_acquire));
  }

 private:
  static constexpr std::uint32_t kMaxMessage = 1u << 31;  // [IBA1 9.7.2]
  // How one attempt to execute a request ended.
  struct Outcome {
    // Dropped: over for the requester, but the message went nowhere (UC, UD).
    enum class Kind : std::uint32_t { Done, Dropped, Wait, Fail } kind = Kind::Done;
    verbs::WcStatus status = verbs::WcStatus::Success;
    Cause cause = Cause::None;
    std::uint64_t detail = 0;
    verbs::WcStatus peer_status = verbs::WcStatus::Success;
    std::uint32_t byte_len = 0;
  };
  static Outcome done(std::uint32_t bytes) {
    return {Outcome::Kind::Done,
            verbs::WcStatus::Success,
            Cause::None,
            0,
            verbs::WcStatus::Success,
            bytes};
  }
  // For no cause the trace is not told.
  static Outcome dropped(Cause cause = Cause::None, std::uint64_t detail = 0) {
    return {Outcome::Kind::Dropped,
            verbs::WcStatus::Success,
            cause,
            detail,
            verbs::WcStatus::Success,
            0};
  }
  static Outcome wait(Cause cause, std::uint64_t detail = 0) {
    return {
        Outcome::Kind::Wait, verbs::WcStatus::Success, cause, detail, verbs::WcStatus::Success, 0};
  }
  static Outcome fail(verbs::WcStatus status, Cause cause, std::uint64_t detail = 0) {
    return {Outcome::Kind::Fail, status, cause, detail, verbs::WcStatus::Success, 0};
  }
  struct Record {  // per send-queue slot
    std::uint64_t wr_id;
  };
  static inline const Shared32 kNoPort{0};  // in no state
  struct Peer {
    QpEntry* entry = nullptr;
    std::uint32_t qpn = 0;
    std::uint32_t generation = 0;
    ReceiveSource receives;  // its own queue, or the SRQ below
    std::uint32_t srq = kNone;
    std::uint32_t srq_generation = 0;
    CqProducer cq;
    // What the short way has found to be so, and need not find out again while
    // ArenaHeader::changes is `as_of`.
    std::uint64_t as_of = 0;
    const Shared32* own_port = &kNoPort;  // states
    const Shared32* port = &kNoPort;      // this: it has found out nothing
    bool takes_sends = false;             // by the short way
    CompletionHead receive;               // what completions of receives have in common
    KnownRemote key;
    bool knows_once = false;  // `key` is known for one request only
    KnownFar far;
    // Whether the two ends agree, as both have set it; see agree().
    bool compared = false;
    std::uint64_t compared_as_of = 0;     // ArenaHeader::changes
    bool in_step = true;                  // the PSN that one sends first, the other expects
    std::uint32_t longest = kMaxMessage;  // more would not pass: the path MTUs differ
  };

  // requester.cpp
  Status check(const SendWqe& wqe) const;
  void store(const SendWqe& wqe, std::uint64_t position);
  std::uint32_t peer_number(const SendWqe& wqe) const {
    return verbs::is_datagram(config_.type) ? wqe.remote_qpn : own_->id.dest_qpn;
  }
  void report(const SendWqe& wqe, const Outcome& outcome, std::uint32_t peer,
              std::uint32_t times = 1);
  void report_drop(const SendWqe& wqe, const Outcome& lost, std::uint32_t peer);
  SendWqe load(std::uint64_t position) const;
  std::byte* slot_bytes(std::uint64_t position) const;
  bool settle(const SendWqe& wqe, std::uint64_t position, const Outcome& outcome);
  void finish(const SendWqe& wqe, std::uint64_t position, const Outcome& result);
  void complete(const SendWqe& wqe, std::uint64_t position, verbs::WcStatus status, Cause cause,
                std::uint32_t bytes);
  void send_cq_refused();
  void complete_before_delivery(const SendWqe& wqe, std::uint32_t bytes);
  bool patience_left(const Outcome& outcome);
  bool is_unreliable() const {
    return config_.type == verbs::QpType::Uc || verbs::is_datagram(config_.type);
  }
  void enter_error(Cause cause, std::uint64_t detail);
  void fail_head_of_a_lost_peer();
  Outcome execute(const SendWqe& wqe);
  // Done: data may pass this port (an index of the port table).
  Outcome check_port(std::uint32_t port) const;
  // Its number as the peer sees it.
  std::uint32_t number_on_wire() const {
    return verbs::is_special(config_.type) ? static_cast<std::uint32_t>(config_.type)
                                           : own_->id.qpn.load(std::memory_order_relaxed);
  }
  // requester_short.h
  // More is spent on moving the bytes than on anything in the short way.
  static constexpr std::uint32_t kShortMessage = 64 * 1024;
  template <class State>
  static bool has(const Shared32& word, State state) {
    return word.load(std::memory_order_acquire) == static_cast<std::uint32_t>(state);
  }
  template <class Send>
  static bool is_inline(Send send) {
    return (send.flags() & verbs::send_flag::kInline) != 0;
  }
  static bool is_plain_send(verbs::WrOpcode opcode) {
    return opcode == verbs::WrOpcode::Send || opcode == verbs::WrOpcode::SendWithImm;
  }
  bool peer_stands() const;
  struct Target {  // a request's, as far as the short way has to know of it beforehand
    verbs::WrOpcode opcode;
    std::uint32_t rkey;
    std::uint64_t address;
    std::uint32_t length;
  };
  std::byte* look_at_own(const Sge& sge, std::uint32_t access);
  bool learn(Target target);
  bool learn_key(const Target& target, std::uint32_t access);
  bool copy_far(std::uint32_t access, std::uint32_t key, std::uint64_t address, std::byte* local,
                std::uint32_t bytes);
  void forget_once();
  bool sends_alike() const;
  bool look_at_peer(std::uint64_t changes);
  template <class Send>
  std::byte* own_bytes(Send send, std::uint32_t access);
  template <class Send>
  bool write_short(Send send);
  template <class Send>
  bool read_short(Send send);
  template <class Send>
  bool send_short(Send send);
  template <class Send>
  bool run_short(Send send, verbs::WcOpcode& opcode);
  template <class Send>
  bool complete_short(Send send, std::uint64_t position, verbs::WcOpcode opcode);
  // The successful completion of the request at `position`.
  [[gnu::always_inline]] void write_sent(Cqe& slot, std::uint64_t position, std::uint32_t bytes,
                                         verbs::WcOpcode opcode) const {
    sent_.write(slot);
    slot.wqe = static_cast<std::uint32_t>(position);
    slot.byte_len = bytes;
    slot.opcode = static_cast<std::uint32_t>(opcode);
  }
  // requester_connected.cpp: RC, UC, XRC
  Outcome bind_peer(Peer*& peer);
  void agree(const QpEntry& peer);
  std::uint64_t path_mtus(const Peer& peer) const;
  Outcome too_long_for_path(Peer& peer);
  Outcome execute_connected(const SendWqe& wqe);
  static std::uint64_t asked_for(const SendWqe& wqe);
  Outcome gather(const SendWqe& wqe, std::uint32_t access, LocalPieces& pieces) const;
  Outcome rdma_write(Peer& peer, const SendWqe& wqe);
  Outcome rdma_read(Peer& peer, const SendWqe& wqe);
  Outcome atomic(Peer& peer, const SendWqe& wqe);
  Outcome atomic_write(Peer& peer, const SendWqe& wqe);
  Outcome send(Peer& peer, const SendWqe& wqe);
  Outcome remote_stretch(Peer& peer, const SendWqe& wqe, std::uint64_t length, std::uint32_t access,
                         Stretch& out);
  // Not returned by value: that goes through the stack in a way that stalls for ten nanoseconds.
  void find_responder(const Peer& peer, std::uint32_t srq, std::uint32_t srqn,
                      Responder& responder) const;
  bool has_left(const Peer& peer) const;
  Outcome refused(Peer& peer, verbs::WcStatus status, const Access& why);
  verbs::WcStatus fail_receive_of_write(Peer& peer, const SendWqe& wqe, Cause cause);
  Outcome transfer_failed(Peer& peer, const Access& access);
  bool spend(std::uint64_t left, std::uint64_t& step);
  // requester_receive.cpp: the peer's receive queue and completion
  Outcome take_receive(Peer& peer, std::uint32_t srqn);
  Outcome take_shared(Peer& peer, SrqEntry& srq, std::uint32_t index);
  Outcome no_receive(Peer& peer, Shared32& waiter, const Shared64& tail);
  Outcome scatter(Peer& peer, const SendWqe& wqe, const LocalPieces& pieces);
  Outcome deliver(Peer& peer, const SendWqe& wqe, verbs::WcOpcode opcode, std::uint32_t bytes,
                  const std::byte* payload = nullptr);
  // The completion of a receive of the peer's, but for which receive it was.
  void describe_receive(const SendWqe& wqe, verbs::WcOpcode opcode, std::uint32_t bytes,
                        Cqe& cqe) const {
    cqe.qpn = peer_.qpn;
    cqe.byte_len = bytes;
    cqe.src_qp = own_->id.qpn.load(std::memory_order_relaxed);
    cqe.slid = own_->id.lid;
    cqe.opcode = static_cast<std::uint32_t>(opcode);
    cqe.bits = cqe_bit::kReceive;
    if (wqe.opcode == verbs::WrOpcode::SendWithImm ||
        wqe.opcode == verbs::WrOpcode::RdmaWriteWithImm) {
      cqe.flags = verbs::wc_flag::kWithImm;
      cqe.imm = wqe.imm;
    } else if (wqe.opcode == verbs::WrOpcode::SendWithInv) {
      cqe.flags = verbs::wc_flag::kWithInv;
      cqe.imm = wqe.imm;
    }
  }
  template <class Counters>
  static void count(Counters& line, std::uint64_t bytes) {
    line.messages.store(line.messages.load(std::memory_order_relaxed) + 1,
                        std::memory_order_relaxed);
    line.bytes.store(line.bytes.load(std::memory_order_relaxed) + bytes, std::memory_order_relaxed);
  }
  Outcome invalidate_remote(Peer& peer, std::uint32_t rkey);
  void complete_receive_in_error(Peer& peer, verbs::WcStatus status, Cause cause);
  Outcome receive_failed(Peer& peer, verbs::WcStatus peer_status, verbs::WcStatus status,
                         Cause cause, std::uint64_t detail);
  bool push_receive(Peer& peer, Cqe& cqe, bool solicited, const std::byte* payload = nullptr);
  void break_peer(QpEntry& peer, Cause cause, std::optional<verbs::EventType> event);
  // memory_window_bind.cpp: work that needs no peer
  Outcome bind_window(const SendWqe& wqe);
  std::optional<std::uint64_t> why_not_bound(const SendWqe& wqe, const KeyEntry* region) const;
  Outcome invalidate_local(std::uint32_t rkey);
  void unbind_window(KeyEntry& window);
  // requester_datagram.cpp: UD, SMI, GSI
  Outcome execute_datagram(const SendWqe& wqe);
  static void describe_route(const SendWqe& wqe, std::uint32_t bytes, const verbs::Gid& source,
                             Grh& grh);
  QpEntry* datagram_target(const SendWqe& wqe) const;
  std::uint16_t own_pkey(const SendWqe& wqe) const;
  Outcome datagram_accepted(const SendWqe& wqe, std::uint64_t bytes, const QpEntry& target,
                            bool multicast);
  Outcome keys_accepted(const SendWqe& wqe, const QpEntry& target, const PortEntry& port);
  bool partition_accepted(std::uint16_t pkey, const QpEntry& target, const PortEntry& port);
  Outcome datagram_to(const SendWqe& wqe, QpEntry& target, const LocalPieces& pieces);
  void datagram_multicast(const SendWqe& wqe, const LocalPieces& pieces);
  Outcome datagram_deliver(const SendWqe& wqe, const LocalPieces& pieces);
  bool put_back_receive(QpEntry& target);
  Access datagram_store(const LocalPieces& pieces, bool global);

  MemoryPlane& plane_;
  const Arena& arena_;
  RequesterConfig config_;
  QpEntry* own_;
  RetryLimits limits_;
  CqProducer send_cq_;
  CompletionHead sent_;  // what successful completions of this queue have in common
  Peer peer_;            // the connected one; UD: the last one sent to

  // The queue: positions posted_ - waiting_ .. posted_ - 1 wait. Slots of waiting requests hold a
  // copy of the request with its SGEs or inline data.
  std::atomic<std::uint64_t> posted_{0};
  std::atomic<std::uint32_t> waiting_{0};  // others may ask waiting() without the lock
  std::atomic<std::uint64_t> freed_{0};
  std::uint32_t mask_;
  std::vector<Record> records_;
  std::size_t slot_size_;
  std::unique_ptr<std::byte[]> slots_;  // allocated when something has to wait for the first time

  // The request at the head, if it has begun.
  std::uint64_t moved_ = 0;  // bytes already at the other side
  HeldReceive receive_;      // held for it
  Instant waiting_since_{};
  Cause waiting_for_ = Cause::None;
  Instant wake_at_{};
  std::uint64_t budget_ = 0;  // bytes this call may still move
  bool took_error_ = false;
  bool sends_plain_ = false;        // completions are sent_ and no more; by look_at_peer()
  bool completed_ = false;          // the head, ahead of its delivery
  bool lost_one_ = false;           // the message before was dropped for want of a receive
  std::uint16_t matched_pkey_ = 0;  // index in the table of the port that gets the datagram
  // Messages that were dropped, by cause, of which the trace is told.
  static constexpr std::size_t kCauses = 64;
  std::array<std::uint32_t, kCauses> drops_{};
  KnownLocal own_key_;                        // of the last short request
  std::atomic<const void*> next_line_{this};  // see announce(); nobody follows it
};

}  // namespace ib::hca
