// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "pair_life.h"

#include "fabric.h"
#include "peer/peer_protocol.h"

#include <gtest/gtest.h>

#include <bit>
#include <chrono>
#include <thread>

namespace ib::conformance {
namespace {

using verbs::QpState;
using verbs::QpType;
using Clock = std::chrono::steady_clock;
namespace qp_attr = verbs::qp_attr;
namespace access = verbs::access;

constexpr std::uint32_t kDepth = 16;
constexpr auto kLongest = std::chrono::milliseconds(20);  // of an exchange

// The statuses that are possible while an HCA goes, sleeps or is absent. DeviceBusy: a query-remove
// is pending.
bool is_fair(Status status) {
  return status == Status::Ok || status == Status::NotFound || status == Status::DeviceRemoved ||
         status == Status::InvalidState || status == Status::DeviceBusy;
}
// A queue pair may have gone to Error by itself.
bool is_fair_for_qp(Status status) {
  return is_fair(status) || status == Status::InvalidParameter || status == Status::LimitExceeded;
}

template <class T>
bool keep(std::unique_ptr<T>& out, Result<std::unique_ptr<T>> made, const char* what) {
  if (!made) {
    EXPECT_TRUE(is_fair(made.error()))
        << what << ": " << status_text(made.error()) << ": " << user::last_reason();
    return false;
  }
  out = *std::move(made);
  return true;
}

// Objects can be destroyed in every state of their HCA.
template <class T>
void destroy(std::unique_ptr<T>& object, const char* what) {
  if (object == nullptr) return;
  const Status status = object->destroy();
  EXPECT_EQ(status, Status::Ok) << what << ": " << user::last_reason();
  object.reset();
}

// HCAs of processes that ended without cleaning up. Never destroyed, as in a process that dies.
void keep_until_exit(std::unique_ptr<user::Hca> hca) {
  static std::mutex lock;
  static auto* graves = new std::vector<user::Hca*>;
  const std::lock_guard guard(lock);
  graves->push_back(hca.release());
}

}  // namespace

std::uint64_t Memories::add() {
  void* memory =
      ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) std::abort();
  all_.push_back(memory);
  return std::bit_cast<std::uint64_t>(memory);
}

Memories::~Memories() {
  for (void* memory : all_) (void)::munmap(memory, kBytes);
}

void PairLife::run() {
  static constexpr std::array kTypes{QpType::Rc, QpType::Rc, QpType::Uc};
  type_ = kTypes[pick(kTypes.size())];
  is_ethernet_ = pick(3) == 0;
  auto& [a, b] = sides_;
  if (begin(a) && begin(b) && make_objects(a) && make_objects(b) && connect(a, b) &&
      connect(b, a)) {
    exchange();
  }
  for (Process& side : sides_) {
    if (side.process == nullptr) continue;
    pick(4) == 0 ? vanish(side) : end_in_order(side);
  }
}

bool PairLife::begin(Process& self) {
  static constexpr std::array kPaths{"adopted", "process_vm", "bounce"};
  HostSettings settings;
  settings.socket = socket_;
  settings.path = kPaths[pick(kPaths.size())];
  const bool first = pick(2) == 0;
  settings.node = is_ethernet_ ? (first ? kNorth : kSouth) : (first ? kEast : kWest);
  self.host = std::make_unique<TestHost>(settings);
  std::string reason;
  auto process = user::Process::attach(*self.host, {settings.node, "pair"}, self.events, reason);
  if (!process) {
    ADD_FAILURE() << "attach: " << reason;
    return false;
  }
  self.process = *std::move(process);
  const control::AttachOut& info = self.process->info();
  if (info.ca_count == 0) return false;
  return keep(self.hca, self.process->open_hca(info.cas[pick(info.ca_count)].node_guid), "open");
}

bool PairLife::find_way(Process& self) {
  const auto port = self.hca->query_port(1);
  if (!port) return false;
  self.way.port = 1;
  self.way.dlid = port->lid;
  if (!is_ethernet_) return true;
  const auto gid = self.hca->query_gid(1, kIpGid);
  if (!gid) return false;
  self.way.is_global = 1;
  self.way.dgid = gid->gid;
  self.way.sgid_index = kIpGid;
  return true;
}

bool PairLife::make_objects(Process& self) {
  user::Hca& hca = *self.hca;
  self.memory = memories_.add();
  if (!keep(self.pd, hca.alloc_pd(), "PD")) return false;
  control::RegMrIn in;
  in.pd = self.pd->handle();
  in.access = access::kLocalWrite | access::kRemoteAny;
  in.address = in.iova = self.memory;
  in.length = Memories::kBytes;
  if (!keep(self.region, hca.register_memory(in), "MR")) return false;
  control::CreateCqIn cq;
  cq.cqe = 8 * kDepth;
  if (pick(2) == 0) {
    if (!keep(self.channel, self.process->create_channel(), "channel")) return false;
    cq.channel = self.channel->handle();
  }
  if (!keep(self.cq, hca.create_cq(cq), "CQ")) return false;
  if (self.channel != nullptr) self.cq->arm(false);
  if (pick(3) == 0) {
    user::SrqOptions srq;
    srq.pd = self.pd.get();
    srq.max_wr = kDepth;
    srq.max_sge = 1;
    if (!keep(self.srq, hca.create_srq(srq), "SRQ")) return false;
  }
  if (!find_way(self)) return false;
  if (pick(2) == 0 && !keep(self.address, hca.create_ah(*self.pd, self.way), "AH")) return false;
  if (pick(2) == 0 && !keep(self.device_memory, hca.alloc_device_memory(4096, 6), "DM")) {
    return false;
  }
  user::QpOptions qp;
  qp.type = type_;
  qp.pd = self.pd.get();
  qp.send_cq = qp.recv_cq = self.cq.get();
  qp.srq = self.srq.get();
  qp.caps = {kDepth, kDepth, 1, 1, 64, 0};
  qp.signal_all = true;
  return keep(self.qp, hca.create_qp(qp), "QP");
}

