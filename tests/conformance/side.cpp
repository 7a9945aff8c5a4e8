// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "side.h"

#include "verbs/qp_state.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace ib::conformance {

// --- Region ---

void Region::fill(std::uint64_t seed, std::uint64_t offset, std::uint64_t n,
                  std::uint64_t first) const {
  (void)side->expect(Command::Fill, Message().put(memory + offset).put(n).put(seed).put(first));
}

std::uint64_t Region::mismatches(std::uint64_t seed, std::uint64_t offset, std::uint64_t n,
                                 std::uint64_t first) const {
  Reply reply = side->expect(Command::CountMismatches,
                             Message().put(memory + offset).put(n).put(seed).put(first));
  return reply.status == Status::Ok ? reply.out.take<std::uint64_t>() : ~std::uint64_t{0};
}

std::uint64_t Region::word(std::uint64_t offset) const {
  Reply reply = side->expect(
      Command::Peek, Message().put(memory + offset).put(std::uint64_t{sizeof(std::uint64_t)}));
  return reply.out.take<std::uint64_t>();
}

void Region::set_word(std::uint64_t offset, std::uint64_t value) const {
  (void)side->expect(Command::Poke,
                     Message().put(memory + offset).put(std::uint64_t{sizeof value}).put(value));
}

std::vector<std::uint8_t> Region::bytes(std::uint64_t offset, std::uint64_t n) const {
  Reply reply = side->expect(Command::Peek, Message().put(memory + offset).put(n));
  std::vector<std::uint8_t> out(n);
  reply.out.take_bytes(out.data(), n);
  return out;
}

namespace {

std::uint32_t time_limit_ms() {
  return ::testing::Test::HasFailure() ? kTimeLimitMsAfterFailure : kTimeLimitMs;
}

}  // namespace

// --- Cq ---

std::vector<Completion> Cq::wait(std::uint32_t n, std::uint32_t milliseconds) const {
  const std::uint32_t longest = std::min(milliseconds, time_limit_ms());
  Reply reply = side->expect(Command::PollCq, Message().put(handle).put(n).put(n).put(longest));
  return reply.status == Status::Ok ? reply.out.take_all<Completion>() : std::vector<Completion>{};
}

std::vector<Completion> Cq::drain() const {
  Reply reply = side->expect(
      Command::PollCq,
      Message().put(handle).put(std::uint32_t{0}).put(~std::uint32_t{0}).put(std::uint32_t{0}));
  return reply.status == Status::Ok ? reply.out.take_all<Completion>() : std::vector<Completion>{};
}

Completion Cq::one() const {
  const auto found = wait(1);
  if (found.size() == 1) return found[0];
  ADD_FAILURE() << "no completion came at side " << side->name();
  Completion none;
  none.status = WcStatus::GeneralErr;
  none.wr_id = ~std::uint64_t{0};
  return none;
}

Completion Cq::one(WcStatus status) const {
  const Completion found = one();
  EXPECT_EQ(found.status, status) << "side " << side->name() << ", wr_id " << found.wr_id
                                  << ", cause " << found.vendor_err;
  return found;
}

void Cq::arm(bool solicited_only) const {
  (void)side->expect(Command::ArmCq,
                     Message().put(handle).put(std::uint32_t{solicited_only ? 1u : 0u}));
}

// --- Srq, Qp ---

Status Srq::try_receive(std::uint64_t wr_id, std::vector<Sge> sge) const {
  return side->call(Command::PostSrqReceive, Message().put(handle).put(wr_id).put_all(sge)).status;
}
void Srq::receive(std::uint64_t wr_id, std::vector<Sge> sge) const {
  EXPECT_EQ(try_receive(wr_id, std::move(sge)), Status::Ok) << side->reason();
}

