// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The calls of the service: what they are for the engine.
#include "services/rdma_cm/cm_connector.h"

#include "services/rdma_cm/cm_forms.h"
#include "services/rdma_cm/ip_cm.h"

#include <utility>

namespace ib::services::rdma_cm {
namespace {

constexpr std::uint8_t kCmClass = 0x07;  // ComMgt [IBA1 16.7]
constexpr std::uint8_t kCmVersion = 2;
constexpr std::uint8_t kSend = 0x03;
// A program may take 69 s to answer a request or a reply: an MRA says so, as Linux does.
constexpr std::uint8_t kServiceTimeout = 24;

cm::Transport transport_of(verbs::QpType type) {
  if (type == verbs::QpType::Uc) return cm::Transport::Uc;
  const bool xrc = type == verbs::QpType::XrcSend || type == verbs::QpType::XrcRecv;
  return xrc ? cm::Transport::Xrc : cm::Transport::Rc;
}

}  // namespace

CmConnector::CmConnector(platform::Executor& executor, const fabric::Fabric& fabric, Gsi& gsi,
                         std::function<std::uint32_t()> random)
    : executor_(executor), fabric_(fabric), gsi_(gsi), random_(std::move(random)) {
  GsiAgent agent;
  agent.name = "communication manager";
  agent.mgmt_class = kCmClass;
  agent.class_version = kCmVersion;
  agent.methods = {kSend};
  agent.on_message = [this](const GsiMessage& message) { on_message(message); };
  agent.on_port = [this](const GsiPortEvent& event) { on_port(event); };
  std::string reason;
  const Result<AgentId> added = gsi_.add_agent(std::move(agent), reason);
  IB_ASSERT(added.has_value());  // nobody else has the class
  agent_ = *added;
}

CmConnector::~CmConnector() {
  *alive_ = false;
  gsi_.remove_agent(agent_);
}

void CmConnector::set_ports(Manager& manager) {
  for (const fabric::Port& port : manager.hca->ports) {
    cm::PortFacts facts;
    facts.number = static_cast<std::uint8_t>(port.number);
    facts.lid = port.is_ethernet() ? 0 : port.lid;
    for (const fabric::GidEntry& entry : port.gids) {
      if (!verbs::is_zero(entry.gid)) facts.gids.push_back(entry.gid);
    }
    manager.engine->set_port(facts);
  }
}

CmConnector::Manager& CmConnector::manager_of(const fabric::Port& port) {
  Manager& manager = managers_[port.element];
  if (manager.engine != nullptr) return manager;
  manager.hca = fabric_.hca_of(port);
  cm::Config config;
  config.ca_guid = manager.hca->node_guid;
  config.seed = std::uint64_t{random_()} << 32 | random_();
  manager.engine = std::make_unique<cm::Engine>(config);
  set_ports(manager);
  for (const PortSpace space : kPortSpaces) {
    cm::Listen listen;
    listen.service_id = service_id(space, 0);
    listen.service_mask = ~kServicePortMask;
    listen.backlog = 0;
    const bool listens = manager.engine->listen(listen).has_value();
    IB_ASSERT(listens);  // port spaces differ, and nobody else uses the engine
  }
  return manager;
}

void CmConnector::prepare(const fabric::Node& node) {
  when_open(node, nullptr);
}

// Calls `then` at once or later, also if the node could not be opened: then nothing gets through.
void CmConnector::when_open(const fabric::Node& node, std::function<void()> then) {
  Opening& opening = openings_[&node];
  if (opening.is_open) {
    if (then) then();
    return;
  }
  if (then) opening.waiting.push_back(std::move(then));
  if (std::exchange(opening.is_under_way, true)) return;
  opening.connector = this;
  gsi_.ensure(node.name, opening.irp.start(&CmConnector::opened, &opening));
}

void CmConnector::opened(io::Irp& irp, void* context) {
  auto& opening = *static_cast<Opening*>(context);
  opening.is_under_way = false;
  opening.is_open = irp.status == Status::Ok;
  const auto waiting = std::exchange(opening.waiting, {});
  for (const auto& then : waiting) then();
}

const fabric::Node* CmConnector::peer_of(const Path& path) const {
  const fabric::Port* port = path.is_ethernet ? fabric_.graph().find_port(path.dgid)
                                              : fabric_.graph().find_port(path.dlid);
  return port == nullptr ? nullptr : &fabric_.node_of(*fabric_.hca_of(*port));
}

Endpoint CmConnector::add(Manager& manager, bool is_datagram) {
  const Endpoint endpoint = ++last_;
  ends_[endpoint] = {&manager, is_datagram, 0, false};
  return endpoint;
}

void CmConnector::bind(Endpoint endpoint, std::uint32_t id) {
  End& end = ends_.at(endpoint);
  end.id = id;
  end.has_begun = true;
  (end.is_datagram ? end.manager->datagrams : end.manager->connections)[id] = endpoint;
}

CmConnector::End* CmConnector::find(Endpoint endpoint) {
  const auto at = ends_.find(endpoint);
  return at == ends_.end() ? nullptr : &at->second;
}

Endpoint CmConnector::of(const Manager& manager, cm::ConnectionId id) const {
  const auto at = manager.connections.find(static_cast<std::uint32_t>(id));
  return at == manager.connections.end() ? 0 : at->second;
}

Endpoint CmConnector::of(const Manager& manager, cm::SidrId id) const {
  const auto at = manager.datagrams.find(static_cast<std::uint32_t>(id));
  return at == manager.datagrams.end() ? 0 : at->second;
}

// Sends a request once both nodes are open; the endpoint may have been dropped by then.
Result<Endpoint> CmConnector::begin(const fabric::Port& from, const Path& path, bool is_datagram,
                                    std::function<Result<std::uint32_t>(Manager&)> send) {
  const fabric::Node* peer = peer_of(path);
  if (peer == nullptr) return Status::NotFound;
  Manager& manager = manager_of(from);
  const Endpoint endpoint = add(manager, is_datagram);
  const auto go = [this, endpoint, send = std::move(send)] {
    const End* end = find(endpoint);
    if (end == nullptr) return;
    Manager& own = *end->manager;
    const Result<std::uint32_t> id = send(own);
    if (!id) {
      Unanswered message;
      message.status = id.error();
      return later([this, endpoint, message](Handler& handler) {
        if (find(endpoint) != nullptr) handler.on_unreachable(endpoint, message);
      });
    }
    bind(endpoint, *id);
    pump(own);
  };
  const fabric::Node& own = fabric_.node_of(*manager.hca);
  when_open(own, [this, peer, go] { when_open(*peer, go); });
  return endpoint;
}

Result<Endpoint> CmConnector::connect(const fabric::Port& from, const ConnectRequest& request) {
  return begin(from, request.path, false, [this, request](Manager& manager) {
    cm::ConnectRequest out;
    out.service_id = request.service_id;
    out.primary = to_cm(request.path);
    out.transport = transport_of(request.qp_type);
    out.qpn = request.qpn;
    out.starting_psn = request.starting_psn;
    out.responder_resources = request.responder_resources;
    out.initiator_depth = request.initiator_depth;
    out.retry_count = request.retry_count;
    out.rnr_retry_count = request.rnr_retry_count;
    out.path_mtu = request.path.mtu;
    out.srq = request.srq;
    out.flow_control = request.flow_control;
    out.private_data = request.private_data;
    const auto made = manager.engine->connect(out, executor_.now());
    return made ? Result<std::uint32_t>(static_cast<std::uint32_t>(*made)) : made.error();
  });
}

Result<Endpoint> CmConnector::connect(const fabric::Port& from, const DatagramRequest& request) {
  return begin(from, request.path, true, [this, request](Manager& manager) {
    cm::SidrRequest out;
    out.service_id = request.service_id;
    out.path = to_cm(request.path);
    out.private_data = request.private_data;
    const auto made = manager.engine->resolve_sidr(out, executor_.now());
    return made ? Result<std::uint32_t>(static_cast<std::uint32_t>(*made)) : made.error();
  });
}

Progress CmConnector::progress(Endpoint endpoint) const {
  const auto at = ends_.find(endpoint);
  if (at == ends_.end() || !at->second.has_begun) return {};
  const End& end = at->second;
  const cm::Engine& engine = *end.manager->engine;
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
                        const std::function<Status(Manager&, cm::ConnectionId)>& call) {
  const End* end = find(endpoint);
  if (end == nullptr || !end->has_begun || end->is_datagram) return Status::InvalidState;
  Manager& manager = *end->manager;
  const Status status = call(manager, cm::ConnectionId{end->id});
  pump(manager);
  return status;
}

Status CmConnector::reply(Endpoint endpoint, const ConnectReply& reply) {
  return act(endpoint, [&](Manager& manager, cm::ConnectionId id) {
    cm::Reply out;
    out.qpn = reply.qpn;
    out.starting_psn = reply.starting_psn;
    out.responder_resources = reply.responder_resources;
    out.initiator_depth = reply.initiator_depth;
    out.rnr_retry_count = reply.rnr_retry_count;
    out.srq = reply.srq;
    out.flow_control = reply.flow_control;
    out.private_data = reply.private_data;
    return manager.engine->accept(id, out, executor_.now());
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
  Manager& manager = *end->manager;
  const Status status = manager.engine->answer_sidr(cm::SidrId{end->id}, out, executor_.now());
  pump(manager);
  return status;
}

Status CmConnector::make_ready(Endpoint endpoint) {
  return act(endpoint, [&](Manager& manager, cm::ConnectionId id) {
    return manager.engine->establish(id, {}, executor_.now());
  });
}

Status CmConnector::notify_established(Endpoint endpoint) {
  return act(endpoint, [&](Manager& manager, cm::ConnectionId id) {
    return manager.engine->data_has_arrived(id, executor_.now());
  });
}

Status CmConnector::reject(Endpoint endpoint, std::uint16_t reason, const Bytes& private_data) {
  return act(endpoint, [&](Manager& manager, cm::ConnectionId id) {
    cm::Reject out;
    out.reason = static_cast<cm::RejectReason>(reason);
    out.private_data = private_data;
    return manager.engine->reject(id, out, executor_.now());
  });
}

Status CmConnector::disconnect(Endpoint endpoint) {
  return act(endpoint, [&](Manager& manager, cm::ConnectionId id) {
    const Status status = manager.engine->disconnect(id, {}, executor_.now());
    if (status != Status::InvalidState) return status;
    return manager.engine->confirm_disconnect(id, {}, executor_.now());
  });
}

void CmConnector::drop(Endpoint endpoint) {
  const End* found = find(endpoint);
  if (found == nullptr) return;
  const End end = *found;
  ends_.erase(endpoint);
  if (!end.has_begun) return;
  Manager& manager = *end.manager;
  if (end.is_datagram) {
    manager.datagrams.erase(end.id);
    manager.engine->destroy(cm::SidrId{end.id}, executor_.now());
  } else {
    manager.connections.erase(end.id);
    manager.engine->destroy(cm::ConnectionId{end.id}, executor_.now());
  }
  pump(manager);
}

// A request and a reply are answered by programs, which take their time.
void CmConnector::delay(Manager& manager, cm::ConnectionId id) {
  static_cast<void>(manager.engine->delay(id, kServiceTimeout, {}, executor_.now()));
}

}  // namespace ib::services::rdma_cm