bool PairLife::connect(Process& self, const Process& peer) {
  const auto modify = [&](std::uint32_t mask, const control::QpAttr& attr) {
    const auto done = self.qp->modify(mask | qp_attr::kState, attr);
    EXPECT_TRUE(done || is_fair_for_qp(done.error())) << user::last_reason();
    return bool(done);
  };
  control::QpAttr attr;
  attr.state = QpState::Init;
  attr.port = 1;
  attr.access = access::kRemoteAny | access::kLocalWrite;
  if (!modify(qp_attr::kPort | qp_attr::kPkeyIndex | qp_attr::kAccessFlags, attr)) return false;
  self.connected = true;
  attr.state = QpState::Rtr;
  attr.path_mtu = verbs::Mtu::B4096;
  attr.dest_qpn = peer.qp->qpn();
  attr.av = peer.way;
  attr.max_dest_rd_atomic = 16;
  attr.min_rnr_timer = 1;
  std::uint32_t mask = qp_attr::kAv | qp_attr::kPathMtu | qp_attr::kDestQpn | qp_attr::kRqPsn;
  const bool reliable = type_ == QpType::Rc;
  if (reliable) mask |= qp_attr::kMaxDestRdAtomic | qp_attr::kMinRnrTimer;
  if (!modify(mask, attr)) return false;
  attr.state = QpState::Rts;
  attr.timeout = 8;
  attr.retry_cnt = 1;
  attr.rnr_retry = 7;
  attr.max_rd_atomic = 16;
  mask = qp_attr::kSqPsn;
  if (reliable) {
    mask |= qp_attr::kTimeout | qp_attr::kRetryCnt | qp_attr::kRnrRetry | qp_attr::kMaxQpRdAtomic;
  }
  return modify(mask, attr);
}

// The second process posts and polls on a thread of its own.
void PairLife::exchange() {
  const auto end = Clock::now() + std::chrono::milliseconds(pick(kLongest.count()));
  const unsigned seed = pick(1u << 30);
  const auto work = [this, end](Process& self, const Process& peer, unsigned from) {
    std::mt19937_64 random(from);
    while (Clock::now() < end && self.qp->state() != QpState::Error) {
      if (random() % 2 == 0) post(self, peer);
      poll(self);
      std::this_thread::yield();
    }
  };
  std::thread other([&] { work(sides_[1], sides_[0], seed); });
  work(sides_[0], sides_[1], seed + 1);
  other.join();
}

void PairLife::post(Process& self, const Process& peer) {
  const user::Sge sge{self.memory + 4096, 256, self.region->lkey()};
  const Status received = self.srq != nullptr ? self.srq->post_recv(1, {&sge, 1})
                                              : self.qp->queues().post_recv(1, {&sge, 1});
  EXPECT_TRUE(is_fair_for_qp(received)) << status_text(received);
  if (received == Status::Ok && self.srq == nullptr) ++self.outstanding;
  static constexpr std::array kOpcodes{verbs::WrOpcode::Send, verbs::WrOpcode::RdmaWrite,
                                       verbs::WrOpcode::SendWithImm};
  user::SendWqe request;
  request.wr_id = 2;
  request.opcode = kOpcodes[received == Status::Ok ? self.outstanding % 3 : 0];
  const user::Sge piece{self.memory, 1 + self.outstanding % 256, self.region->lkey()};
  user::set_sges(request, {&piece, 1});
  request.rkey = peer.region->rkey();
  request.remote_address = peer.memory + 8192;
  self.qp->queues().send_lock().lock();
  const Status sent = self.qp->queues().post_send(request);
  self.qp->queues().send_lock().unlock();
  EXPECT_TRUE(is_fair_for_qp(sent)) << status_text(sent);
  if (sent == Status::Ok) ++self.outstanding;
}

void PairLife::poll(Process& self) {
  user::Completion completion;
  self.cq->lock();
  while (self.cq->take(completion)) {
    // Receives of an SRQ are not counted.
    if (self.srq == nullptr || completion.wr_id == 2) --self.outstanding;
    if (completion.status == verbs::WcStatus::Success && completion.wr_id == 1) ++messages_;
  }
  self.cq->unlock();
}

// Every outstanding request ends once the queue pair is in Error, whichever side moved it there.
void PairLife::flush(Process& self) {
  if (!self.connected) return;
  control::QpAttr attr;
  attr.state = QpState::Error;
  const auto done = self.qp->modify(qp_attr::kState, attr);
  EXPECT_TRUE(done || is_fair_for_qp(done.error())) << user::last_reason();
  while (self.outstanding > 0) {  // the watchdog ends the program if this hangs
    poll(self);
    std::this_thread::yield();
  }
}

void PairLife::end_in_order(Process& self) {
  if (self.qp != nullptr) flush(self);
  destroy(self.qp, "QP");
  destroy(self.srq, "SRQ");
  destroy(self.cq, "CQ");
  destroy(self.channel, "channel");
  destroy(self.address, "AH");
  destroy(self.device_memory, "DM");
  destroy(self.region, "MR");
  destroy(self.pd, "PD");
  self.hca.reset();
  self.process.reset();
}

void PairLife::vanish(Process& self) {
  self.process.reset();  // ends its threads first, which use the objects
  keep_until_exit(std::move(self.hca));
  self.qp.reset();
  self.srq.reset();
}

}  // namespace ib::conformance