Status Qp::try_send(const std::vector<Work>& list, std::uint32_t& accepted) const {
  Message in;
  in.put(handle).put(static_cast<std::uint32_t>(list.size()));
  for (const Work& work : list) in.put(static_cast<const SendSpec&>(work)).put_all(work.sge);
  Reply reply = side->call(Command::PostSend, in);
  accepted = reply.out.take<std::uint32_t>();
  return reply.status;
}
Status Qp::try_send(const Work& work) const {
  std::uint32_t accepted = 0;
  return try_send(std::vector<Work>{work}, accepted);
}
void Qp::send(const Work& work) const {
  EXPECT_EQ(try_send(work), Status::Ok) << "side " << side->name() << ": " << side->reason();
}
Status Qp::try_receive(std::uint64_t wr_id, std::vector<Sge> sge) const {
  return side->call(Command::PostReceive, Message().put(handle).put(wr_id).put_all(sge)).status;
}
void Qp::receive(std::uint64_t wr_id, std::vector<Sge> sge) const {
  EXPECT_EQ(try_receive(wr_id, std::move(sge)), Status::Ok)
      << "side " << side->name() << ": " << side->reason();
}
Status Qp::try_modify(std::uint32_t mask, const control::QpAttr& attr) const {
  return side->call(Command::ModifyQp, Message().put(handle).put(mask).put(attr)).status;
}
void Qp::to(QpState state) const {
  control::QpAttr attr;
  attr.state = state;
  EXPECT_EQ(try_modify(qp_attr::kState, attr), Status::Ok) << side->reason();
}
control::QueryQpOut Qp::query() const {
  Reply reply = side->expect(Command::QueryQp, Message().put(handle));
  return reply.status == Status::Ok ? reply.out.take<control::QueryQpOut>() : control::QueryQpOut{};
}
QpState Qp::state() const {
  Reply reply = side->expect(Command::QpState, Message().put(handle));
  return reply.out.take<QpState>();
}
bool Qp::reaches(QpState wanted) const {
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(time_limit_ms());
  while (state() != wanted) {
    if (std::chrono::steady_clock::now() > end) return false;
  }
  return true;
}
Status Qp::try_destroy() const {
  return side->destroy(Kind::Qp, handle);
}

// --- Side ---

Side::Side(std::string name, std::unique_ptr<Channel> channel)
    : name_(std::move(name)), channel_(std::move(channel)) {
  Reply reply = expect(Command::Info);
  if (reply.status == Status::Ok) info_ = reply.out.take<SideInfo>();
}

Reply Side::call(Command command, const Message& in) {
  Reply reply = channel_->call(command, in);
  if (reply.status != Status::Ok) reason_ = reply.reason;
  return reply;
}

Reply Side::expect(Command command, const Message& in) {
  Reply reply = call(command, in);
  EXPECT_EQ(reply.status, Status::Ok)
      << "side " << name_ << ", command " << static_cast<std::uint32_t>(command) << ": "
      << reply.reason;
  return reply;
}

std::uint32_t Side::pd() {
  if (pd_ == kNoHandle) pd_ = new_pd();
  return pd_;
}

Cq& Side::cq() {
  if (cq_.handle == kNoHandle) cq_ = new_cq();
  return cq_;
}

void Side::forget_defaults() {
  pd_ = kNoHandle;
  cq_ = {};
}

std::uint32_t Side::new_pd() {
  Reply reply = expect(Command::AllocPd);
  return reply.status == Status::Ok ? reply.out.take<std::uint32_t>() : kNoHandle;
}

std::uint64_t Side::new_memory(std::uint64_t n) {
  Reply reply = expect(Command::AllocMemory, Message().put(n));
  return reply.status == Status::Ok ? reply.out.take<std::uint64_t>() : 0;
}

Region Side::region(std::uint64_t n, std::uint32_t with_access, std::optional<std::uint32_t> in_pd,
                    std::uint64_t offset) {
  RegionSpec spec;
  spec.pd = in_pd ? *in_pd : pd();
  spec.access = with_access;
  spec.address = new_memory(n + offset) + offset;
  spec.length = n;
  spec.iova = spec.address;
  return region_over(spec);
}

