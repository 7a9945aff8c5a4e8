// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Connections: making them, on both sides, and hearing of their ends.
#include "base/buffers.h"
#include "ipoib/connections.h"

#include <algorithm>
#include <utility>

namespace ib::ipoib::driver {

namespace control = user::control;
using user::ServiceEnd;
using verbs::QpState;
namespace qp_attr = verbs::qp_attr;

namespace {

constexpr std::uint32_t kRefusedByConsumer = 28;  // [IBA1 12.6.7.2]

control::CmData to_data(const ConnectionData& data) {
  control::CmData out;
  out.size = sizeof data;
  const auto bytes = bytes_of(data);
  std::transform(bytes.begin(), bytes.end(), out.bytes.begin(),
                 [](std::byte byte) { return static_cast<std::uint8_t>(byte); });
  return out;
}

}  // namespace

Status Connections::open(Qpn datagrams) {
  return cm_.open(station_.hca, [this, datagrams](const ServiceEnd& end) {
    if (end.status == Status::Ok) return listen(datagrams);
    sink_.on_connections_open(end);
  });
}

void Connections::listen(Qpn datagrams) {
  control::CmListenIn in;
  in.service_id = kServiceId | static_cast<std::uint32_t>(datagrams);
  in.port = station_.port;
  const Status sent = cm_.listen(in, [this](const ServiceEnd& end) {
    sink_.on_connections_open(end);
    if (end.status == Status::Ok) await_request(end.handle);
  });
  if (sent != Status::Ok) sink_.on_connections_open({sent, 0, status_text(sent)});
}

void Connections::await_request(control::CmHandle listener) {
  (void)cm_.get_request(listener,
                        [this, listener](const ServiceEnd& end, const control::CmRequest& request) {
                          if (end.status != Status::Ok) return;
                          await_request(listener);
                          on_request(request);
                        });
}

Result<std::unique_ptr<user::QueuePair>> Connections::new_queue_pair() {
  user::QpOptions options;
  options.type = verbs::QpType::Rc;
  options.pd = objects_.pd.get();
  options.send_cq = objects_.sends.get();
  options.recv_cq = objects_.receives.get();
  options.srq = receives_.get();
  options.caps.max_send_wr = kSends;
  options.caps.max_send_sge = Transmitter::kElements;
  options.caps.max_inline = Transmitter::kInline;
  options.signal_all = true;
  IB_TRY(queue_pair, station_.hca.create_qp(options));
  control::QpAttr attr;
  attr.state = QpState::Init;
  attr.pkey_index = pkey_index_;
  attr.port = static_cast<std::uint8_t>(station_.port);
  const auto init = queue_pair->modify(
      qp_attr::kState | qp_attr::kPkeyIndex | qp_attr::kPort | qp_attr::kAccessFlags, attr);
  if (!init) {
    (void)queue_pair->destroy();
    return init.error();
  }
  return queue_pair;
}

control::CmPath Connections::path_of(const ConnectRequest& request) const {
  control::CmPath path;
  path.sgid = port_.gid.bytes;
  path.dgid = request.peer.gid.bytes;
  path.slid = static_cast<std::uint16_t>(port_.lid);
  path.dlid = static_cast<std::uint16_t>(request.path.dlid);
  path.pkey = static_cast<std::uint16_t>(station_.pkey);
  path.port = static_cast<std::uint8_t>(station_.port);
  path.sl = request.path.service_level;
  if (request.path.rate != 0) path.rate = request.path.rate;
  if (request.path.has_grh) {
    path.flow_label = request.path.flow_label;
    path.traffic_class = request.path.traffic_class;
    path.hop_limit = request.path.hop_limit;
  }
  return path;
}

void Connections::connect(ConnectionId id, const ConnectRequest& request) {
  const Status begun = begin(id, request);
  if (begun != Status::Ok) lost_.emplace_back(id, begun);
}

Status Connections::begin(ConnectionId id, const ConnectRequest& request) {
  IB_TRY(queue_pair, new_queue_pair());
  control::CmConnectIn in;
  in.service_id = request.service_id;
  in.path = path_of(request);
  in.srq = true;
  in.flow_control = false;
  in.qpn = queue_pair->qpn();
  in.starting_psn = new_psn();
  if (request.path_mtu != 0) in.path_mtu = static_cast<verbs::Mtu>(request.path_mtu);
  in.data = to_data(request.data);
  const Status sent = cm_.connect(
      in, [this, id](const ServiceEnd& end, const auto& reply) { on_reply(id, end, reply); });
  if (sent != Status::Ok) {
    (void)queue_pair->destroy();
    return sent;
  }
  of_queue_pair_[queue_pair->qpn()] = id;
  Connection& connection = connections_[static_cast<std::uint32_t>(id)];
  connection.id = id;
  connection.psn = in.starting_psn;
  connection.queue_pair = std::move(queue_pair);
  return Status::Ok;
}

void Connections::on_reply(ConnectionId id, const ServiceEnd& end, const control::CmReply& reply) {
  Connection* const connection = find(id);
  if (connection == nullptr) {  // the interface has given up meanwhile
    if (reply.handle != 0) (void)cm_.destroy(reply.handle);
    return;
  }
  connection->handle = reply.handle;
  connection->peer_qpn = reply.remote_qpn;
  if (end.status != Status::Ok) return lose(id, end.status);
  const control::CmData data = reply.data;
  move(id, QpState::Rtr, [this, id, data](Connection&) {
    move(id, QpState::Rts, [this, data](Connection& ready) { establish(ready, data); });
  });
}

void Connections::establish(Connection& connection, const control::CmData& data) {
  const ConnectionId id = connection.id;
  control::CmMessageIn in;
  in.handle = connection.handle;
  const Status sent = cm_.establish(in, [this, id](const ServiceEnd& end) {
    if (end.status != Status::Ok) return lose(id, end.status);
    watch(id);
  });
  if (sent != Status::Ok) return lose(id, sent);
  connection.phase = Phase::Established;
  sink_.on_connected(id, std::as_bytes(data.view()));
}

void Connections::on_request(const control::CmRequest& request) {
  IncomingConnection incoming;
  incoming.gid.bytes = request.path.dgid;
  incoming.private_data = std::as_bytes(request.data.view());
  const auto accepted = sink_.on_connect_request(incoming);
  Status status = accepted.error();
  if (accepted) {
    status = accept(request, *accepted);
    if (status != Status::Ok) lost_.emplace_back(accepted->id, status);
  }
  if (status == Status::Ok) return;
  control::CmRejectIn in;
  in.handle = request.handle;
  in.reason = kRefusedByConsumer;
  (void)cm_.reject(in);
}

Status Connections::accept(const control::CmRequest& request, const AcceptedConnection& accepted) {
  IB_TRY(queue_pair, new_queue_pair());
  const ConnectionId id = accepted.id;
  of_queue_pair_[queue_pair->qpn()] = id;
  Connection& connection = connections_[static_cast<std::uint32_t>(id)];
  connection.id = id;
  connection.handle = request.handle;
  connection.peer_qpn = request.remote_qpn;
  connection.phase = Phase::Accepting;
  connection.psn = new_psn();
  control::CmAcceptIn in;
  in.handle = request.handle;
  in.qpn = queue_pair->qpn();
  in.starting_psn = connection.psn;
  in.srq = true;
  in.flow_control = false;
  in.data = to_data(accepted.data);
  connection.queue_pair = std::move(queue_pair);
  // Messages may come before the RTU, so the queue pair is ready for them.
  move(id, QpState::Rtr, [this, id, in](Connection&) {
    move(id, QpState::Rts, [this, id, in](Connection&) {
      const Status sent =
          cm_.accept(in, [this, id](const ServiceEnd& end, const auto&) { on_accepted(id, end); });
      if (sent != Status::Ok) lose(id, sent);
    });
  });
  return Status::Ok;
}

void Connections::on_accepted(ConnectionId id, const ServiceEnd& end) {
  Connection* const connection = find(id);
  if (connection == nullptr) return;
  if (end.status != Status::Ok) return lose(id, end.status);
  connection->phase = Phase::Established;
  watch(id);
}

void Connections::move(ConnectionId id, QpState state, Then then) {
  Connection* const connection = find(id);
  if (connection == nullptr) return;
  control::CmQueryIn in;
  in.handle = connection->handle;
  in.state = state;
  in.starting_psn = connection->psn;
  const Status sent =
      cm_.query(in, [this, id, then = std::move(then)](const ServiceEnd& end, const auto& out) {
        Connection* const moved = find(id);
        if (moved == nullptr) return;
        if (end.status != Status::Ok) return lose(id, end.status);
        const auto done = moved->queue_pair->modify(out.mask, out.attr);
        if (!done) return lose(id, done.error());
        then(*moved);
      });
  if (sent != Status::Ok) lose(id, sent);
}

void Connections::watch(ConnectionId id) {
  Connection* const connection = find(id);
  if (connection == nullptr) return;
  const Status sent = cm_.wait_event(
      connection->handle, [this, id](const ServiceEnd& end, const control::CmEvent& event) {
        Connection* const watched = find(id);
        if (watched == nullptr) return;
        if (end.status != Status::Ok) return lose(id, end.status);
        switch (event.kind) {
          case control::CmEventKind::Disconnecting: {
            control::CmMessageIn in;
            in.handle = watched->handle;
            (void)cm_.confirm_disconnect(in);
            return lose(id, Status::Disconnected);
          }
          case control::CmEventKind::Disconnected:
          case control::CmEventKind::Rejected:
          case control::CmEventKind::TimedOut:
          case control::CmEventKind::TimeWaitEnded: return lose(id, Status::Disconnected);
          case control::CmEventKind::None:
          case control::CmEventKind::Established:
          case control::CmEventKind::Delayed:
          case control::CmEventKind::PathOffered:
          case control::CmEventKind::PathAnswered:
          case control::CmEventKind::PathTimedOut: return watch(id);
        }
      });
  if (sent != Status::Ok) lose(id, sent);
}

}  // namespace ib::ipoib::driver
