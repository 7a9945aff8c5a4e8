// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "al/mad_objects.h"

#include <algorithm>
#include <initializer_list>

namespace ib::al {

using verbs::QpState;
using verbs::QpType;
namespace attr = verbs::qp_attr;

namespace {

// Room for any message: queue pairs 0 and 1 get MADs and nothing else, but any client may send any
// message to one of UD, and one that does not fit would break it.
std::uint32_t receive_room(QpType type) {
  return verbs::kGrhBytes + (type == QpType::Ud ? 4096 : kMadBytes);
}

}  // namespace

hca::Sge MadObjects::buffer(const MadQpOptions& options, std::size_t slot) const {
  const std::uint32_t room = receive_room(options.type);
  const std::uint64_t receives = std::min<std::uint64_t>(slot, options.depth);
  const std::uint64_t sends = slot - receives;
  const bool of_send = slot >= options.depth;
  return {receives * room + sends * kMadBytes, of_send ? kMadBytes : room, region_.made.lkey};
}

void MadObjects::begin(Step step, Ca& ca, const MadQpOptions& options, io::IrpRef irp) {
  switch (step) {
    case Step::Pd: return alloc_pd(ca, pd_, std::move(irp));
    case Step::Memory:
      room_ = {std::uint64_t{receive_room(options.type) + kMadBytes} * options.depth, 6, 0};
      return alloc_dm(ca, room_, memory_, std::move(irp));
    case Step::Region:
      return reg_dm(pd_, memory_, verbs::access::kLocalWrite, region_, std::move(irp));
    case Step::Cq: return create_cq(ca, 2 * options.depth, cq_, std::move(irp));
    case Step::Qp: {
      const control::QpCaps caps{options.depth, options.depth, 1, 1, 0, 0};
      if (options.type == QpType::Ud) {
        return create_qp(pd_, QpType::Ud, caps, cq_, cq_, qp_, std::move(irp));
      }
      return create_special_qp(pd_, options.type, options.port, caps, cq_, cq_, qp_,
                               std::move(irp));
    }
    case Step::Init: {
      attr_ = {};
      attr_.port = static_cast<std::uint8_t>(options.port);
      attr_.qkey = options.type == QpType::Smi ? 0 : verbs::kGsiQkey;
      const std::uint32_t port = options.type == QpType::Ud ? attr::kPort : 0;
      return modify(QpState::Init, attr::kPkeyIndex | attr::kQkey | port, std::move(irp));
    }
    case Step::Rtr: return modify(QpState::Rtr, 0, std::move(irp));
    case Step::Rts: return modify(QpState::Rts, attr::kSqPsn, std::move(irp));
    case Step::Ready: break;
  }
  IB_ASSERT(false);
}

void MadObjects::modify(QpState state, std::uint32_t mask, io::IrpRef irp) {
  attr_.state = state;
  modify_qp(qp_, attr::kState | mask, attr_, std::move(irp));
}

void MadObjects::forget() {
  for (Object* object : std::initializer_list<Object*>{&qp_, &cq_, &region_, &memory_, &pd_}) {
    object->handle = control::kNoIndex;
  }
}

void MadObjects::destroy_newest(io::IrpRef irp) {
  if (qp_.exists()) return destroy(qp_, std::move(irp));
  if (cq_.exists()) return destroy(cq_, std::move(irp));
  if (region_.exists()) return destroy(region_, std::move(irp));
  if (memory_.exists()) return destroy(memory_, std::move(irp));
  if (pd_.exists()) return destroy(pd_, std::move(irp));
  std::move(irp).complete(Status::Ok);
}

}  // namespace ib::al
