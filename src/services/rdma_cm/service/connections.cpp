// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "services/rdma_cm/service/connections.h"

#include "services/rdma_cm/addresses/interface_places.h"
#include "services/rdma_cm/service/queries.h"
#include "services/rdma_cm/words/words.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace ib::services::rdma_cm {
namespace {

using ucma::Event;
using Stage = Connection::Stage;

constexpr std::uint8_t kMostRetries = 7;  // three bits

std::span<const std::uint8_t> private_data_of(const ucma::ConnParam& param) {
  return std::span(param.private_data).first(param.private_data_len);
}

// Ids with AF_IB addresses have all of the private data for themselves.
std::size_t header_of(const Id& id) {
  return id.source.family == Family::Ib ? 0 : kIpHeaderBytes;
}

// The header of the IP CM, then the program's own.
Bytes with_header(const Id& id, std::span<const std::uint8_t> own) {
  if (header_of(id) == 0) return {own.begin(), own.end()};
  Bytes bytes(kIpHeaderBytes + own.size());
  write_ip_header({id.source.family, id.source.port, id.source.ip, id.destination.ip},
                  std::span(bytes).first<kIpHeaderBytes>());
  std::copy(own.begin(), own.end(), bytes.begin() + kIpHeaderBytes);
  return bytes;
}

// A receiver gets the whole field of the message, filled with zeros.
template <class Param>
void put_private_data(Param& param, std::span<const std::uint8_t> data, std::size_t field) {
  const std::size_t size = std::min({data.size(), field, param.private_data.size()});
  std::copy_n(data.begin(), size, param.private_data.begin());
  param.private_data_len = static_cast<std::uint8_t>(std::min<std::size_t>(field, 255));
}

// Takes over what a REQ or REP says of its sender, whose resources are the depth here and the other
// way round. Returns it as its event has it.
template <class Message>
ucma::ConnParam take_over(const Message& message, Connection& connection) {
  connection.remote_qpn = message.qpn;
  connection.send_psn = message.starting_psn;
  connection.initiator_depth = message.responder_resources;
  connection.responder_resources = message.initiator_depth;
  connection.rnr_retry_count = message.rnr_retry_count;
  ucma::ConnParam param;
  param.qp_num = message.qpn;
  param.responder_resources = message.initiator_depth;
  param.initiator_depth = message.responder_resources;
  param.flow_control = message.flow_control ? 1 : 0;
  param.rnr_retry_count = message.rnr_retry_count;
  param.srq = message.srq ? 1 : 0;
  return param;
}

template <class Param>
void put_param(ucma::EventOut& out, const Param& param) {
  static_assert(sizeof param <= sizeof out.param);
  std::memcpy(out.param.data(), &param, sizeof param);
}

Error error_of(Status status) {
  if (status == Status::Ok) return Error::None;
  if (status == Status::InsufficientResources || status == Status::LimitExceeded) {
    return Error::NoMemory;
  }
  const bool gone = status == Status::DeviceRemoved || status == Status::NotFound;
  return gone ? Error::NoDevice : Error::Invalid;
}

// A request, by rdma_reject.
Error answered(Id& id, Status status) {
  if (status == Status::Ok) id.is_answered = true;
  return error_of(status);
}

}  // namespace

Connections::Connections(const fabric::Fabric& fabric, Connector& connector, const PortTable& ports,
                         IdTable& ids, const FailureTrace& trace, FindOwner find_owner)
    : fabric_(fabric),
      connector_(connector),
      ports_(ports),
      ids_(ids),
      trace_(trace),
      find_owner_(std::move(find_owner)) {
  connector_.set_handler(this);
}

Progress Connections::progress(const Id& id) const {
  return id.endpoint != 0 ? connector_.progress(id.endpoint) : Progress{};
}

void Connections::drop(const Id& id) {
  if (id.endpoint == 0) return;
  by_endpoint_.erase(id.endpoint);
  connector_.drop(id.endpoint);
}

Id* Connections::find(Endpoint endpoint) const {
  const auto at = by_endpoint_.find(endpoint);
  return at == by_endpoint_.end() ? nullptr : at->second;
}

