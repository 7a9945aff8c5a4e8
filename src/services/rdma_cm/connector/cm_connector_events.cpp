// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Events of the engines: what they are for the service.
#include "cm/same_fields.h"
#include "services/cm/gsi_forms.h"
#include "services/rdma_cm/connector/cm_connector.h"
#include "services/rdma_cm/connector/cm_forms.h"

#include <utility>
#include <variant>

namespace ib::services::rdma_cm {
namespace {

template <class... Functions>
struct Overload : Functions... {
  using Functions::operator()...;
};
template <class... Functions>
Overload(Functions...) -> Overload<Functions...>;

template <class Data>
Bytes bytes_in(const Data& data) {
  const auto view = data.view();
  return {view.begin(), view.end()};
}

// Returns nullptr if its HCA has no port of that number.
const fabric::Port* port_of(const HcaCm& manager, std::size_t number) {
  const auto& ports = manager.hca().ports;
  return number >= 1 && number <= ports.size() ? &ports[number - 1] : nullptr;
}

}  // namespace

void CmConnector::on_hca_gone(const fabric::Hca& hca) {
  if (handler_ != nullptr) handler_->on_hca_gone(hca);
}

void CmConnector::on_ports_changed(const fabric::Hca& hca) {
  if (handler_ != nullptr) handler_->on_ports_changed(hca);
}

void CmConnector::later(std::function<void(Handler&)> work) {
  service_.executor().post([this, alive = alive_, work = std::move(work)] {
    if (*alive && handler_ != nullptr) work(*handler_);
  });
}

// Those of an endpoint that is gone have no receiver.
void CmConnector::on_event(HcaCm& manager, const cm::Event& event) {
  const auto tell = [&](Endpoint endpoint, auto function) {
    if (endpoint == 0) return;
    later([this, endpoint, function](Handler& handler) {
      if (find(endpoint) != nullptr) function(handler, endpoint);
    });
  };
  const auto disconnected = [](bool timed_out) {
    return [timed_out](Handler& h, Endpoint e) { h.on_disconnected(e, timed_out); };
  };
  const auto unreachable = [](Unanswered message) {
    return [message](Handler& h, Endpoint e) { h.on_unreachable(e, message); };
  };
  std::visit(
      Overload{
          [&](const cm::RequestReceived& one) { take(manager, one); },
          [&](const cm::ReplyReceived& one) { take(manager, one); },
          [&](const cm::Rejected& one) { take(manager, one); },
          [&](const cm::SidrRequested& one) { take(manager, one); },
          [&](const cm::SidrAnswered& one) { take(manager, one); },
          [&](const cm::Established& one) {
            tell(of(manager, one.id), [](Handler& h, Endpoint e) { h.on_ready(e); });
          },
          [&](const cm::TimedOut& one) {
            const auto kind =
                one.message == cm::Message::Req ? Unanswered::Kind::Req : Unanswered::Kind::Rep;
            tell(of(manager, one.id),
                 unreachable({kind, one.times_sent, 0, one.was_delayed, Status::Ok}));
          },
          [&](const cm::SidrTimedOut& one) {
            tell(of(manager, one.id), unreachable({Unanswered::Kind::SidrReq, one.times_sent}));
          },
          [&](const cm::DisconnectRequested& one) {
            tell(of(manager, one.id), disconnected(false));
          },
          [&](const cm::Disconnected& one) {
            tell(of(manager, one.id), disconnected(one.by == cm::Disconnected::By::Timeout));
          },
          [&](const cm::TimeWaitEnded& one) {
            tell(of(manager, one.id), [](Handler& h, Endpoint e) { h.on_timewait_over(e); });
          },
          [](const cm::Delayed&) {},
          [](const cm::AlternatePathOffered&) {},
          [](const cm::AlternatePathAnswered&) {},
          [](const cm::AlternatePathTimedOut&) {},
      },
      event);
}

void CmConnector::take(HcaCm& manager, const cm::RequestReceived& event) {
  const Endpoint endpoint = add(manager, false);
  bind(endpoint, static_cast<std::uint32_t>(event.id));
  delay(manager, event.id);
  const fabric::Port* port = port_of(manager, event.primary.port);
  if (port == nullptr) return drop(endpoint);
  ConnectRequest request;
  request.sender = cm::peer_of(event.source);
  cm::copy_request_terms(event, request);
  request.path = from_cm(event.primary, *port, event.path_mtu);
  request.qp_type = qp_type_of(event.transport);
  request.qpn = event.remote_qpn;
  request.private_data = bytes_in(event.private_data);
  later([this, endpoint, port, request = std::move(request)](Handler& handler) {
    if (find(endpoint) != nullptr) handler.on_request(endpoint, *port, request);
  });
}

void CmConnector::take(HcaCm& manager, const cm::ReplyReceived& event) {
  const Endpoint endpoint = of(manager, event.id);
  delay(manager, event.id);
  ConnectReply reply;
  cm::copy_terms(event, reply);
  reply.qpn = event.remote_qpn;
  reply.private_data = bytes_in(event.private_data);
  later([this, endpoint, reply = std::move(reply)](Handler& handler) {
    if (find(endpoint) != nullptr) handler.on_reply(endpoint, reply);
  });
}

void CmConnector::take(HcaCm& manager, const cm::Rejected& event) {
  const Endpoint endpoint = of(manager, event.id);
  const auto reason = static_cast<std::uint16_t>(event.reason);
  later([this, endpoint, reason, data = bytes_in(event.private_data)](Handler& handler) {
    if (find(endpoint) != nullptr) handler.on_rejected(endpoint, reason, data);
  });
}

void CmConnector::take(HcaCm& manager, const cm::SidrRequested& event) {
  const Endpoint endpoint = add(manager, true);
  bind(endpoint, static_cast<std::uint32_t>(event.id));
  const fabric::Port* port = port_of(manager, event.source.port);
  if (port == nullptr) return drop(endpoint);
  DatagramRequest request;
  request.sender = cm::peer_of(event.source);
  request.service_id = event.service_id;
  request.path = path_to(event.source, *port);
  request.private_data = bytes_in(event.private_data);
  later([this, endpoint, port, request = std::move(request)](Handler& handler) {
    if (find(endpoint) != nullptr) handler.on_datagram_request(endpoint, *port, request);
  });
}

void CmConnector::take(HcaCm& manager, const cm::SidrAnswered& event) {
  const Endpoint endpoint = of(manager, event.id);
  DatagramReply reply;
  reply.status = static_cast<std::uint32_t>(event.status);
  reply.qpn = event.qpn;
  reply.qkey = event.qkey;
  reply.private_data = bytes_in(event.private_data);
  later([this, endpoint, reply = std::move(reply)](Handler& handler) {
    if (find(endpoint) != nullptr) handler.on_datagram_reply(endpoint, reply);
  });
}

}  // namespace ib::services::rdma_cm
