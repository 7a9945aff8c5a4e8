// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "services/rdma_cm/service/answers_ahead.h"

#include "services/rdma_cm/service/queries.h"
#include "verbs/control_rdma_cm.h"

namespace ib::services::rdma_cm {
namespace {

using ucma::Event;
using ucma::QueryOption;
using verbs::QpState;
using verbs::control::RdmaCmAhead;

template <class Out>
void put(const RdmaCmAhead& head, const Out& out, AnswersAhead& list) {
  list.append_object(head);
  list.append_object(out);
  list.pad_to(8);
}

class Adding {
 public:
  Adding(const fabric::Fabric& fabric, const Id& id, AnswersAhead& list)
      : fabric_(fabric), id_(id), list_(list) {}

  void add(QueryOption option) {
    const auto number = static_cast<std::uint32_t>(option);
    if (option == QueryOption::Path) return put_answer(ucma::Code::Query, number, query_path(id_));
    put_answer(ucma::Code::Query, number, query_address(fabric_, id_, option));
  }
  void add(QpState state) {
    const auto number = static_cast<std::uint32_t>(state);
    ucma::QpAttrOut out;
    if (init_qp_attributes(fabric_, id_, number, out) != ucma::Error::None) return;
    put_answer(ucma::Code::InitQpAttr, number, out);
  }

 private:
  template <class Out>
  void put_answer(ucma::Code code, std::uint32_t option, const Out& out) {
    put(RdmaCmAhead{static_cast<std::uint32_t>(code), id_.number, option, sizeof out}, out, list_);
  }

  const fabric::Fabric& fabric_;
  const Id& id_;
  AnswersAhead& list_;
};

}  // namespace

void add_answers_ahead(const fabric::Fabric& fabric, const Id& id, Event event,
                       AnswersAhead& list) {
  const bool is_request = event == Event::ConnectRequest;
  const bool has_addresses = is_request || event == Event::AddrResolved;
  const bool has_route = is_request || event == Event::RouteResolved;
  const bool has_peer = is_request || event == Event::ConnectResponse;
  Adding to(fabric, id, list);
  if (has_addresses) to.add(QueryOption::Addr);
  if (has_addresses) to.add(QueryOption::Gid);
  if (has_route) to.add(QueryOption::Path);
  if (has_addresses || has_route || has_peer) to.add(QpState::Init);
  if (has_peer) to.add(QpState::Rtr);
  if (has_peer) to.add(QpState::Rts);
}

void add_event_ahead(const ucma::EventOut& event, const OfferAhead& offer, AnswersAhead& list) {
  const std::uint32_t flags = offer.drains ? verbs::control::rdma_cm_flag::kDrained : 0;
  put(RdmaCmAhead{verbs::control::kRdmaCmGetEvent, offer.number, flags, sizeof event}, event, list);
}

}  // namespace ib::services::rdma_cm