// A number that is no queue pair's, as programs give that only connect, holds none: the queue pair
// that gets the number later can be connected.
Error Connections::check_queue_pair(const Id& id, std::string_view call, std::uint32_t qpn,
                                    bool& has_queue_pair) const {
  if (!find_owner_ || id.port == nullptr) return Error::None;
  const auto owner = find_owner_(*fabric_.hca_of(*id.port), qpn, id.file->options.pid);
  has_queue_pair = owner == QueuePairOwner::Caller;
  if (owner != QueuePairOwner::Other) return Error::None;
  trace_.report_foreign_queue_pair(id, call, qpn);
  return Error::Invalid;
}

Error Connections::connect(Id& id, const ucma::ConnParam& param) {
  if (id.state != IdState::RouteResolved || !id.path) return Error::Invalid;
  ConnectRequest request;
  const Error owner = check_queue_pair(id, "rdma_connect", param.qp_num, request.has_queue_pair);
  if (owner != Error::None) return owner;
  if (id.qp_type == verbs::QpType::Ud) return connect_datagram(id, param);
  const auto own = private_data_of(param);
  if (own.size() + header_of(id) > kReqPrivate) {
    trace_.report_private_data(id, "rdma_connect", own.size(), kReqPrivate - header_of(id));
    return Error::Invalid;
  }
  id.qp_num = param.qp_num;
  id.srq = param.srq != 0;
  request.service_id = service_id(id.space, id.destination);
  request.path = *id.path;
  request.qp_type = id.qp_type;
  request.qpn = id.qp_num;
  request.starting_psn = id.psn;
  request.responder_resources = param.responder_resources;
  request.initiator_depth = param.initiator_depth;
  request.flow_control = param.flow_control != 0;
  request.retry_count = std::min(kMostRetries, param.retry_count);
  request.rnr_retry_count = std::min(kMostRetries, param.rnr_retry_count);
  request.srq = id.srq;
  request.private_data = with_header(id, own);
  const Result<Endpoint> made = connector_.connect(*id.port, request);
  if (!made) return error_of(made.error());
  id.endpoint = *made;
  by_endpoint_[id.endpoint] = &id;
  id.connection.stage = Stage::ReqSent;
  id.connection.responder_resources = request.responder_resources;
  id.connection.initiator_depth = request.initiator_depth;
  id.connection.retry_count = request.retry_count;
  id.connection.rnr_retry_count = request.rnr_retry_count;
  id.state = IdState::Connect;
  return Error::None;
}

Error Connections::connect_datagram(Id& id, const ucma::ConnParam& param) {
  const auto own = private_data_of(param);
  if (own.size() + header_of(id) > kSidrReqPrivate) {
    trace_.report_private_data(id, "rdma_connect", own.size(), kSidrReqPrivate - header_of(id));
    return Error::Invalid;
  }
  id.qp_num = param.qp_num;
  DatagramRequest request;
  request.service_id = service_id(id.space, id.destination);
  request.path = *id.path;
  request.private_data = with_header(id, own);
  const Result<Endpoint> made = connector_.connect(*id.port, request);
  if (!made) return error_of(made.error());
  id.endpoint = *made;
  by_endpoint_[id.endpoint] = &id;
  id.state = IdState::Connect;
  return Error::None;
}

// REP or SIDR_REP of the passive side; RTU of the active one, which has no parameters.
Error Connections::accept(Id& id, std::uint64_t uid, const ucma::ConnParam& param) {
  if (id.state != IdState::Connect || id.endpoint == 0) return Error::Invalid;
  Error error = Error::Invalid;
  if (param.valid != 0) {
    error = reply(id, param);
  } else if (id.connection.stage == Stage::RepReceived) {
    error = error_of(connector_.make_ready(id.endpoint));
    if (error == Error::None) id.connection.stage = Stage::Established;
  }
  if (error == Error::None) {
    if (param.valid != 0) id.uid = uid;
    id.is_answered = true;
    return error;
  }
  if (!id.is_answered) trace_.note_failed_accept(id);
  id.is_answered = true;
  static_cast<void>(connector_.reject(id.endpoint, rej::kConsumerDefined, {}));
  return error;
}