Status Side::try_region(const RegionSpec& spec, Region& out) {
  Reply reply = call(Command::RegisterMemory, Message().put(spec));
  if (reply.status != Status::Ok) return reply.status;
  const auto made = reply.out.take<RegionOut>();
  out.side = this;
  out.handle = made.handle;
  out.lkey = made.lkey;
  out.rkey = made.rkey;
  out.memory = spec.address;
  out.iova = (spec.access & access::kZeroBased) != 0 ? 0 : spec.iova;
  out.length = spec.length;
  return Status::Ok;
}

Region Side::region_over(const RegionSpec& spec) {
  Region out;
  EXPECT_EQ(try_region(spec, out), Status::Ok) << reason_;
  out.side = this;
  return out;
}

Cq Side::new_cq(const CqSpec& spec) {
  Reply reply = expect(Command::CreateCq, Message().put(spec));
  return {this, reply.status == Status::Ok ? reply.out.take<std::uint32_t>() : kNoHandle};
}

Srq Side::new_srq(SrqSpec spec) {
  if (spec.pd == 0) spec.pd = pd();
  Reply reply = expect(Command::CreateSrq, Message().put(spec));
  Srq out{this, kNoHandle, 0};
  if (reply.status != Status::Ok) return out;
  out.srqn = reply.out.take<std::uint32_t>();
  out.handle = reply.out.take<std::uint32_t>();
  return out;
}

Status Side::try_qp(const QpSpec& spec, Qp& out) {
  Reply reply = call(Command::CreateQp, Message().put(spec));
  if (reply.status != Status::Ok) return reply.status;
  out.side = this;
  out.qpn = reply.out.take<std::uint32_t>();
  out.caps = reply.out.take<control::QpCaps>();
  out.handle = reply.out.take<std::uint32_t>();
  return Status::Ok;
}

Qp Side::new_qp(QpSpec spec) {
  if (spec.type != QpType::XrcRecv) {
    if (spec.pd == kNoHandle) spec.pd = pd();
    if (spec.send_cq == kNoHandle) spec.send_cq = cq().handle;
    if (spec.recv_cq == kNoHandle && spec.type != QpType::XrcSend) spec.recv_cq = cq().handle;
  }
  Qp out;
  EXPECT_EQ(try_qp(spec, out), Status::Ok) << reason_;
  out.side = this;
  return out;
}

std::uint32_t Side::new_window(std::uint32_t type, std::uint32_t& rkey, std::uint32_t in_pd) {
  Reply reply = expect(Command::AllocWindow, Message().put(in_pd).put(type));
  if (reply.status != Status::Ok) return kNoHandle;
  rkey = reply.out.take<std::uint32_t>();
  return reply.out.take<std::uint32_t>();
}

std::uint32_t Side::new_channel() {
  Reply reply = expect(Command::CreateChannel, Message().put(std::uint64_t{0}));
  return reply.status == Status::Ok ? reply.out.take<std::uint32_t>() : kNoHandle;
}

std::uint32_t Side::new_xrcd(const control::OpenXrcdIn& in) {
  Reply reply = expect(Command::OpenXrcd, Message().put(in));
  return reply.status == Status::Ok ? reply.out.take<std::uint32_t>() : kNoHandle;
}

std::uint32_t Side::new_address(const verbs::AddressVector& av) {
  Reply reply = expect(Command::CreateAddress, Message().put(pd()).put(av));
  return reply.status == Status::Ok ? reply.out.take<std::uint32_t>() : kNoHandle;
}

verbs::AddressVector Side::path_to(const Side& other) const {
  verbs::AddressVector av;
  av.port = 1;
  av.dlid = other.info_.port.lid;
  if (info_.port.link_layer == verbs::LinkLayer::Ethernet) {
    av.is_global = 1;
    av.dgid = other.info_.gid;
    av.sgid_index = kIpGid;
  }
  return av;
}

Status Side::destroy(Kind kind, std::uint32_t handle) {
  return call(Command::Destroy, Message().put(kind).put(handle)).status;
}

std::optional<std::uint64_t> Side::channel_event(std::uint32_t channel,
                                                 std::uint32_t milliseconds) {
  Reply reply = call(Command::WaitChannel, Message().put(channel).put(milliseconds));
  if (reply.status != Status::Ok) return std::nullopt;
  return reply.out.take<std::uint64_t>();
}

