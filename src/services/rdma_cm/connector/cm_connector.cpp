// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The calls of the service: what they are for the engine.
#include "services/rdma_cm/connector/cm_connector.h"

#include "cm/same_fields.h"
#include "services/cm/gsi_forms.h"
#include "services/rdma_cm/addresses/ip_cm.h"
#include "services/rdma_cm/connector/cm_forms.h"

#include <utility>

namespace ib::services::rdma_cm {
namespace {

// A program may take 69 s to answer a request or a reply: an MRA says so, as Linux does, when the
// message comes again.
constexpr std::uint8_t kServiceTimeout = 24;

}  // namespace

std::vector<std::uint64_t> ip_services() {
  std::vector<std::uint64_t> all;
  for (const PortSpace space : kPortSpaces) all.push_back(service_id(space, 0));
  return all;
}

CmConnector::CmConnector(CmService& service, std::vector<std::uint64_t> services)
    : service_(service), services_(std::move(services)) {
  service_.add(*this);
}

CmConnector::~CmConnector() {
  *alive_ = false;
  service_.remove(*this);
}

// All services of this kind, on every HCA.
void CmConnector::on_manager(HcaCm& manager) {
  for (const std::uint64_t service : services_) {
    cm::Listen listen;
    listen.service_id = service;
    listen.service_mask = ~kServicePortMask;
    listen.backlog = 0;
    listen.is_fallback = true;  // a kernel client may have one of the ports
    const bool listens = manager.listen(*this, listen).has_value();
    IB_ASSERT(listens);  // port spaces differ, and nobody else has them
  }
}

void CmConnector::prepare(const fabric::Node& node) {
  service_.open(node, [](Status, const std::string&) {});
}

Endpoint CmConnector::add(HcaCm& manager, bool is_datagram) {
  const Endpoint endpoint = ++last_;
  ends_[endpoint] = {&manager, is_datagram, 0, false};
  return endpoint;
}

void CmConnector::bind(Endpoint endpoint, std::uint32_t id) {
  End& end = ends_.at(endpoint);
  end.id = id;
  end.has_begun = true;
  Endpoints& all = endpoints_[end.manager];
  (end.is_datagram ? all.datagrams : all.connections)[id] = endpoint;
}

CmConnector::End* CmConnector::find(Endpoint endpoint) {
  const auto at = ends_.find(endpoint);
  return at == ends_.end() ? nullptr : &at->second;
}

Endpoint CmConnector::of(const HcaCm& manager, cm::ConnectionId id) const {
  const auto all = endpoints_.find(&manager);
  if (all == endpoints_.end()) return 0;
  const auto at = all->second.connections.find(static_cast<std::uint32_t>(id));
  return at == all->second.connections.end() ? 0 : at->second;
}

Endpoint CmConnector::of(const HcaCm& manager, cm::SidrId id) const {
  const auto all = endpoints_.find(&manager);
  if (all == endpoints_.end()) return 0;
  const auto at = all->second.datagrams.find(static_cast<std::uint32_t>(id));
  return at == all->second.datagrams.end() ? 0 : at->second;
}

// Sends a request once both nodes are open; the endpoint may have been dropped by then.
Result<Endpoint> CmConnector::begin(const fabric::Port& from, const Path& path, bool is_datagram,
                                    std::function<Result<std::uint32_t>(HcaCm&)> send) {
  HcaCm& manager = service_.manager_of(*service_.fabric().hca_of(from));
  const Endpoint endpoint = add(manager, is_datagram);
  const auto go = [this, endpoint, send = std::move(send)](Status, const std::string&) {
    const End* end = find(endpoint);
    if (end == nullptr) return;
    const Result<std::uint32_t> id = send(*end->manager);
    if (id) return bind(endpoint, *id);
    Unanswered message;
    message.status = id.error();
    later([this, endpoint, message](Handler& handler) {
      if (find(endpoint) != nullptr) handler.on_unreachable(endpoint, message);
    });
  };
  const Status leads = service_.open(manager.hca(), to_cm(path), go);
  if (leads == Status::Ok) return endpoint;
  ends_.erase(endpoint);
  return leads;
}

Result<Endpoint> CmConnector::connect(const fabric::Port& from, const ConnectRequest& request) {
  return begin(from, request.path, false, [this, request](HcaCm& manager) {
    cm::ConnectRequest out;
    cm::copy_request_terms(request, out);
    out.primary = to_cm(request.path);
    out.transport = transport_of(request.qp_type);
    out.qpn = request.qpn;
    out.has_queue_pair = request.has_queue_pair;
    out.path_mtu = request.path.mtu;
    out.private_data = request.private_data;
    const auto made = manager.connect(*this, out);
    return made ? Result<std::uint32_t>(static_cast<std::uint32_t>(*made)) : made.error();
  });
}

Result<Endpoint> CmConnector::connect(const fabric::Port& from, const DatagramRequest& request) {
  return begin(from, request.path, true, [this, request](HcaCm& manager) {
    cm::SidrRequest out;
    out.service_id = request.service_id;
    out.path = to_cm(request.path);
    out.private_data = request.private_data;
    const auto made = manager.resolve_sidr(*this, out);
    return made ? Result<std::uint32_t>(static_cast<std::uint32_t>(*made)) : made.error();
  });
}

Progress CmConnector::progress(Endpoint endpoint) const {
  const auto at = ends_.find(endpoint);
  if (at == ends_.end() || !at->second.has_begun) return {};
  const End& end = at->second;
  const cm::Engine& engine = end.manager->engine();
  if (end.is_datagram) {
    const cm::Waiting waiting = engine.waiting(cm::SidrId{end.id});
    if (waiting.times_sent == 0) return {};
    return {"SIDR_REQ sent", unanswered(Unanswered::Kind::SidrReq, waiting)};
  }
  const Result<cm::ConnectionInfo> info = engine.query(cm::ConnectionId{end.id});
  if (!info) return {};
  return {cm::state_text(info->state), unanswered(kind_of(info->state), info->waiting)};
}

Status CmConnector::act(Endpoint endpoint,
                        const std::function<Status(cm::Engine&, cm::ConnectionId, Instant)>& call) {
  const End* end = find(endpoint);
  if (end == nullptr || !end->has_begun || end->is_datagram) return Status::InvalidState;
  return end->manager->act([&](cm::Engine& engine, Instant now) {
    return call(engine, cm::ConnectionId{end->id}, now);
  });
}

Status CmConnector::reply(Endpoint endpoint, const ConnectReply& reply) {
  return act(endpoint, [&](cm::Engine& engine, cm::ConnectionId id, Instant now) {
    cm::Reply out;
    cm::copy_terms(reply, out);
    out.qpn = reply.qpn;
    out.has_queue_pair = reply.has_queue_pair;
    out.private_data = reply.private_data;
    return engine.accept(id, out, now);
  });
}

Status CmConnector::reply(Endpoint endpoint, const DatagramReply& reply) {
  const End* end = find(endpoint);
  if (end == nullptr || !end->has_begun || !end->is_datagram) return Status::InvalidState;
  cm::SidrReply out;
  out.status = static_cast<cm::SidrStatus>(reply.status);
  out.qpn = reply.qpn;
  out.qkey = reply.qkey;
  out.private_data = reply.private_data;
  return end->manager->act([&](cm::Engine& engine, Instant now) {
    return engine.answer_sidr(cm::SidrId{end->id}, out, now);
  });
}

Status CmConnector::make_ready(Endpoint endpoint) {
  return act(endpoint, [&](cm::Engine& engine, cm::ConnectionId id, Instant now) {
    return engine.establish(id, {}, now);
  });
}

Status CmConnector::notify_established(Endpoint endpoint) {
  return act(endpoint, [&](cm::Engine& engine, cm::ConnectionId id, Instant now) {
    const Result<cm::ConnectionInfo> info = engine.query(id);
    const bool is_established = info && info->state == cm::State::Established;
    return is_established ? Status::AlreadyExists : engine.data_has_arrived(id, now);
  });
}

Status CmConnector::reject(Endpoint endpoint, std::uint16_t reason, const Bytes& private_data) {
  return act(endpoint, [&](cm::Engine& engine, cm::ConnectionId id, Instant now) {
    cm::Reject out;
    out.reason = static_cast<cm::RejectReason>(reason);
    out.private_data = private_data;
    return engine.reject(id, out, now);
  });
}

Status CmConnector::disconnect(Endpoint endpoint) {
  return act(endpoint, [&](cm::Engine& engine, cm::ConnectionId id, Instant now) {
    const Status status = engine.disconnect(id, {}, now);
    if (status != Status::InvalidState) return status;
    return engine.confirm_disconnect(id, {}, now);
  });
}

void CmConnector::drop(Endpoint endpoint) {
  const End* found = find(endpoint);
  if (found == nullptr) return;
  const End end = *found;
  ends_.erase(endpoint);
  if (!end.has_begun) return;
  Endpoints& all = endpoints_.at(end.manager);
  if (end.is_datagram) {
    all.datagrams.erase(end.id);
    end.manager->destroy(cm::SidrId{end.id});
  } else {
    all.connections.erase(end.id);
    end.manager->destroy(cm::ConnectionId{end.id});
  }
}

// A request and a reply are answered by programs, which take their time.
void CmConnector::delay(HcaCm& manager, cm::ConnectionId id) {
  static_cast<void>(manager.act([id](cm::Engine& engine, Instant now) {
    return engine.delay(id, kServiceTimeout, {}, now, /*for_copies=*/true);
  }));
}

}  // namespace ib::services::rdma_cm
