// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "endpoint.h"

#include <algorithm>
#include <cstring>

namespace ping {

namespace al = ib::al;
namespace attr = ib::verbs::qp_attr;
using ib::io::IrpRef;
using ib::verbs::QpState;

namespace {

constexpr std::uint32_t kQkey = 0x70696e67;
constexpr std::uint64_t kGrh = 40;  // room before the message in a UD receive
constexpr std::uint64_t kSlot = 128;
constexpr std::uint32_t kReceives = 16;  // as many sends have their slots after them

// An object that was never made, or is gone, need not be destroyed.
template <class Object>
Requests::Issue destruction(Object& object) {
  return [&object](IrpRef irp) {
    if (!object.exists()) return std::move(irp).complete(Status::Ok);
    al::destroy(object, std::move(irp));
  };
}

}  // namespace

std::vector<Requests::Issue> Endpoint::make() {
  room_ = {kSlot * 2 * kReceives, 12, 0};
  return {
      [this](IrpRef irp) { al::alloc_dm(ca_, room_, memory_, std::move(irp)); },
      [this](IrpRef irp) {
        al::reg_dm(pd_, memory_, ib::verbs::access::kLocalWrite, region_, std::move(irp));
      },
      [this](IrpRef irp) {
        const control::QpCaps caps{kReceives, kReceives, 1, 1, 0, 0};
        al::create_qp(pd_, type_, caps, cq_, cq_, qp_, std::move(irp));
      },
      [this](IrpRef irp) {
        modify(QpState::Init,
               attr::kPkeyIndex | attr::kPort | (is_datagram() ? attr::kQkey : attr::kAccessFlags),
               std::move(irp));
      },
  };
}

std::vector<Requests::Issue> Endpoint::connect(const Address& remote) {
  remote_ = remote;
  constexpr std::uint32_t kRcRtr = attr::kAv | attr::kPathMtu | attr::kDestQpn | attr::kRqPsn |
                                   attr::kMaxDestRdAtomic | attr::kMinRnrTimer;
  constexpr std::uint32_t kRcRts =
      attr::kSqPsn | attr::kTimeout | attr::kRetryCnt | attr::kRnrRetry | attr::kMaxQpRdAtomic;
  return {
      [this](IrpRef irp) { modify(QpState::Rtr, is_datagram() ? 0 : kRcRtr, std::move(irp)); },
      [this](IrpRef irp) {
        modify(QpState::Rts, is_datagram() ? attr::kSqPsn : kRcRts, std::move(irp));
      },
  };
}

std::vector<Requests::Issue> Endpoint::take_away() {
  return {destruction(qp_), destruction(region_), destruction(memory_)};
}

void Endpoint::modify(QpState to, std::uint32_t mask, IrpRef irp) {
  change_ = {};
  change_.state = to;
  change_.port = port_;
  change_.qkey = kQkey;
  change_.av.dlid = remote_.lid;
  change_.av.port = port_;
  change_.dest_qpn = remote_.qpn;
  change_.path_mtu = ib::verbs::Mtu::B1024;
  change_.min_rnr_timer = 12;
  change_.timeout = 14;
  change_.retry_cnt = 7;
  change_.rnr_retry = 7;
  al::modify_qp(qp_, attr::kState | mask, change_, std::move(irp));
}

void Endpoint::post_receives() {
  for (std::uint32_t slot = 0; slot < kReceives; ++slot) post_receive(slot);
}

void Endpoint::post_receive(std::uint32_t slot) {
  const ib::hca::Sge sge{slot * kSlot, kSlot, region_.made.lkey};
  (void)al::post_recv(qp_, slot, {&sge, 1});
}

void Endpoint::send(std::string_view text, const Address& to) {
  if (sending_ == kReceives) return;
  const std::uint32_t slot = kReceives + next_send_ % kReceives;
  std::memcpy(memory_.bytes + slot * kSlot, text.data(), text.size());
  const ib::hca::Sge sge{slot * kSlot, static_cast<std::uint32_t>(text.size()), region_.made.lkey};
  ib::hca::SendWqe wqe;
  wqe.wr_id = slot;
  wqe.opcode = ib::verbs::WrOpcode::Send;
  wqe.flags = ib::verbs::send_flag::kSignaled;
  wqe.sge = &sge;
  wqe.num_sge = 1;
  wqe.av.dlid = to.lid;
  wqe.av.port = port_;
  wqe.remote_qpn = to.qpn;
  wqe.remote_qkey = kQkey;
  if (al::post_send(qp_, wqe) != ib::Status::Ok) return;
  ++next_send_;
  ++sending_;
}

std::optional<std::string> Endpoint::take(const ib::hca::Completion& got) {
  const auto slot = static_cast<std::uint32_t>(got.wr_id);
  if (slot >= kReceives) {
    --sending_;
    return std::nullopt;
  }
  if (got.status != ib::verbs::WcStatus::Success) return std::nullopt;
  const std::uint64_t skip = is_datagram() ? kGrh : 0;
  const std::uint64_t end = std::min<std::uint64_t>(got.byte_len, kSlot);
  std::string text(end - std::min(end, skip), '\0');
  std::memcpy(text.data(), memory_.bytes + slot * kSlot + skip, text.size());
  post_receive(slot);
  return text;
}

}  // namespace ping
