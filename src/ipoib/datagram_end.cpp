// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The life of the datagram queue pair, and what a completion of it brings: the loop of
// PortInterface polls, and gives each buffer back when the engine has had its message.
#include "ipoib/datagram_end.h"

#include "hca/requester/grh.h"
#include "ipoib/offload_word.h"
#include "verbs/gid.h"
#include "verbs/ip_trouble.h"

#include <algorithm>

namespace ib::ipoib::driver {

using user::control::QpAttr;
using verbs::QpState;
namespace qp_attr = verbs::qp_attr;

namespace {

// The longest datagram, and the GRH before it; no power of two (see transmitter.cpp).
constexpr std::size_t kStride = (64u << 10) + 192;
static_assert(kStride % 64 == 0 && verbs::kGrhBytes >= kHeadroom &&
              kStride >= verbs::kGrhBytes + verbs::limits::kMaxLargeDatagram);

}  // namespace

Result<std::unique_ptr<DatagramEnd>> DatagramEnd::create(const Station& station,
                                                         const Objects& objects) {
  IB_TRY(memory, RegisteredMemory::create(station.hca, *objects.pd, kReceives * kStride));
  user::QpOptions options;
  options.type = verbs::QpType::Ud;
  options.pd = objects.pd.get();
  options.send_cq = objects.sends.get();
  options.recv_cq = objects.receives.get();
  options.caps.max_send_wr = kSends;
  options.caps.max_recv_wr = kReceives;
  options.caps.max_send_sge = Transmitter::kElements;
  options.caps.max_recv_sge = 1;
  options.caps.max_inline = Transmitter::kInline;
  options.signal_all = true;
  options.flags = user::control::qp_flag::kTakesLarge;
  IB_TRY(queue_pair, station.hca.create_qp(options));
  return std::unique_ptr<DatagramEnd>(
      new DatagramEnd(station, std::move(memory), std::move(queue_pair)));
}

DatagramEnd::~DatagramEnd() {
  (void)queue_pair_->destroy();
}

bool DatagramEnd::is_broken() const {
  const QpState state = queue_pair_->state();
  return state == QpState::Error || state == QpState::Sqe;
}

Status DatagramEnd::modify(std::uint32_t mask, const QpAttr& attr) {
  const auto done = queue_pair_->modify(mask, attr);
  return done ? Status::Ok : done.error();
}

Status DatagramEnd::stop(Transmitter& transmitter) {
  if (queue_pair_->state() == QpState::Reset) return Status::Ok;
  QpAttr attr;
  attr.state = QpState::Reset;
  IB_CHECK(modify(qp_attr::kState, attr));
  transmitter.abandon(queue_pair_->qpn());
  return Status::Ok;
}

Status DatagramEnd::start(std::uint16_t pkey_index, Transmitter& transmitter) {
  IB_CHECK(stop(transmitter));
  QpAttr attr;
  attr.state = QpState::Init;
  attr.pkey_index = pkey_index;
  attr.port = static_cast<std::uint8_t>(station_.port);
  attr.qkey = static_cast<std::uint32_t>(qkey_);
  IB_CHECK(modify(qp_attr::kState | qp_attr::kPkeyIndex | qp_attr::kPort | qp_attr::kQkey, attr));
  for (std::uint32_t i = 0; i < kReceives; ++i) post_receive(i);
  attr.state = QpState::Rtr;
  IB_CHECK(modify(qp_attr::kState, attr));
  attr.state = QpState::Rts;
  attr.sq_psn = 0;
  return modify(qp_attr::kState | qp_attr::kSqPsn, attr);
}

Status DatagramEnd::set_qkey(Qkey qkey) {
  if (qkey == qkey_) return Status::Ok;
  qkey_ = qkey;
  if (queue_pair_->state() != QpState::Rts) return Status::Ok;  // start() sets it
  QpAttr attr;
  attr.state = QpState::Rts;
  attr.qkey = static_cast<std::uint32_t>(qkey);
  return modify(qp_attr::kState | qp_attr::kQkey, attr);
}

Status DatagramEnd::attach(const Gid& mgid, Lid mlid) {
  return queue_pair_->attach_mcast(mgid.bytes, static_cast<std::uint16_t>(mlid));
}

Status DatagramEnd::detach(const Gid& mgid, Lid mlid) {
  return queue_pair_->detach_mcast(mgid.bytes, static_cast<std::uint16_t>(mlid));
}

bool DatagramEnd::takes_large(const HardwareAddress& to) const {
  verbs::AddressVector av;
  av.is_global = 1;
  av.dgid = to.gid.bytes;
  av.port = static_cast<std::uint8_t>(station_.port);
  return queue_pair_->may_send_large(av, static_cast<std::uint32_t>(to.qpn));
}

bool DatagramEnd::send(Transmitter& transmitter, const AddressVector& to, Qpn qpn, Qkey qkey,
                       const Outgoing& message) {
  if (!put_offload(message.offload, request_)) return false;
  request_.av = to_verbs(to, station_.port);
  request_.remote_qpn = static_cast<std::uint32_t>(qpn);
  request_.remote_qkey = static_cast<std::uint32_t>(qkey);
  return transmitter.post(*queue_pair_, request_, message);
}

void DatagramEnd::tell(const Report& report) {
  using user::control::IpTrouble;
  static_assert(static_cast<std::uint32_t>(Trouble::ConnectionLost) ==
                user::control::kIpTroubleCount);
  if (report.trouble == Trouble::None) return;
  user::control::TraceErrorIn error;
  error.qp_index = queue_pair_->index();
  error.cause = static_cast<user::control::Cause>(static_cast<std::uint32_t>(report.trouble) - 1 +
                                                  user::control::kFirstIpTrouble);
  error.detail = static_cast<std::uint32_t>(report.status);
  error.address = verbs::prefix_of(report.gid.bytes);
  error.wr_id = verbs::interface_of(report.gid.bytes);
  error.key = static_cast<std::uint16_t>(station_.pkey);
  queue_pair_->tell(error);
}

std::span<std::byte> DatagramEnd::buffer(std::uint64_t wr_id) const {
  return memory_->bytes().subspan((wr_id % kReceives) * kStride, kStride);
}

std::optional<DatagramEnd::Received> DatagramEnd::read(const user::Completion& completion) {
  const std::span<std::byte> bytes = buffer(completion.wr_id);
  if (completion.byte_len < verbs::kGrhBytes || completion.byte_len > bytes.size()) return {};
  Received received;
  received.source.qpn = Qpn{completion.src_qp};
  received.source.slid = Lid{completion.slid};
  if ((completion.flags & verbs::wc_flag::kGrh) != 0) {
    hca::RouteHeader header;
    std::copy_n(bytes.begin(), header.size(), header.begin());
    const auto route = hca::read_route(header, verbs::LinkLayer::InfiniBand);
    if (route) {
      received.source.has_grh = true;
      received.source.sgid.bytes = route->source;
      received.source.dgid.bytes = route->destination;
    }
  }
  received.message.bytes = bytes.subspan(verbs::kGrhBytes, completion.byte_len - verbs::kGrhBytes);
  if (!take_offload(completion, received.message.offload)) return {};
  return received;
}

void DatagramEnd::post_receive(std::uint64_t wr_id) {
  const user::Sge sge = memory_->sge(buffer(wr_id));
  (void)queue_pair_->queues().post_recv(wr_id, std::span(&sge, 1));
}

}  // namespace ib::ipoib::driver
