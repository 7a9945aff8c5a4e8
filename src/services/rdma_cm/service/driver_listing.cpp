// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "services/rdma_cm/service/driver_listing.h"

#include "cm/service_id.h"
#include "services/rdma_cm/addresses/ip_cm.h"

#include <algorithm>

namespace ib::services::rdma_cm {
namespace {

// The words that connections of programs have, too.
const char* text_of(cm::State state) {
  switch (state) {
    case cm::State::ReqSent:
    case cm::State::ReqSentMraReceived: return "REQ sent";
    case cm::State::ReqReceived:
    case cm::State::ReqReceivedMraSent: return "REQ received";
    case cm::State::RepSent:
    case cm::State::RepSentMraReceived: return "REP sent";
    case cm::State::RepReceived:
    case cm::State::RepReceivedMraSent: return "REP received";
    case cm::State::Established: return "established";
    case cm::State::DreqSent:
    case cm::State::DreqReceived:
    case cm::State::TimeWait: return "disconnected";
    case cm::State::Closed: break;
  }
  return "over";
}

std::string waits_for(cm::State state, const cm::Waiting& message, const std::string& owner) {
  switch (state) {
    case cm::State::ReqReceived:
    case cm::State::ReqReceivedMraSent: return "its " + owner + " to accept or reject";
    case cm::State::RepReceived:
    case cm::State::RepReceivedMraSent: return "its " + owner + " to establish or reject";
    case cm::State::DreqReceived: return "its " + owner + " to confirm that it is over";
    case cm::State::ReqSent:
    case cm::State::ReqSentMraReceived:
    case cm::State::RepSent:
    case cm::State::RepSentMraReceived:
    case cm::State::Established:
    case cm::State::DreqSent:
    case cm::State::TimeWait:
    case cm::State::Closed: break;
  }
  if (message.times_sent == 0) return {};
  return message.was_delayed ? "its peer, which needs longer" : "an answer of its peer";
}

verbs::QpType type_of(cm::Transport transport) {
  switch (transport) {
    case cm::Transport::Rc: break;
    case cm::Transport::Uc: return verbs::QpType::Uc;
    case cm::Transport::Xrc: return verbs::QpType::XrcRecv;
  }
  return verbs::QpType::Rc;
}

// "TCP" of a service ID that stands for a port of the node.
const char* space_of(std::uint64_t service_id) {
  const auto service = cm::ip_service(service_id);
  if (!service) return "";
  for (const PortSpace space : kPortSpaces) {
    if (rdma_cm::service_id(space, service->port) == service_id) return name_of(space);
  }
  return "";
}

Listing listing_of(const CmObject& object, const HcaCm& manager, const ServiceUser& owner,
                   Instant now) {
  using Kind = CmObject::Kind;
  const fabric::Hca& hca = manager.hca();
  Listing one;
  one.id = object.handle;
  one.node = hca.node;
  one.is_driver = owner.pid == 0;
  one.pid = owner.pid;
  one.program = owner.name;
  const std::string what = one.is_driver ? "driver" : "program";
  one.service_id = object.service_id;
  one.age = now - object.since;
  one.events_waiting = static_cast<std::uint32_t>(object.kept.size());
  if (object.kind == Kind::Listener) {
    one.state = "listening";
    one.backlog = object.backlog;
    one.backlog_used = static_cast<std::uint32_t>(object.came.size());
  } else if (object.kind == Kind::Datagram) {
    one.qp_type = verbs::QpType::Ud;
    one.state = "connecting";
    const bool is_ours = object.answer.size() > 0;
    one.waits_for = is_ours ? "an answer of its peer" : "its " + what + " to answer";
  } else if (!object.has_id) {
    one.state = "REQ sent";
    one.waits_for = "queue pairs 1 of both nodes";
  } else if (const auto info = manager.engine().query(cm::ConnectionId{object.id})) {
    one.state = text_of(info->state);
    one.service_id = info->service_id;
    one.qp_type = type_of(info->transport);
    one.qpn = info->local_qpn;
    one.peer_qpn = info->remote_qpn;
    const std::size_t port = info->primary.port;
    if (port >= 1 && port <= hca.ports.size()) one.port = &hca.ports[port - 1];
    const cm::Waiting& waiting = info->waiting;
    one.progress.state = cm::state_text(info->state);
    one.progress.waiting.times_sent = waiting.times_sent;
    one.progress.waiting.retries_left = waiting.retries_left;
    one.progress.waiting.was_delayed = waiting.was_delayed;
    one.waits_for = waits_for(info->state, waiting, what);
  }
  one.space = space_of(one.service_id);
  const auto service = cm::ip_service(one.service_id);
  if (object.kind == Kind::Listener && service) {
    one.local = any_address(Family::Ipv4, service->port);
  }
  return one;
}

}  // namespace

void list_drivers(const CmDevice& device, Instant now, std::vector<Listing>& all) {
  device.for_each_object(
      [&](const CmObject& object, const HcaCm& manager, const ServiceUser& owner) {
        all.push_back(listing_of(object, manager, owner, now));
      });
}

}  // namespace ib::services::rdma_cm