std::optional<control::EventOut> Side::event(std::uint32_t milliseconds) {
  Reply reply = call(Command::NextEvent, Message().put(milliseconds));
  if (reply.status != Status::Ok) return std::nullopt;
  return reply.out.take<control::EventOut>();
}

// --- Work requests ---

Work send_work(std::uint64_t wr_id, std::vector<Sge> sge, WrOpcode opcode) {
  Work work;
  work.wr_id = wr_id;
  work.opcode = opcode;
  work.sge = std::move(sge);
  return work;
}

Work rdma(WrOpcode opcode, std::uint64_t wr_id, std::vector<Sge> sge, std::uint32_t rkey,
          std::uint64_t remote_address) {
  Work work = send_work(wr_id, std::move(sge), opcode);
  work.remote_address = remote_address;
  work.rkey = rkey;
  return work;
}

Work rdma(WrOpcode opcode, std::uint64_t wr_id, std::vector<Sge> sge, const Region& remote,
          std::uint64_t offset) {
  return rdma(opcode, wr_id, std::move(sge), remote.rkey, remote.at(offset));
}

Work flush(std::uint64_t wr_id, const Region& remote, std::uint64_t offset, std::uint64_t bytes) {
  Work work = rdma(WrOpcode::Flush, wr_id, {}, remote, offset);
  work.compare_add = bytes;
  work.imm = verbs::flush::operands(verbs::flush::kGlobal, verbs::flush::kRange);
  return work;
}

// --- Connections ---

std::uint32_t required(QpType type, QpState from, QpState to) {
  return verbs::qp_transition(type, from, to).required | qp_attr::kState;
}

control::QpAttr init_attributes(const Connection& with) {
  control::QpAttr attr;
  attr.state = QpState::Init;
  attr.port = 1;
  attr.pkey_index = with.pkey_index;
  attr.access = with.access;
  attr.qkey = with.qkey;
  return attr;
}

control::QpAttr rtr_attributes(const Qp& qp, const Qp& peer, const Connection& with) {
  control::QpAttr attr;
  attr.state = QpState::Rtr;
  attr.path_mtu = with.mtu;
  attr.dest_qpn = peer.qpn;
  attr.rq_psn = with.rq_psn;
  attr.max_dest_rd_atomic = with.max_dest_rd_atomic;
  attr.min_rnr_timer = with.min_rnr_timer;
  attr.av = qp.side->path_to(*peer.side);
  return attr;
}

control::QpAttr rts_attributes(const Connection& with) {
  control::QpAttr attr;
  attr.state = QpState::Rts;
  attr.sq_psn = with.sq_psn;
  attr.timeout = with.timeout;
  attr.retry_cnt = with.retry_cnt;
  attr.rnr_retry = with.rnr_retry;
  attr.max_rd_atomic = with.max_rd_atomic;
  return attr;
}

namespace {
void change(const Qp& qp, std::uint32_t mask, const control::QpAttr& attr) {
  EXPECT_EQ(qp.try_modify(mask, attr), Status::Ok)
      << "side " << qp.side->name() << ": " << qp.side->reason();
}
}  // namespace

void to_init(const Qp& qp, QpType type, const Connection& with) {
  change(qp, required(type, QpState::Reset, QpState::Init), init_attributes(with));
}
void to_rtr(const Qp& qp, QpType type, const Qp& peer, const Connection& with) {
  change(qp, required(type, QpState::Init, QpState::Rtr), rtr_attributes(qp, peer, with));
}
void to_rts(const Qp& qp, QpType type, const Connection& with) {
  change(qp, required(type, QpState::Rtr, QpState::Rts), rts_attributes(with));
}

void connect(const Qp& a, const Qp& b, QpType type, const Connection& with) {
  const QpType other = type == QpType::XrcSend ? QpType::XrcRecv : type;
  to_init(a, type, with);
  to_init(b, other, with);
  to_rtr(a, type, b, with);
  to_rtr(b, other, a, with);
  to_rts(a, type, with);
  to_rts(b, other, with);
}

}  // namespace ib::conformance