Error Connections::reply(Id& id, const ucma::ConnParam& param) {
  const auto own = private_data_of(param);
  ConnectReply reply;
  const Error owner = check_queue_pair(id, "rdma_accept", param.qp_num, reply.has_queue_pair);
  if (owner != Error::None) return owner;
  id.qp_num = param.qp_num;
  id.srq = param.srq != 0;
  if (id.qp_type == verbs::QpType::Ud) {
    if (own.size() > kSidrRepPrivate) {
      trace_.report_private_data(id, "rdma_accept", own.size(), kSidrRepPrivate);
      return Error::Invalid;
    }
    id.qkey = param.qkey != 0 ? param.qkey : kUdpQkey;
    return error_of(connector_.reply(id.endpoint, DatagramReply{sidr::kSuccess, id.qp_num, id.qkey,
                                                                Bytes(own.begin(), own.end())}));
  }
  if (id.connection.stage != Stage::ReqReceived) return Error::Invalid;
  if (own.size() > kRepPrivate) {
    trace_.report_private_data(id, "rdma_accept", own.size(), kRepPrivate);
    return Error::Invalid;
  }
  reply.qpn = id.qp_num;
  reply.starting_psn = id.psn;
  reply.responder_resources = param.responder_resources;
  reply.initiator_depth = param.initiator_depth;
  reply.flow_control = param.flow_control != 0;
  reply.rnr_retry_count = std::min(kMostRetries, param.rnr_retry_count);
  reply.srq = id.srq;
  reply.private_data.assign(own.begin(), own.end());
  const Error error = error_of(connector_.reply(id.endpoint, reply));
  if (error != Error::None) return error;
  id.connection.stage = Stage::RepSent;
  id.connection.responder_resources = reply.responder_resources;
  id.connection.initiator_depth = reply.initiator_depth;
  return Error::None;
}

Error Connections::reject(Id& id, const ucma::Reject& in) {
  if (id.endpoint == 0) return Error::Invalid;
  const auto own = std::span(in.private_data).first(in.private_data_len);
  if (id.qp_type == verbs::QpType::Ud) {
    if (own.size() > kSidrRepPrivate) {
      trace_.report_private_data(id, "rdma_reject", own.size(), kSidrRepPrivate);
      return Error::Invalid;
    }
    const DatagramReply reply{sidr::kRejected, 0, 0, Bytes(own.begin(), own.end())};
    return answered(id, connector_.reply(id.endpoint, reply));
  }
  if (own.size() > kRejPrivate) {
    trace_.report_private_data(id, "rdma_reject", own.size(), kRejPrivate);
    return Error::Invalid;
  }
  return answered(id, connector_.reject(id.endpoint, in.reason, Bytes(own.begin(), own.end())));
}

// Succeeds on Linux however far the connection is; if there is nothing to end, nothing is sent.
Error Connections::disconnect(const Id& id) {
  if (id.endpoint == 0) return Error::Invalid;
  static_cast<void>(connector_.disconnect(id.endpoint));
  return Error::None;
}

// The program has seen an asynchronous event of the queue pair.
Error Connections::notify(Id& id, std::uint32_t event) {
  if (id.endpoint == 0 || id.port == nullptr) return Error::Invalid;
  if (event != static_cast<std::uint32_t>(verbs::EventType::CommEst)) return Error::Invalid;
  const Status status = connector_.notify_established(id.endpoint);
  return status == Status::AlreadyExists ? Error::IsConnected : error_of(status);
}

Id* Connections::find_listener(const Arrival& arrival) const {
  const std::uint32_t node = index_of(fabric_, *arrival.node);
  const PortOwner* owner = nullptr;
  if (arrival.is_ip) owner = ports_.find_listener(node, arrival.space, arrival.wanted);
  if (owner == nullptr) owner = ports_.find_listener(node, arrival.space, arrival.at);
  return owner == nullptr ? nullptr : &ids_.at(owner->id);
}

