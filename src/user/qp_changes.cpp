// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "user/qp_changes.h"

#include "user/hca.h"
#include "verbs/qp_state.h"
#include "verbs/qp_values.h"

namespace ib::user {

using control::Code;
using verbs::QpState;
using verbs::QpType;
using verbs::qp_attr::kAccessFlags;
using verbs::qp_attr::kState;
namespace qp_attr = verbs::qp_attr;

Result<control::ModifyQpOut> QpChanges::modify(std::uint32_t mask, const control::QpAttr& attr) {
  if (stays_in_init(mask, attr)) {
    if ((mask & kAccessFlags) != 0 && attr.access != init_.attr.access) {
      init_.attr.access = attr.access;
      access_waits_ = true;
    }
    return control::ModifyQpOut{QpState::Init, QpState::Init};
  }
  ControlConnection& connection = hca_.process().connection();
  connection.settle();
  control::ModifyQpIn in;
  in.index = handle_;
  in.mask = mask;
  in.attr = attr;
  const bool goes_to_rtr = (mask & kState) != 0 && attr.state == QpState::Rtr;
  if (access_waits_ && goes_to_rtr && (mask & kAccessFlags) == 0) {
    in.mask |= kAccessFlags;
    in.attr.access = init_.attr.access;
  } else {
    IB_CHECK(catch_up());
  }
  control::ModifyQpOut out{queues_.state(), in.attr.state};
  if (!is_sure(in.mask, in.attr) || !connection.submit(Code::ModifyQp, hca_.file(), in)) {
    const auto done = connection.call_for(Code::ModifyQp, hca_.file(), in, out);
    if (!done) return done.error();
  }
  init_ = {};
  access_waits_ = false;
  if (out.state == QpState::Init) init_ = {mask, attr};
  queues_.modified(mask, attr, out.state);
  return out;
}

// librdmacm moves each queue pair to Init twice: the second time with the same attributes, or with
// the access flags that the peer has agreed to. These matter to no one before Rtr, and are never
// refused, so they go with that change. Others may change those that they can open, of XRC.
bool QpChanges::stays_in_init(std::uint32_t mask, const control::QpAttr& attr) const {
  // Reset: softibd has not made that change yet.
  const QpState now = queues_.state();
  const bool is_in_init = now == QpState::Init || now == QpState::Reset;
  return is_own() && mask == init_.mask && mask != 0 && is_in_init &&
         hca_.process().connection().is_mine() && attr.state == QpState::Init &&
         attr.port == init_.attr.port && attr.pkey_index == init_.attr.pkey_index &&
         attr.qkey == init_.attr.qkey;
}

bool QpChanges::is_own() const {
  const QpType type = queues_.type();
  return type == QpType::Rc || type == QpType::Uc || type == QpType::Ud;
}

// Changes that softibd refuses only if the queue pair or its HCA has ended meanwhile, which a
// program finds out as if it had happened a moment later. So nobody waits for its answer.
bool QpChanges::is_sure(std::uint32_t mask, const control::QpAttr& attr) const {
  constexpr std::uint32_t kOfInit =
      kState | kAccessFlags | qp_attr::kPkeyIndex | qp_attr::kPort | qp_attr::kQkey;
  constexpr std::uint32_t kOfRts = kState | kAccessFlags | qp_attr::kSqPsn | qp_attr::kTimeout |
                                   qp_attr::kRetryCnt | qp_attr::kRnrRetry |
                                   qp_attr::kMaxQpRdAtomic | qp_attr::kMinRnrTimer;
  const QpState from = queues_.state();
  const bool to_init = from == QpState::Reset && attr.state == QpState::Init;
  const bool to_rts = from == QpState::Rtr && attr.state == QpState::Rts;
  if (!is_own() || !(to_init || to_rts) || (mask & ~(to_init ? kOfInit : kOfRts)) != 0 ||
      verbs::check_qp_modify(queues_.type(), from, attr.state, mask).verdict !=
          verbs::QpModifyVerdict::Ok) {
    return false;
  }
  std::string reason;
  if (to_rts) return verbs::check_qp_values(mask, attr, reason);
  return hca_.has_pkey(attr.port, attr.pkey_index);
}

Status QpChanges::catch_up() {
  if (!access_waits_ || queues_.settled_state() != QpState::Init) return Status::Ok;
  const control::ModifyQpIn in{handle_, init_.mask, init_.attr};
  control::ModifyQpOut out;
  const auto done = hca_.process().connection().call_for(Code::ModifyQp, hca_.file(), in, out);
  if (!done) return done.error();
  access_waits_ = false;
  return Status::Ok;
}

}  // namespace ib::user
