// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The answers to the commands that librdmacm sends after an event, so that they can go with it; and
// the event, so that it can go with the answer to the command before.
#pragma once

#include "base/inline_bytes.h"
#include "services/rdma_cm/service/ids.h"
#include "verbs/control_rdma_cm.h"

#include <cstdint>

namespace ib::services::rdma_cm {

// A list of verbs::control::RdmaCmAhead.
using AnswersAhead = InlineBytes<verbs::control::kMostRdmaCmAhead>;

// Commands that would fail are not in it.
void add_answers_ahead(const fabric::Fabric& fabric, const Id& id, ucma::Event event,
                       AnswersAhead& list);
// Before these: the event itself.
struct OfferAhead {
  std::uint32_t number;  // EventOffer
  bool drains;           // verbs::control::rdma_cm_flag::kDrained
};
void add_event_ahead(const ucma::EventOut& event, const OfferAhead& offer, AnswersAhead& list);

}  // namespace ib::services::rdma_cm
