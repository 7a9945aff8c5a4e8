// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "fabric/management/smi.h"

#include "fabric/management/agent.h"
#include "mad/smp.h"

#include <bit>
#include <utility>

namespace ib::fabric {

Smi::Parcel Smi::nothing(std::string reason) {
  Parcel parcel;
  parcel.reason = std::move(reason);
  return parcel;
}

Smi::Parcel Smi::carry(Port& from, const PacketLids& lids, const mad::Mad& mad) {
  auto smp = std::bit_cast<mad::Smp>(mad);
  Arrival arrival = walk_smp(fabric_.graph(), from, smp, lids);
  return {arrival.port, arrival.lids, std::bit_cast<mad::Mad>(smp), std::move(arrival.reason)};
}

Smi::Parcel Smi::answer(const Parcel& parcel) {
  Port& at = *parcel.at;
  PortChanges changes;
  mad::Mad response{};
  mad::Handled handled = handle_smp(fabric_, at, parcel.mad, hooks_.now(), response, changes);
  if (!changes.empty() && hooks_.on_changes) hooks_.on_changes(changes);
  switch (handled.verdict) {
    case mad::Verdict::Answered:
    case mad::Verdict::Set: break;
    case mad::Verdict::Passed:
      if (hand_over(parcel) || !mad::wants_refusal(mad::header_of(parcel.mad).method)) return {};
      response = mad::refuse(parcel.mad, mad::mad_status::kAttributeNotSupported);
      break;
    case mad::Verdict::Ignored: hand_over(parcel); return nothing(std::move(handled.reason));
    case mad::Verdict::BadKey:
      if (receiver_ != nullptr) {
        receiver_->on_bad_key(fabric_.graph().index_of(at), parcel.lids, parcel.mad);
      }
      return nothing(std::move(handled.reason));
  }
  PacketLids back;
  if (parcel.lids.destination != mad::kPermissiveLid) {
    back = {fabric_.graph().end_port_of(at).lid, parcel.lids.source};
  }
  return carry(at, back, response);
}

bool Smi::hand_over(const Parcel& parcel) {
  return receiver_ != nullptr &&
         receiver_->on_smp(fabric_.graph().index_of(*parcel.at), parcel.lids, parcel.mad);
}

void Smi::send(std::uint32_t port, const PacketLids& lids, const mad::Mad& mad) {
  Parcel parcel = carry(*fabric_.graph().port(port), lids, mad);
  if (parcel.at == nullptr) return;
  if (!mad::is_response(mad::header_of(mad).method)) {
    parcel = answer(parcel);
    if (parcel.at == nullptr) return;
  }
  hand_over(parcel);
}

Status Smi::exchange(std::uint32_t port, const mad::Mad& request, mad::Mad& response,
                     std::string& reason) {
  Port& from = *fabric_.graph().port(port);
  Parcel parcel = carry(from, {}, request);
  if (parcel.at != nullptr) parcel = answer(parcel);
  if (parcel.at == nullptr) {
    reason = parcel.reason.empty() ? "a subnet manager answers it, not an agent"
                                   : std::move(parcel.reason);
    return Status::InvalidParameter;
  }
  response = parcel.mad;
  return Status::Ok;
}

}  // namespace ib::fabric