// Returns nullptr if the listener has no room for it.
Id* Connections::add_connection(Id& listener, const Arrival& arrival, Endpoint endpoint,
                                const fabric::Port& port, const Path& path) {
  listener.file->events.note_taken();
  const bool is_full = !listener.requests.has_seat(arrival.sender);
  if (is_full || !IdTable::has_room(*listener.file)) {
    trace_.report_no_room(arrival, listener, is_full);
    return nullptr;
  }
  listener.requests.enter(arrival.sender);
  Id& id = ids_.make(*listener.file);
  const bool is_ib = listener.source.family == Family::Ib;
  id.space = listener.space;
  id.port_space = arrival.space;
  id.source = is_ib ? arrival.at : arrival.wanted;
  if (!is_ib && interface_owner(fabric_, id.source) != nullptr) id.pkey = arrival.at.pkey;
  id.destination = is_ib ? arrival.from : arrival.peer;
  id.port = &port;
  id.path = path;
  id.sender = arrival.sender;
  id.tos = listener.tos;
  id.ack_timeout = listener.ack_timeout;
  id.af_only = listener.af_only;
  id.endpoint = endpoint;
  id.state = IdState::Connect;
  by_endpoint_[endpoint] = &id;
  return &id;
}

void Connections::on_request(Endpoint endpoint, const fabric::Port& port,
                             const ConnectRequest& request) {
  Arrival arrival;
  arrival.sender = request.sender;
  const bool valid =
      read_arrival(fabric_, port, request.service_id, request.path, request.private_data, arrival);
  Id* const listener = valid ? find_listener(arrival) : nullptr;
  if (listener == nullptr || listener->qp_type == verbs::QpType::Ud) {
    if (valid) trace_.report_no_listener(arrival);
    static_cast<void>(connector_.reject(endpoint, rej::kInvalidServiceId, {}));
    return connector_.drop(endpoint);
  }
  Id* const id = add_connection(*listener, arrival, endpoint, port, request.path);
  if (id == nullptr) {
    static_cast<void>(connector_.reject(endpoint, rej::kConsumerDefined, {}));
    return connector_.drop(endpoint);
  }
  id->qp_type = request.qp_type;
  Connection& connection = id->connection;
  connection.stage = Stage::ReqReceived;
  connection.retry_count = request.retry_count;
  ucma::ConnParam param = take_over(request, connection);
  param.retry_count = request.retry_count;
  const std::size_t header = header_of(*listener);
  put_private_data(param, std::span(request.private_data).subspan(header), kReqPrivate - header);
  PendingEvent event;
  event.request = id;
  event.out.event = Event::ConnectRequest;
  put_param(event.out, param);
  queue(*listener, event);
}

void Connections::on_datagram_request(Endpoint endpoint, const fabric::Port& port,
                                      const DatagramRequest& request) {
  const auto refuse = [&](std::uint32_t status) {
    static_cast<void>(connector_.reply(endpoint, DatagramReply{status, 0, 0, {}}));
    connector_.drop(endpoint);
  };
  Arrival arrival;
  arrival.sender = request.sender;
  const bool valid =
      read_arrival(fabric_, port, request.service_id, request.path, request.private_data, arrival);
  Id* const listener = valid ? find_listener(arrival) : nullptr;
  if (listener == nullptr || listener->qp_type != verbs::QpType::Ud) {
    if (valid) trace_.report_no_listener(arrival);
    return refuse(sidr::kUnsupported);
  }
  Id* const id = add_connection(*listener, arrival, endpoint, port, request.path);
  if (id == nullptr) return refuse(sidr::kRejected);
  id->qp_type = verbs::QpType::Ud;
  ucma::UdParam param;
  const std::size_t header = header_of(*listener);
  put_private_data(param, std::span(request.private_data).subspan(header),
                   kSidrReqPrivate - header);
  PendingEvent event;
  event.request = id;
  event.out.event = Event::ConnectRequest;
  put_param(event.out, param);
  queue(*listener, event);
}

void Connections::on_reply(Endpoint endpoint, const ConnectReply& reply) {
  Id* const id = find(endpoint);
  if (id == nullptr || id->state != IdState::Connect) return;
  Connection& connection = id->connection;
  connection.stage = Stage::RepReceived;
  ucma::ConnParam param = take_over(reply, connection);
  put_private_data(param, reply.private_data, kRepPrivate);
  PendingEvent event;
  event.out.event = Event::ConnectResponse;
  put_param(event.out, param);
  queue(*id, event);
}

