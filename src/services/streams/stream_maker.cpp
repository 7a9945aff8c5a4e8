// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// From the HCAs to RTU. A callback may come for a stream that has ended meanwhile.
#include "services/streams/stream_maker.h"

#include "services/cm/gsi_forms.h"
#include "services/streams/stream_names.h"
#include "streams/end_setup.h"
#include "ulp/sdp/hello.h"
#include "ulp/sdp/stream.h"

#include <fmt/format.h>

#include <cstring>
#include <utility>

namespace ib::services {

namespace control = verbs::control;
using rdma_cm::Endpoint;
using Stage = Stream::Stage;

namespace {

constexpr std::uint32_t kPsnMask = 0xffffff;
// A program waits in its connect(), and TCP is there.
constexpr Duration kPathTimeout = std::chrono::seconds(2);
constexpr Duration kMakingTimeout = std::chrono::seconds(5);

std::span<const std::byte> bytes_of_data(const rdma_cm::Bytes& data) {
  return std::as_bytes(std::span(data));
}

template <class Message>
rdma_cm::Bytes private_data(const Message& message) {
  const auto bytes = sdp::write(message);
  rdma_cm::Bytes data(bytes.size());
  std::memcpy(data.data(), bytes.data(), bytes.size());
  return data;
}

// A client that connects to 127.0.0.1 is seen as 127.0.0.1, as always; else as its node.
platform::TcpName source_of(const Stream& stream) {
  if (rdma_cm::is_loopback(endpoint_of(stream.remote))) return {};
  return {stream.way.source.ip, 0, 0};
}

}  // namespace

StreamMaker::StreamMaker(const Parts& parts, std::function<std::uint32_t()> random, Owner& owner)
    : parts_(parts), random_(std::move(random)), owner_(owner) {
  parts_.connector.set_handler(this);
}

Stream* StreamMaker::find(std::uint64_t number, Stage stage) const {
  Stream* stream = parts_.table.find(number);
  return stream != nullptr && stream->stage == stage ? stream : nullptr;
}

void StreamMaker::begin(Stream& stream) {
  stream.since = parts_.system.executor.now();
  making_.insert(stream.number);
  prepare(stream, 0);
}

// Opens the HCA of an end, then that of the other one.
void StreamMaker::prepare(Stream& stream, std::uint32_t end) {
  const fabric::Port& port = end == 0 ? *stream.way.from : *stream.way.to;
  parts_.hcas.at(port).open(
      [this, number = stream.number, end](Status status, const std::string& reason) {
        Stream* one = find(number, Stage::Preparing);
        if (one == nullptr) return;
        if (status != Status::Ok) return fail(*one, status, reason);
        end == 0 ? prepare(*one, 1) : ask_path(*one);
      });
}

void StreamMaker::ask_path(Stream& stream) {
  const std::uint64_t number = stream.number;
  auto question =
      parts_.routes.find_path(stream.way, 0, kPathTimeout,
                              [this, number](rdma_cm::ucma::Error error, std::string_view reason,
                                             const rdma_cm::Path& path) {
                                Stream* one = find(number, Stage::Preparing);
                                if (one == nullptr) return;
                                if (error != rdma_cm::ucma::Error::None) {
                                  return fail(*one, Status::InvalidState, std::string(reason));
                                }
                                one->path = path;
                                knock(*one);
                              });
  // It may be over by now, and be gone with its answer.
  Stream* one = find(number, Stage::Preparing);
  if (question != nullptr && one != nullptr) {
    one->question = std::move(question);
  }
}

// The listener's backlog takes the connection, and its accept() is woken.
void StreamMaker::knock(Stream& stream) {
  const platform::Knock knocked = parts_.host.knock(stream.tcp, stream.remote, source_of(stream));
  if (knocked.is_refused) owner_.on_refused_tcp(stream.listener);
  if (knocked.status != Status::Ok) return fail(stream, knocked.status, knocked.reason);
  stream.local = knocked.local;
  stream.remote = knocked.remote;
  stream.family = knocked.family;
  std::string reason;
  auto links = parts_.host.make_links(stream.number, reason);
  if (!links) return fail(stream, links.error(), reason);
  stream.links = *std::move(links);
  parts_.table.enter_names(stream);
  make_ends(stream);
}

void StreamMaker::make_ends(Stream& stream) {
  stream.stage = Stage::Making;
  stream.waiting = 2;
  const std::uint64_t number = stream.number;
  for (std::uint32_t end = 0; end < 2; ++end) {
    rdma_cm::Path path = stream.path;
    const fabric::Port& port = end == 0 ? *stream.way.from : *stream.way.to;
    if (end == 1) {  // the REQ brings the rest of the way back
      path.port = static_cast<std::uint8_t>(port.number);
      path.pkey_index = pkey_index(port, path.pkey);
    }
    stream.ends[end].made = std::make_unique<StreamEnd>(parts_.hcas.at(port));
    stream.ends[end].made->make(path, [this, number, end](Status status) {
      Stream* one = find(number, Stage::Making);
      if (one != nullptr) on_end_made(*one, end, status);
    });
  }
}

void StreamMaker::on_end_made(Stream& stream, std::uint32_t end, Status status) {
  if (status != Status::Ok && stream.failed == Status::Ok) {
    stream.failed = status;
    stream.reason = stream.ends[end].made->reason();
  }
  if (--stream.waiting > 0) return;
  if (stream.failed != Status::Ok) return fail(stream, stream.failed, stream.reason);
  const Status status_of_setup = set_up(stream);
  if (status_of_setup != Status::Ok) {
    return fail(stream, status_of_setup, "the ends could not be set up in device memory");
  }
  request(stream);
}

Status StreamMaker::set_up(Stream& stream) {
  for (std::uint32_t end = 0; end < 2; ++end) {
    const StreamEnd& made = *stream.ends[end].made;
    streams::EndParts parts;
    parts.stream = stream.number;
    parts.end = end;
    parts.place = made.place().offset;
    parts.peer_place = stream.ends[1 - end].made->place().offset;
    parts.qp = made.qp_index();
    parts.cq = made.cq_index();
    parts.pd = control::index_of(made.hca().pd());
    parts.lkey = made.place().lkey;
    parts.buffers_address = made.place().address + streams::kEndBytes + streams::kSmallRing;
    parts.queue_pair = made.queue_pair();
    parts.completions = made.completions();
    parts.local = address_of(end == 0 ? stream.local : stream.remote);
    parts.remote = address_of(end == 0 ? stream.remote : stream.local);
    IB_CHECK(streams::set_up(parts_.system.arena, parts));
    stream.ends[end].shared = streams::find_end(parts_.system.arena, parts.place);
    if (stream.ends[end].shared == nullptr) return Status::InvalidState;
  }
  stream.ends[0].shared->family = stream.family;
  return Status::Ok;
}

void StreamMaker::request(Stream& stream) {
  stream.stage = Stage::Connecting;
  Stream::End& active = stream.ends[0];
  sdp::Hello addresses;
  addresses.ip_version = verbs::is_ipv4(stream.local.address) ? 4 : 6;
  addresses.port = stream.local.port;
  addresses.source = stream.local.address;
  addresses.destination = stream.remote.address;
  if (addresses.ip_version == 4) {
    std::fill_n(addresses.source.begin(), 12, std::uint8_t{0});
    std::fill_n(addresses.destination.begin(), 12, std::uint8_t{0});
  }
  rdma_cm::ConnectRequest request;
  request.service_id = sdp::service_id(stream.remote.port);
  request.path = stream.path;
  request.qpn = active.made->qpn();
  stream.starting_psn = random_() & kPsnMask;
  request.starting_psn = stream.starting_psn;
  request.retry_count = 7;
  request.flow_control = true;
  request.private_data = private_data(sdp::make_hello(active.shared->state, addresses));
  by_qpn_[request.qpn] = &stream;
  const std::uint64_t number = stream.number;
  const Result<Endpoint> endpoint = parts_.connector.connect(*stream.way.from, request);
  if (find(number, Stage::Connecting) == nullptr) return;
  if (!endpoint) {
    return fail(stream, endpoint.error(), "the communication manager cannot send its request");
  }
  add_endpoint(stream, 0, *endpoint);
}

void StreamMaker::add_endpoint(Stream& stream, std::uint32_t end, Endpoint endpoint) {
  stream.ends[end].endpoint = endpoint;
  by_endpoint_[endpoint] = &stream;
}

Stream* StreamMaker::of(Endpoint endpoint) const {
  const auto at = by_endpoint_.find(endpoint);
  return at == by_endpoint_.end() ? nullptr : at->second;
}

// Only what this service has sent itself is answered: whoever else speaks SDP finds nobody.
void StreamMaker::on_request(Endpoint endpoint, const fabric::Port& port,
                             const rdma_cm::ConnectRequest& request) {
  const auto at = by_qpn_.find(request.qpn);
  Stream* stream = at == by_qpn_.end() ? nullptr : at->second;
  const bool is_ours = stream != nullptr && stream->ends[1].endpoint == 0 &&
                       stream->way.to == &port && request.path.dgid == stream->path.sgid &&
                       request.service_id == sdp::service_id(stream->remote.port);
  const auto hello = sdp::parse_hello(bytes_of_data(request.private_data));
  if (!is_ours || !hello) {
    static_cast<void>(parts_.connector.reject(endpoint, rdma_cm::rej::kInvalidServiceId, {}));
    return parts_.connector.drop(endpoint);
  }
  by_qpn_.erase(at);
  add_endpoint(*stream, 1, endpoint);
  Stream::End& passive = stream->ends[1];
  if (sdp::on_hello(passive.shared->state, *hello) != Status::Ok) {
    return fail(*stream, Status::Malformed, "the peer offers no room for a byte");
  }
  StreamEnd::Peer peer;
  peer.qpn = request.qpn;
  peer.send_psn = request.starting_psn;
  peer.receive_psn = random_() & kPsnMask;
  passive.made->connect(request.path, peer,
                        [this, number = stream->number, psn = peer.receive_psn](Status status) {
                          Stream* one = find(number, Stage::Connecting);
                          if (one == nullptr) return;
                          if (status != Status::Ok)
                            return fail(*one, status, one->ends[1].made->reason());
                          reply(*one, psn);
                        });
}

void StreamMaker::reply(Stream& stream, std::uint32_t receive_psn) {
  Stream::End& end = stream.ends[1];
  rdma_cm::ConnectReply reply;
  reply.qpn = end.made->qpn();
  reply.starting_psn = receive_psn;
  reply.flow_control = true;
  reply.private_data = private_data(sdp::make_hello_ack(end.shared->state));
  const Status sent = parts_.connector.reply(end.endpoint, reply);
  if (sent != Status::Ok) fail(stream, sent, "the communication manager cannot answer");
}

void StreamMaker::on_datagram_request(Endpoint endpoint, const fabric::Port&,
                                      const rdma_cm::DatagramRequest&) {
  parts_.connector.drop(endpoint);
}

void StreamMaker::on_reply(Endpoint endpoint, const rdma_cm::ConnectReply& reply) {
  Stream* stream = of(endpoint);
  if (stream == nullptr || stream->stage != Stage::Connecting) return;
  Stream::End& active = stream->ends[0];
  const auto ack = sdp::parse_hello_ack(bytes_of_data(reply.private_data));
  const bool is_ours = reply.qpn == stream->ends[1].made->qpn();
  if (!ack || !is_ours || sdp::on_hello_ack(active.shared->state, *ack) != Status::Ok) {
    return fail(*stream, Status::AlreadyExists,
                "a driver that listens to the service ID of SDP has answered");
  }
  StreamEnd::Peer peer;
  peer.qpn = reply.qpn;
  peer.send_psn = reply.starting_psn;
  peer.receive_psn = stream->starting_psn;
  active.made->connect(stream->path, peer, [this, number = stream->number](Status status) {
    Stream* one = find(number, Stage::Connecting);
    if (one == nullptr) return;
    Stream::End& end = one->ends[0];
    if (status != Status::Ok) return fail(*one, status, end.made->reason());
    const Status sent = parts_.connector.make_ready(end.endpoint);
    if (sent != Status::Ok) fail(*one, sent, "the communication manager cannot send RTU");
  });
}

void StreamMaker::on_ready(Endpoint endpoint) {
  Stream* stream = of(endpoint);
  if (stream == nullptr || stream->stage != Stage::Connecting ||
      stream->ends[1].endpoint != endpoint) {
    return;
  }
  sdp::on_established(stream->ends[1].shared->state);
  stream->stage = Stage::Open;
  making_.erase(stream->number);
  owner_.on_made(*stream);
}

void StreamMaker::on_rejected(Endpoint endpoint, std::uint16_t reason, const rdma_cm::Bytes&) {
  Stream* stream = of(endpoint);
  if (stream == nullptr) return;
  if (stream->stage == Stage::Open) return owner_.on_lost(*stream);
  fail(*stream, Status::Disconnected,
       fmt::format("the communication manager of the peer rejects, reason {}", reason));
}

void StreamMaker::on_unreachable(Endpoint endpoint, const rdma_cm::Unanswered&) {
  if (has_left(endpoint)) return;
  Stream* stream = of(endpoint);
  if (stream == nullptr || stream->stage == Stage::Open) return;
  fail(*stream, Status::Timeout, "the communication manager of the peer does not answer");
}

// The second end of a stream that has ended: its peer's DREQ is answered.
bool StreamMaker::has_left(Endpoint endpoint) {
  if (leaving_.erase(endpoint) == 0) return false;
  parts_.connector.drop(endpoint);
  return true;
}

// Nobody but this service ends the connection, so somebody has made the message up, or a node has
// lost its memory of it.
void StreamMaker::on_disconnected(Endpoint endpoint, bool) {
  if (has_left(endpoint)) return;
  Stream* stream = of(endpoint);
  if (stream == nullptr) return;
  if (stream->stage == Stage::Open) return owner_.on_lost(*stream);
  fail(*stream, Status::Disconnected, "the connection was ended before it was made");
}

// The owner answers, and begins the end.
void StreamMaker::fail(Stream& stream, Status status, const std::string& reason) {
  making_.erase(stream.number);
  owner_.on_failed(stream, status, reason);
}

void StreamMaker::look_at_time() {
  const Instant now = parts_.system.executor.now();
  const std::vector<std::uint64_t> numbers(making_.begin(), making_.end());
  for (const std::uint64_t number : numbers) {
    Stream* stream = parts_.table.find(number);
    if (stream == nullptr || now - stream->since < kMakingTimeout) return;  // others are younger
    fail(*stream, Status::Timeout, "the stream could not be made in time");
  }
}

void StreamMaker::disconnect(Stream& stream, bool in_order) {
  making_.erase(stream.number);
  if (stream.ends[0].made != nullptr) by_qpn_.erase(stream.ends[0].made->qpn());
  for (Stream::End& end : stream.ends) {
    const Endpoint endpoint = std::exchange(end.endpoint, 0);
    if (endpoint == 0) continue;
    by_endpoint_.erase(endpoint);
    if (in_order && &end == &stream.ends[1]) {
      leaving_.insert(endpoint);
    } else {
      parts_.connector.drop(endpoint);
    }
  }
}

void StreamMaker::close() {
  for (const Endpoint endpoint : std::exchange(leaving_, {})) parts_.connector.drop(endpoint);
}

}  // namespace ib::services
