// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "traffic.h"

#include "base/address.h"
#include "peer/peer_protocol.h"
#include "peer/peer_socket.h"
#include "user/completion_queue.h"
#include "user/hca.h"
#include "user/queue_pair.h"

#include <poll.h>
#include <sys/mman.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>
#include <random>
#include <set>

namespace ib::conformance {

namespace {

namespace access = verbs::access;
namespace qp_attr = verbs::qp_attr;
using verbs::QpState;
using verbs::QpType;
using verbs::WcStatus;
using verbs::WrOpcode;

constexpr std::uint32_t kMemory = 1u << 20;
constexpr std::uint32_t kDepth = 16;
constexpr std::size_t kShared = 2;                   // the pair with the SRQ
constexpr std::size_t kUnreliable = 3;               // the UC pair
constexpr auto kLongest = std::chrono::seconds(20);  // to notice the death; longer is a hang

class IgnoreEvents final : public user::EventSink {
  void on_event(const control::EventOut&) override {}
};

class Traffic {
 public:
  Traffic(user::Hca& hca, std::uint64_t seed) : hca_(hca), random_(seed) {}

  bool create();
  bool connect(const TrafficPlace& peer);
  TrafficPlace place() const { return place_; }
  // Runs until `control` is readable and every outstanding request has ended.
  TrafficReport run(int control);
  bool destroy();

 private:
  struct Pair {
    std::unique_ptr<user::QueuePair> qp;
    QpType type = QpType::Rc;
    bool broken = false;
    std::set<std::uint64_t> sends;
    std::set<std::uint64_t> receives;
  };
  void post_receives(Pair& pair);
  void post_send(Pair& pair);
  bool poll();
  void account(const user::Completion& completion);
  bool is_quiet() const;
  user::Sge piece(std::uint32_t bytes) {
    return {memory_ + random_() % (kMemory - bytes), bytes, region_->lkey()};
  }