void Connections::on_datagram_reply(Endpoint endpoint, const DatagramReply& reply) {
  Id* const id = find(endpoint);
  if (id == nullptr || id->state != IdState::Connect) return;
  PendingEvent event;
  ucma::UdParam param;
  put_private_data(param, reply.private_data, kSidrRepPrivate);
  if (reply.status == sidr::kSuccess) {
    id->qkey = reply.qkey != 0 ? reply.qkey : kUdpQkey;
    param.qp_num = reply.qpn;
    param.qkey = reply.qkey;
    param.ah_attr = ah_attr_of(address_vector(*id->path));
    event.out.event = Event::Established;
  } else {
    trace_.report_datagram_refusal(*id, reply.status);
    event.out.event = Event::Unreachable;
    event.out.status = reply.status;
  }
  put_param(event.out, param);
  queue(*id, event);
}

void Connections::on_ready(Endpoint endpoint) {
  Id* const id = find(endpoint);
  if (id == nullptr || id->state != IdState::Connect) return;
  id->connection.stage = Stage::Established;
  queue(*id, Event::Established, 0);
}

void Connections::on_rejected(Endpoint endpoint, std::uint16_t reason, const Bytes& private_data) {
  Id* const id = find(endpoint);
  if (id == nullptr || id->state != IdState::Connect) return;
  id->connection.stage = Stage::Over;
  if (id->uid != 0) trace_.report_rejection(*id, reason);  // else nobody waits for it
  ucma::ConnParam param;
  put_private_data(param, private_data, kRejPrivate);
  PendingEvent event;
  event.out.event = Event::Rejected;
  event.out.status = reason;
  put_param(event.out, param);
  queue(*id, event);
}

void Connections::on_unreachable(Endpoint endpoint, const Unanswered& message) {
  Id* const id = find(endpoint);
  if (id == nullptr || id->state != IdState::Connect) return;
  id->connection.stage = Stage::Over;
  trace_.report_no_answer(*id, message);
  queue(*id, Event::Unreachable, ucma::negative(Error::TimedOut));
}

void Connections::on_disconnected(Endpoint endpoint, bool timed_out) {
  Id* const id = find(endpoint);
  if (id == nullptr || id->state != IdState::Connect) return;
  id->state = IdState::Disconnect;
  id->connection.stage = Stage::Over;
  if (timed_out) trace_.report_no_answer(*id, {Unanswered::Kind::Dreq});
  queue(*id, Event::Disconnected, timed_out ? ucma::negative(Error::TimedOut) : 0);
}

void Connections::on_timewait_over(Endpoint endpoint) {
  Id* const id = find(endpoint);
  if (id == nullptr || id->state != IdState::Disconnect) return;
  queue(*id, Event::TimewaitExit, 0);
}

void Connections::on_hca_gone(const fabric::Hca& hca) {
  std::vector<std::uint32_t> gone;
  for (const auto& [number, id] : ids_.ids()) {
    if (id->port != nullptr && fabric_.hca_of(*id->port) == &hca) gone.push_back(number);
  }
  std::sort(gone.begin(), gone.end());
  for (const std::uint32_t number : gone) {
    Id& id = ids_.at(number);
    if (id.state == IdState::DeviceRemoval) continue;
    id.state = IdState::DeviceRemoval;
    queue(id, ucma::Event::DeviceRemoval, 0);
  }
}

// As Linux reports that a bonded interface has another port now: to each id on the old port, once.
void Connections::on_ports_changed(const fabric::Hca& hca) {
  std::vector<std::uint32_t> moved;
  for (auto& [number, id] : ids_.ids()) {
    if (id->port == nullptr || fabric_.hca_of(*id->port) != &hca) continue;
    if (id->state == IdState::DeviceRemoval) continue;
    // An interface has its addresses at one port; only a bond would take them to another.
    if (id->pkey != 0) continue;
    const bool was = std::exchange(
        id->has_moved, has_moved(fabric_, fabric_.nodes()[id->node], id->source, *id->port));
    if (id->has_moved && !was && id->events.size() < EventQueue::kMaxUnread)
      moved.push_back(number);
  }
  std::sort(moved.begin(), moved.end());
  for (const std::uint32_t number : moved) queue(ids_.at(number), ucma::Event::AddrChange, 0);
}

}  // namespace ib::services::rdma_cm
