// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Connections: both sides of the exchange with a peer, and its end.
#include "base/big_endian.h"
#include "services/rdma_cm/addresses/places.h"
#include "services/rdma_cm/service/queries.h"
#include "services/rdma_cm/service/service.h"
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

}  // namespace

Error Service::connect(Id& id, const ucma::ConnParam& param) {
  if (id.state != IdState::RouteResolved || !id.path) return Error::Invalid;
  if (id.qp_type == verbs::QpType::Ud) return connect_datagram(id, param);
  const auto own = private_data_of(param);
  if (own.size() + header_of(id) > kReqPrivate) {
    report_private_data(id, "rdma_connect", own.size(), kReqPrivate - header_of(id));
    return Error::Invalid;
  }
  id.qp_num = param.qp_num;
  id.srq = param.srq != 0;
  ConnectRequest request;
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

Error Service::connect_datagram(Id& id, const ucma::ConnParam& param) {
  const auto own = private_data_of(param);
  if (own.size() + header_of(id) > kSidrReqPrivate) {
    report_private_data(id, "rdma_connect", own.size(), kSidrReqPrivate - header_of(id));
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
Error Service::accept(Id& id, std::uint64_t uid, const ucma::ConnParam& param) {
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
    return error;
  }
  static_cast<void>(connector_.reject(id.endpoint, rej::kConsumerDefined, {}));
  return error;
}

Error Service::reply(Id& id, const ucma::ConnParam& param) {
  const auto own = private_data_of(param);
  id.qp_num = param.qp_num;
  id.srq = param.srq != 0;
  if (id.qp_type == verbs::QpType::Ud) {
    if (own.size() > kSidrRepPrivate) {
      report_private_data(id, "rdma_accept", own.size(), kSidrRepPrivate);
      return Error::Invalid;
    }
    id.qkey = param.qkey != 0 ? param.qkey : kUdpQkey;
    DatagramReply reply{sidr::kSuccess, id.qp_num, id.qkey, Bytes(own.begin(), own.end())};
    return error_of(connector_.reply(id.endpoint, reply));
  }
  if (id.connection.stage != Stage::ReqReceived) return Error::Invalid;
  if (own.size() > kRepPrivate) {
    report_private_data(id, "rdma_accept", own.size(), kRepPrivate);
    return Error::Invalid;
  }
  ConnectReply reply;
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

Error Service::reject(Id& id, const ucma::Reject& in) {
  if (id.endpoint == 0) return Error::Invalid;
  const auto own = std::span(in.private_data).first(in.private_data_len);
  if (id.qp_type == verbs::QpType::Ud) {
    if (own.size() > kSidrRepPrivate) {
      report_private_data(id, "rdma_reject", own.size(), kSidrRepPrivate);
      return Error::Invalid;
    }
    const DatagramReply reply{sidr::kRejected, 0, 0, Bytes(own.begin(), own.end())};
    return error_of(connector_.reply(id.endpoint, reply));
  }
  if (own.size() > kRejPrivate) {
    report_private_data(id, "rdma_reject", own.size(), kRejPrivate);
    return Error::Invalid;
  }
  return error_of(connector_.reject(id.endpoint, in.reason, Bytes(own.begin(), own.end())));
}

Error Service::disconnect(Id& id) {
  if (id.endpoint == 0 || id.qp_type == verbs::QpType::Ud) return Error::Invalid;
  return error_of(connector_.disconnect(id.endpoint));
}

// The program has seen an asynchronous event of the queue pair.
Error Service::notify(Id& id, std::uint32_t event) {
  if (id.endpoint == 0 || id.port == nullptr) return Error::Invalid;
  if (event != static_cast<std::uint32_t>(verbs::EventType::CommEst)) return Error::Invalid;
  return error_of(connector_.notify_established(id.endpoint));
}

// Without the header of the IP CM, or with one that is not for this node, a request may still be
// for a program that listens with an AF_IB address.
bool Service::read_arrival(const fabric::Port& port, std::uint64_t service_id, const Path& path,
                           const Bytes& private_data, Arrival& arrival) const {
  const auto service = service_of(service_id);
  const auto header = read_ip_header(private_data);
  const fabric::Hca* hca = fabric_.hca_of(port);
  if (!service || hca == nullptr) return false;
  arrival.node = &fabric_.node_of(*hca);
  arrival.space = service->space;
  arrival.at = ib_address(port.gid(), path.pkey, service_id);
  arrival.at.flow_info = Be32(path.flow_label);
  arrival.from = ib_address(path.dgid, path.pkey, 0);
  arrival.from.flow_info = arrival.at.flow_info;
  if (!header) return true;
  arrival.wanted = any_address(header->family, service->port);
  arrival.wanted.ip = header->destination;
  arrival.peer = any_address(header->family, header->port);
  arrival.peer.ip = header->source;
  arrival.is_ip = has_address(fabric_, *arrival.node, arrival.wanted);
  return true;
}

Id* Service::find_listener(const Arrival& arrival) const {
  const std::uint32_t node = index_of(fabric_, *arrival.node);
  const PortOwner* owner = nullptr;
  if (arrival.is_ip) owner = ports_.find_listener(node, arrival.space, arrival.wanted);
  if (owner == nullptr) owner = ports_.find_listener(node, arrival.space, arrival.at);
  return owner == nullptr ? nullptr : ids_.at(owner->id).get();
}

// Returns nullptr if the listener has no room for it.
Id* Service::add_connection(Id& listener, const Arrival& arrival, Endpoint endpoint,
                            const fabric::Port& port, const Path& path) {
  const bool is_full = !listener.requests.has_seat(arrival.sender);
  if (is_full || listener.file->ids.size() >= kMaxIdsOfFile) {
    report_full(arrival, listener, is_full);
    return nullptr;
  }
  listener.requests.enter(arrival.sender);
  Id& id = make_id(*listener.file);
  const bool is_ib = listener.source.family == Family::Ib;
  id.space = listener.space;
  id.port_space = arrival.space;
  id.source = is_ib ? arrival.at : arrival.wanted;
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

void Service::on_request(Endpoint endpoint, const fabric::Port& port,
                         const ConnectRequest& request) {
  Arrival arrival;
  arrival.sender = request.sender;
  const bool valid =
      read_arrival(port, request.service_id, request.path, request.private_data, arrival);
  Id* const listener = valid ? find_listener(arrival) : nullptr;
  if (listener == nullptr || listener->qp_type == verbs::QpType::Ud) {
    if (valid) report_no_listener(arrival);
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

void Service::on_datagram_request(Endpoint endpoint, const fabric::Port& port,
                                  const DatagramRequest& request) {
  const auto refuse = [&](std::uint32_t status) {
    static_cast<void>(connector_.reply(endpoint, DatagramReply{status, 0, 0, {}}));
    connector_.drop(endpoint);
  };
  Arrival arrival;
  arrival.sender = request.sender;
  const bool valid =
      read_arrival(port, request.service_id, request.path, request.private_data, arrival);
  Id* const listener = valid ? find_listener(arrival) : nullptr;
  if (listener == nullptr || listener->qp_type != verbs::QpType::Ud) {
    if (valid) report_no_listener(arrival);
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

void Service::on_reply(Endpoint endpoint, const ConnectReply& reply) {
  Id* const id = find_by_endpoint(endpoint);
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

void Service::on_datagram_reply(Endpoint endpoint, const DatagramReply& reply) {
  Id* const id = find_by_endpoint(endpoint);
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
    report_refusal(*id, datagram_refusal_text(reply.status));
    event.out.event = Event::Unreachable;
    event.out.status = reply.status;
  }
  put_param(event.out, param);
  queue(*id, event);
}

void Service::on_ready(Endpoint endpoint) {
  Id* const id = find_by_endpoint(endpoint);
  if (id == nullptr || id->state != IdState::Connect) return;
  id->connection.stage = Stage::Established;
  queue(*id, Event::Established, 0);
}

void Service::on_rejected(Endpoint endpoint, std::uint16_t reason, const Bytes& private_data) {
  Id* const id = find_by_endpoint(endpoint);
  if (id == nullptr || id->state != IdState::Connect) return;
  id->connection.stage = Stage::Over;
  report_refusal(*id, rejection_text(reason));
  ucma::ConnParam param;
  put_private_data(param, private_data, kRejPrivate);
  PendingEvent event;
  event.out.event = Event::Rejected;
  event.out.status = reason;
  put_param(event.out, param);
  queue(*id, event);
}

void Service::on_unreachable(Endpoint endpoint, const Unanswered& message) {
  Id* const id = find_by_endpoint(endpoint);
  if (id == nullptr || id->state != IdState::Connect) return;
  id->connection.stage = Stage::Over;
  report_no_answer(*id, message);
  queue(*id, Event::Unreachable, ucma::negative(Error::TimedOut));
}

void Service::on_disconnected(Endpoint endpoint, bool timed_out) {
  Id* const id = find_by_endpoint(endpoint);
  if (id == nullptr || id->state != IdState::Connect) return;
  id->state = IdState::Disconnect;
  id->connection.stage = Stage::Over;
  if (timed_out) report_no_answer(*id, {Unanswered::Kind::Dreq});
  queue(*id, Event::Disconnected, timed_out ? ucma::negative(Error::TimedOut) : 0);
}

void Service::on_timewait_over(Endpoint endpoint) {
  Id* const id = find_by_endpoint(endpoint);
  if (id == nullptr || id->state != IdState::Disconnect) return;
  queue(*id, Event::TimewaitExit, 0);
}

}  // namespace ib::services::rdma_cm