  user::Hca& hca_;
  std::mt19937_64 random_;
  std::uint64_t memory_ = 0;
  std::uint64_t next_id_ = 0;
  std::unique_ptr<user::ProtectionDomain> pd_;
  std::unique_ptr<user::MemoryRegion> region_;
  std::array<std::unique_ptr<user::CompletionQueue>, 2> cqs_;
  std::unique_ptr<user::SharedReceiveQueue> srq_;
  std::set<std::uint64_t> srq_receives_;
  std::array<Pair, kTrafficPairs> pairs_;
  TrafficPlace place_;
  TrafficPlace peer_;
  TrafficReport report_;
};

template <class T>
bool keep(std::unique_ptr<T>& out, Result<std::unique_ptr<T>> made) {
  if (!made) return false;
  out = *std::move(made);
  return true;
}

bool Traffic::create() {
  void* memory =
      ::mmap(nullptr, kMemory, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return false;
  memory_ = address_of(memory);
  if (!keep(pd_, hca_.alloc_pd())) return false;
  control::RegMrIn in;
  in.pd = pd_->handle();
  in.access = access::kLocalWrite | access::kRemoteAny;
  in.address = memory_;
  in.iova = memory_;
  in.length = kMemory;
  if (!keep(region_, hca_.register_memory(in))) return false;
  for (auto& cq : cqs_) {
    control::CreateCqIn cq_in;
    cq_in.cqe = 1000;
    if (!keep(cq, hca_.create_cq(cq_in))) return false;
  }
  user::SrqOptions srq;
  srq.pd = pd_.get();
  srq.max_wr = 2 * kDepth;
  srq.max_sge = 2;
  if (!keep(srq_, hca_.create_srq(srq))) return false;
  for (std::size_t i = 0; i < kTrafficPairs; ++i) {
    Pair& pair = pairs_[i];
    pair.type = i == kUnreliable ? QpType::Uc : QpType::Rc;
    user::QpOptions options;
    options.type = pair.type;
    options.pd = pd_.get();
    options.send_cq = cqs_[i % 2].get();
    options.recv_cq = cqs_[random_() % 2].get();
    if (i == kShared) options.srq = srq_.get();
    options.caps = {kDepth, kDepth, 2, 2, 64, 0};
    options.signal_all = true;
    if (!keep(pair.qp, hca_.create_qp(options))) return false;
    place_.qpn[i] = pair.qp->qpn();
  }
  const auto port = hca_.query_port(1);
  if (!port) return false;
  place_.address = memory_;
  place_.rkey = region_->rkey();
  place_.way.port = 1;
  place_.way.dlid = port->lid;
  if (port->link_layer == verbs::LinkLayer::Ethernet) {
    const auto gid = hca_.query_gid(1, kIpGid);
    if (!gid) return false;
    place_.way.is_global = 1;
    place_.way.dgid = gid->gid;
    place_.way.sgid_index = kIpGid;
  }
  place_.ok = 1;
  return true;
}

bool Traffic::connect(const TrafficPlace& peer) {
  peer_ = peer;
  for (std::size_t i = 0; i < kTrafficPairs; ++i) {
    control::QpAttr attr;
    attr.state = QpState::Init;
    attr.port = 1;
    attr.access = access::kRemoteAny | access::kLocalWrite;
    std::uint32_t mask =
        qp_attr::kState | qp_attr::kPort | qp_attr::kPkeyIndex | qp_attr::kAccessFlags;
    user::QueuePair& qp = *pairs_[i].qp;
    if (!qp.modify(mask, attr)) return false;
    post_receives(pairs_[i]);
    attr.state = QpState::Rtr;
    attr.path_mtu = verbs::Mtu::B4096;
    attr.dest_qpn = peer.qpn[i];
    attr.av = peer.way;
    attr.max_dest_rd_atomic = 16;
    attr.min_rnr_timer = 1;
    mask = qp_attr::kState | qp_attr::kAv | qp_attr::kPathMtu | qp_attr::kDestQpn | qp_attr::kRqPsn;
    if (pairs_[i].type == QpType::Rc) mask |= qp_attr::kMaxDestRdAtomic | qp_attr::kMinRnrTimer;
    if (!qp.modify(mask, attr)) return false;
    attr.state = QpState::Rts;
    attr.timeout = 8;
    attr.retry_cnt = 1;
    attr.rnr_retry = 7;
    attr.max_rd_atomic = 16;
    mask = qp_attr::kState | qp_attr::kSqPsn;
    if (pairs_[i].type == QpType::Rc) {
      mask |= qp_attr::kTimeout | qp_attr::kRetryCnt | qp_attr::kRnrRetry | qp_attr::kMaxQpRdAtomic;
    }
    if (!qp.modify(mask, attr)) return false;
  }
  return true;
}

void Traffic::post_receives(Pair& pair) {
  const bool shared = &pair == &pairs_[kShared];
  std::set<std::uint64_t>& posted = shared ? srq_receives_ : pair.receives;
  while (posted.size() < kDepth) {
    const std::uint64_t id = ++next_id_;
    const user::Sge sge = piece(4096);
    const Status status =
        shared ? srq_->post_recv(id, {&sge, 1}) : pair.qp->queues().post_recv(id, {&sge, 1});
    if (status != Status::Ok) return;
    posted.insert(id);
  }
}

void Traffic::post_send(Pair& pair) {
  static constexpr std::array kOpcodes{WrOpcode::Send,           WrOpcode::SendWithImm,
                                       WrOpcode::RdmaWrite,      WrOpcode::RdmaWriteWithImm,
                                       WrOpcode::RdmaRead,       WrOpcode::AtomicCmpSwap,
                                       WrOpcode::AtomicFetchAdd, WrOpcode::AtomicWrite};
  user::SendWqe request;
  request.wr_id = ++next_id_;
  request.opcode = kOpcodes[random_() % (pair.type == QpType::Uc ? 4 : 8)];
  const bool eight =
      request.opcode == WrOpcode::AtomicCmpSwap || request.opcode == WrOpcode::AtomicFetchAdd;
  const std::uint32_t bytes = eight ? 8 : static_cast<std::uint32_t>(random_() % 4097);
  const user::Sge sge = piece(bytes);
  if (request.opcode != WrOpcode::AtomicWrite) user::set_sges(request, {&sge, 1});
  request.rkey = peer_.rkey;
  request.remote_address = peer_.address + random_() % (kMemory - 8192) / 8 * 8;
  request.compare_add = random_();
  if (!eight && bytes <= 64 && request.opcode != WrOpcode::RdmaRead) {
    user::set_flags(request, verbs::send_flag::kInline);
  }
  pair.qp->queues().send_lock().lock();
  const Status status = pair.qp->queues().post_send(request);
  pair.qp->queues().send_lock().unlock();
  if (status == Status::Ok) pair.sends.insert(request.wr_id);
}

void Traffic::account(const user::Completion& completion) {
  const auto found = std::find_if(pairs_.begin(), pairs_.end(), [&](const Pair& pair) {
    return pair.qp->qpn() == completion.qpn;
  });
  if (found == pairs_.end()) {
    ++report_.surprises;
    return;
  }
  const bool known = found->sends.erase(completion.wr_id) +
                         found->receives.erase(completion.wr_id) +
                         srq_receives_.erase(completion.wr_id) ==
                     1;
  if (!known) ++report_.surprises;
  if (completion.status == WcStatus::Success) {
    ++report_.completed;
    return;
  }
  found->broken = true;
  if (report_.first_error == 0) report_.first_error = static_cast<std::uint32_t>(completion.status);
  if (completion.status != WcStatus::WrFlushErr && completion.status != WcStatus::RetryExcErr) {
    ++report_.odd_errors;
  }
}

bool Traffic::poll() {
  bool any = false;
  for (const auto& cq : cqs_) {
    user::Completion completion;
    cq->lock();
    while (cq->take(completion)) {
      account(completion);
      any = true;
    }
    cq->unlock();
  }
  return any;
}

// A UC queue pair does not notice the death; receives of the SRQ belong to no queue pair.
bool Traffic::is_quiet() const {
  for (std::size_t i = 0; i < kTrafficPairs; ++i) {
    if (i == kUnreliable) continue;
    const Pair& pair = pairs_[i];
    if (!pair.sends.empty() || !pair.receives.empty() || pair.qp->state() != QpState::Error)
      return false;
  }
  return true;
}

TrafficReport Traffic::run(int control) {
  using Clock = std::chrono::steady_clock;
  bool notified = false;
  Clock::time_point notice;
  for (std::uint32_t round = 0;; ++round) {
    for (Pair& pair : pairs_) {
      // A queue pair with an SRQ may have been broken without a completion.
      if (pair.broken || pair.qp->state() == QpState::Error) continue;
      post_receives(pair);
      if (pair.sends.size() < kDepth) post_send(pair);
    }
    const bool any = poll();
    if (!notified && (round % 64 == 0 || !any)) {
      pollfd waiting{control, POLLIN, 0};
      std::uint8_t byte = 0;
      if (::poll(&waiting, 1, 0) > 0) {
        if (!read_all(control, &byte, 1)) return report_;
        notified = true;
        notice = Clock::now();
      }
    }
    if (!notified) continue;
    if (is_quiet() || Clock::now() > notice + kLongest) break;
  }
  report_.waited_ns = static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - notice).count());
  // Moves the UC pair to Error by hand: everything is flushed.
  control::QpAttr attr;
  attr.state = QpState::Error;
  Pair& unreliable = pairs_[kUnreliable];
  (void)unreliable.qp->modify(qp_attr::kState, attr);
  const auto end = Clock::now() + kLongest;
  while ((!unreliable.sends.empty() || !unreliable.receives.empty()) && Clock::now() < end)
    (void)poll();
  (void)poll();
  for (const Pair& pair : pairs_) {
    report_.outstanding += static_cast<std::uint32_t>(pair.sends.size() + pair.receives.size());
  }
  return report_;
}

bool Traffic::destroy() {
  bool good = true;
  for (Pair& pair : pairs_) good &= pair.qp->destroy() == Status::Ok;
  good &= srq_->destroy() == Status::Ok;
  for (const auto& cq : cqs_) good &= cq->destroy() == Status::Ok;
  good &= region_->destroy() == Status::Ok;
  good &= pd_->destroy() == Status::Ok;
  return good;
}

}  // namespace

int run_traffic(const HostSettings& settings, std::uint64_t seed, int control) {
  TestHost host(settings);
  IgnoreEvents events;
  std::string reason;
  auto process = user::Process::attach(host, {settings.node, settings.program}, events, reason);
  if (!process) {
    std::fprintf(stderr, "traffic: %s\n", reason.c_str());
    return 1;
  }
  auto hca = (*process)->open_hca((*process)->info().cas[0].node_guid);
  if (!hca) return 1;
  Traffic traffic(**hca, seed);
  std::uint8_t byte = 0;
  TrafficPlace peer;
  const bool begun = traffic.create();
  const TrafficPlace mine = traffic.place();
  if (!begun || !write_all(control, &mine, sizeof mine) || !read_all(control, &peer, sizeof peer) ||
      !traffic.connect(peer) || !write_all(control, &byte, 1) || !read_all(control, &byte, 1)) {
    return 1;
  }
  const TrafficReport report = traffic.run(control);
  if (!write_all(control, &report, sizeof report) || !read_all(control, &byte, 1)) return 1;
  return traffic.destroy() ? 0 : 1;
}

}  // namespace ib::conformance
