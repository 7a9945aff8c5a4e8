// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// MADs and events of the engines: what goes out, what has come, and when the next thing is due.
#include "services/rdma_cm/cm_connector.h"
#include "services/rdma_cm/cm_forms.h"

#include <cstring>
#include <utility>
#include <variant>

namespace ib::services::rdma_cm {
namespace {

constexpr Duration kFullRetry = std::chrono::milliseconds(1);
// MADs that wait for room; the communication manager sends again what is lost.
constexpr std::size_t kMostUnsent = 16384;

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

verbs::QpType qp_type_of(cm::Transport transport) {
  switch (transport) {
    case cm::Transport::Rc: break;
    case cm::Transport::Uc: return verbs::QpType::Uc;
    case cm::Transport::Xrc: return verbs::QpType::XrcRecv;
  }
  return verbs::QpType::Rc;
}

}  // namespace

void CmConnector::on_message(const GsiMessage& message) {
  mad::Mad mad{};
  if (message.bytes.size() != mad.size()) return;
  std::memcpy(mad.data(), message.bytes.data(), mad.size());
  const fabric::Port* port = fabric_.graph().port(message.from.port);
  if (port == nullptr) return;
  Manager& manager = manager_of(*port);
  manager.engine->receive(mad, from_gsi(message.from, *port), executor_.now());
  pump(manager);
}

// The addresses of a port change with its events; an HCA that is gone takes its ids along.
void CmConnector::on_port(const GsiPortEvent& event) {
  const fabric::Port* port = fabric_.graph().port(event.port);
  if (port == nullptr) return;
  const auto at = managers_.find(port->element);
  if (at != managers_.end()) set_ports(at->second);
  const fabric::Hca* hca = fabric_.hca_of(*port);
  later([hca](Handler& handler) {
    hca->present ? handler.on_ports_changed(*hca) : handler.on_hca_gone(*hca);
  });
}

Status CmConnector::send(const Manager& manager, const cm::OutgoingMad& mad) {
  if (mad.to.port == 0 || mad.to.port > manager.hca->ports.size()) return Status::InvalidParameter;
  const fabric::Port& port = manager.hca->ports[mad.to.port - 1u];
  return gsi_.send(agent_, to_gsi(mad.to, port, fabric_.graph().index_of(port)), mad.mad);
}

void CmConnector::send_mads(Manager& manager) {
  while (auto mad = manager.engine->poll_mad()) {
    if (manager.unsent.size() < kMostUnsent) manager.unsent.push_back(*std::move(mad));
  }
  while (!manager.unsent.empty()) {
    if (send(manager, manager.unsent.front()) == Status::LimitExceeded) return;
    manager.unsent.pop_front();  // what cannot be sent is lost, as on a link that is down
  }
}

// After each call of the engine.
void CmConnector::pump(Manager& manager) {
  while (auto event = manager.engine->poll_event()) deliver(manager, *std::move(event));
  send_mads(manager);
  auto due = manager.engine->deadline();
  if (!manager.unsent.empty()) {
    const Instant soon = executor_.now() + kFullRetry;
    due = due ? std::min(*due, soon) : soon;
  }
  manager.timer.reset();
  if (!due) return;
  manager.timer = executor_.at(*due, [this, &manager] {
    manager.engine->on_time(executor_.now());
    pump(manager);
  });
}

void CmConnector::later(std::function<void(Handler&)> work) {
  executor_.post([this, alive = alive_, work = std::move(work)] {
    if (*alive && handler_ != nullptr) work(*handler_);
  });
}

// Those of an endpoint that is gone have no receiver.
void CmConnector::deliver(Manager& manager, cm::Event event) {
  const auto tell = [&](Endpoint endpoint, auto function) {
    if (endpoint == 0) return;
    later([this, endpoint, function](Handler& handler) {
      if (find(endpoint) != nullptr) function(handler, endpoint);
    });
  };
  const auto disconnected = [](bool timed_out) {
    return [timed_out](Handler& h, Endpoint e) { h.on_disconnected(e, timed_out); };
  };
  const auto unreachable = [](Handler& h, Endpoint e) { h.on_unreachable(e); };
  std::visit(Overload{
                 [&](const cm::RequestReceived& one) { take(manager, one); },
                 [&](const cm::ReplyReceived& one) { take(manager, one); },
                 [&](const cm::Rejected& one) { take(manager, one); },
                 [&](const cm::SidrRequested& one) { take(manager, one); },
                 [&](const cm::SidrAnswered& one) { take(manager, one); },
                 [&](const cm::Established& one) {
                   tell(of(manager, one.id), [](Handler& h, Endpoint e) { h.on_ready(e); });
                 },
                 [&](const cm::TimedOut& one) { tell(of(manager, one.id), unreachable); },
                 [&](const cm::SidrTimedOut& one) { tell(of(manager, one.id), unreachable); },
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

void CmConnector::take(Manager& manager, const cm::RequestReceived& event) {
  const Endpoint endpoint = add(manager, false);
  bind(endpoint, static_cast<std::uint32_t>(event.id));
  delay(manager, event.id);
  const std::size_t number = event.primary.port;
  const fabric::Port* port = number >= 1 && number <= manager.hca->ports.size()
                                 ? &manager.hca->ports[number - 1]
                                 : nullptr;
  if (port == nullptr) return drop(endpoint);
  ConnectRequest request;
  request.service_id = event.service_id;
  request.path = from_cm(event.primary, *port, event.path_mtu);
  request.qp_type = qp_type_of(event.transport);
  request.qpn = event.remote_qpn;
  request.starting_psn = event.starting_psn;
  request.responder_resources = event.responder_resources;
  request.initiator_depth = event.initiator_depth;
  request.retry_count = event.retry_count;
  request.rnr_retry_count = event.rnr_retry_count;
  request.flow_control = event.flow_control;
  request.srq = event.srq;
  request.private_data = bytes_in(event.private_data);
  later([this, endpoint, port, request = std::move(request)](Handler& handler) {
    if (find(endpoint) != nullptr) handler.on_request(endpoint, *port, request);
  });
}

void CmConnector::take(Manager& manager, const cm::ReplyReceived& event) {
  const Endpoint endpoint = of(manager, event.id);
  delay(manager, event.id);
  ConnectReply reply;
  reply.qpn = event.remote_qpn;
  reply.starting_psn = event.starting_psn;
  reply.responder_resources = event.responder_resources;
  reply.initiator_depth = event.initiator_depth;
  reply.rnr_retry_count = event.rnr_retry_count;
  reply.flow_control = event.flow_control;
  reply.srq = event.srq;
  reply.private_data = bytes_in(event.private_data);
  later([this, endpoint, reply = std::move(reply)](Handler& handler) {
    if (find(endpoint) != nullptr) handler.on_reply(endpoint, reply);
  });
}

void CmConnector::take(Manager& manager, const cm::Rejected& event) {
  const Endpoint endpoint = of(manager, event.id);
  const auto reason = static_cast<std::uint16_t>(event.reason);
  later([this, endpoint, reason, data = bytes_in(event.private_data)](Handler& handler) {
    if (find(endpoint) != nullptr) handler.on_rejected(endpoint, reason, data);
  });
}

void CmConnector::take(Manager& manager, const cm::SidrRequested& event) {
  const Endpoint endpoint = add(manager, true);
  bind(endpoint, static_cast<std::uint32_t>(event.id));
  const std::size_t number = event.source.port;
  const fabric::Port* port = number >= 1 && number <= manager.hca->ports.size()
                                 ? &manager.hca->ports[number - 1]
                                 : nullptr;
  if (port == nullptr) return drop(endpoint);
  DatagramRequest request;
  request.service_id = event.service_id;
  request.path = path_to(event.source, *port);
  request.private_data = bytes_in(event.private_data);
  later([this, endpoint, port, request = std::move(request)](Handler& handler) {
    if (find(endpoint) != nullptr) handler.on_datagram_request(endpoint, *port, request);
  });
}

void CmConnector::take(Manager& manager, const cm::SidrAnswered& event) {
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
