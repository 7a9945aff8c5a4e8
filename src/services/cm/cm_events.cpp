// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The events of the engine, as completions of a kernel client's requests.
#include "services/cm/cm_events.h"

#include "services/cm/cm_records.h"

#include <fmt/format.h>

#include <utility>
#include <variant>

namespace ib::services {
namespace {

using al::CmEvent;
using al::CmEventKind;

// Ends with the output, whatever the status.
template <class Out>
void finish(io::IrpRef irp, Status status, const Out& out, std::string reason = {}) {
  static_cast<void>(irp->set_output(out));
  irp->reason = std::move(reason);
  std::move(irp).complete(status);
}

std::string rejected_text(cm::RejectReason reason) {
  return fmt::format("the other side has rejected it: {}", cm::reason_text(reason).sentence);
}

}  // namespace

void CmEvents::add(const cm::Event& event) {
  events_.push_back(event);
  if (timer_ != nullptr) return;
  timer_ = executor_.at(executor_.now(), [this] { run(); });
}

// Completions may add events, and destroy what events are about; the file stays, as its Close waits
// for a request that is being completed.
void CmEvents::run() {
  const std::unique_ptr<platform::Timer> running = std::move(timer_);
  const std::shared_ptr<bool> alive = alive_;
  for (std::size_t left = events_.size(); left > 0 && *alive && !events_.empty(); --left) {
    const cm::Event event = events_.front();
    events_.pop_front();
    std::visit([this](const auto& one) { take(one); }, event);
  }
}

// --- for listeners ---

void CmEvents::offer(cm::ListenerId id, CmObject& object, al::CmRequest request) {
  CmObject* listener = objects_.find_id(Kind::Listener, static_cast<std::uint32_t>(id));
  if (listener == nullptr) return objects_.remove(object.handle);
  request.handle = object.handle;
  listener->came.push_back(request);
  serve_listener(listener->handle);
}

void CmEvents::serve_listener(al::CmHandle handle) {
  for (;;) {
    CmObject* listener = objects_.find(handle, Kind::Listener);
    if (listener == nullptr || listener->came.empty()) return;
    auto irp = listener->get_request.take();
    if (!irp) return;
    const al::CmRequest request = listener->came.front();
    listener->came.pop_front();
    finish(*std::move(irp), Status::Ok, request);
  }
}

void CmEvents::take(const cm::RequestReceived& event) {
  if (!event.listener) {  // peer to peer: it answers a Connect
    CmObject* own = connection_of(event.id);
    auto irp = own != nullptr ? own->answer.take() : std::nullopt;
    if (!irp) return;
    al::CmReply reply;
    reply.handle = own->handle;
    reply.is_request = true;
    reply.remote_qpn = event.remote_qpn;
    reply.remote_qkey = event.remote_qkey;
    reply.starting_psn = event.starting_psn;
    reply.responder_resources = event.responder_resources;
    reply.initiator_depth = event.initiator_depth;
    reply.rnr_retry_count = event.rnr_retry_count;
    reply.data = data_of(event.private_data.view());
    return finish(*std::move(irp), Status::Ok, reply);
  }
  CmObject& object = objects_.add(Kind::Connection);
  objects_.set_id(object, static_cast<std::uint32_t>(event.id));
  offer(*event.listener, object, request_of(event));
}

void CmEvents::take(const cm::SidrRequested& event) {
  CmObject& object = objects_.add(Kind::Datagram);
  object.service_id = event.service_id;
  objects_.set_id(object, static_cast<std::uint32_t>(event.id));
  const auto& ports = hca_.ports;
  if (event.source.port == 0 || event.source.port > ports.size()) {
    return objects_.remove(object.handle);
  }
  offer(event.listener, object, request_of(event, ports[event.source.port - 1u]));
}

// --- for connections ---

CmObject* CmEvents::connection_of(cm::ConnectionId id) {
  return objects_.find_id(Kind::Connection, static_cast<std::uint32_t>(id));
}

void CmEvents::keep(CmObject& object, CmEvent event) {
  if (auto irp = object.wait_event.take()) return finish(*std::move(irp), Status::Ok, event);
  if (event.kind == CmEventKind::Delayed) {
    std::erase_if(object.kept, [](const CmEvent& e) { return e.kind == CmEventKind::Delayed; });
  }
  object.kept.push_back(event);
}

void CmEvents::take(const cm::ReplyReceived& event) {
  CmObject* object = connection_of(event.id);
  auto irp = object != nullptr ? object->answer.take() : std::nullopt;
  if (!irp) return;
  al::CmReply reply = reply_of(event);
  reply.handle = object->handle;
  finish(*std::move(irp), Status::Ok, reply);
}

void CmEvents::take(const cm::Established& event) {
  CmObject* object = connection_of(event.id);
  if (object == nullptr) return;
  CmEvent out;
  out.kind = CmEventKind::Established;
  out.data = data_of(event.private_data.view());
  if (auto irp = object->answer.take()) return finish(*std::move(irp), Status::Ok, out);
  keep(*object, out);
}

void CmEvents::take(const cm::Rejected& event) {
  CmObject* object = connection_of(event.id);
  if (object == nullptr) return;
  const al::CmHandle handle = object->handle;
  const auto reason = static_cast<std::uint32_t>(event.reason);
  const std::string text = rejected_text(event.reason);
  CmEvent out;
  out.kind = CmEventKind::Rejected;
  out.reason = reason;
  out.data = data_of(event.private_data.view());
  if (auto irp = object->answer.take()) {
    if (!object->is_connecting) return finish(*std::move(irp), Status::Disconnected, out, text);
    al::CmReply reply;
    reply.reject_reason = reason;
    reply.data = out.data;
    return finish(*std::move(irp), Status::Disconnected, reply, text);
  }
  if (auto irp = object->disconnect.take()) return finish(*std::move(irp), Status::Ok, out);
  objects_.end_waits(handle, Status::Disconnected, text);
  if ((object = objects_.find(handle, Kind::Connection)) != nullptr) keep(*object, out);
}

void CmEvents::take(const cm::TimedOut& event) {
  CmObject* object = connection_of(event.id);
  if (object == nullptr) return;
  CmEvent out;
  out.kind = CmEventKind::TimedOut;
  auto irp = object->answer.take();
  if (!irp) return keep(*object, out);
  (*std::move(irp))
      .fail(Status::Timeout,
            fmt::format("the other side has not answered; {} tries", event.times_sent));
}

void CmEvents::take(const cm::Delayed& event) {
  CmObject* object = connection_of(event.id);
  if (object == nullptr || object->is_connecting) return;  // its client has no handle yet
  CmEvent out;
  out.kind = CmEventKind::Delayed;
  out.service_timeout = event.service_timeout;
  out.data = data_of(event.private_data.view());
  keep(*object, out);
}

void CmEvents::take(const cm::DisconnectRequested& event) {
  CmObject* object = connection_of(event.id);
  if (object == nullptr) return;
  const al::CmHandle handle = object->handle;
  CmEvent out;
  out.kind = CmEventKind::Disconnecting;
  out.data = data_of(event.private_data.view());
  objects_.end_waits(handle, Status::Disconnected, "the other side disconnects");
  if ((object = objects_.find(handle, Kind::Connection)) != nullptr) keep(*object, out);
}

void CmEvents::take(const cm::Disconnected& event) {
  CmObject* object = connection_of(event.id);
  if (object == nullptr) return;
  const al::CmHandle handle = object->handle;
  CmEvent out;
  out.kind = CmEventKind::Disconnected;
  out.by = static_cast<al::CmEndedBy>(event.by);
  out.data = data_of(event.private_data.view());
  if (auto irp = object->disconnect.take()) return finish(*std::move(irp), Status::Ok, out);
  objects_.end_waits(handle, Status::Disconnected, "the connection is over");
  if ((object = objects_.find(handle, Kind::Connection)) != nullptr) keep(*object, out);
}

void CmEvents::take(const cm::TimeWaitEnded& event) {
  CmObject* object = connection_of(event.id);
  if (object == nullptr) return;
  CmEvent out;
  out.kind = CmEventKind::TimeWaitEnded;
  keep(*object, out);
}

// --- paths ---

void CmEvents::take(const cm::AlternatePathOffered& event) {
  CmObject* object = connection_of(event.id);
  if (object == nullptr) return;
  CmEvent out;
  out.kind = CmEventKind::PathOffered;
  out.path = from_cm(event.path);
  out.data = data_of(event.private_data.view());
  keep(*object, out);
}

void CmEvents::take(const cm::AlternatePathAnswered& event) {
  CmObject* object = connection_of(event.id);
  if (object == nullptr) return;
  const auto status = static_cast<std::uint32_t>(event.status);
  object->path_is_loaded = object->path_is_loaded || status == 0;
  const al::CmData data = data_of(event.private_data.view());
  if (auto irp = object->load_path.take()) {
    return finish(*std::move(irp), Status::Ok, al::CmPathAnswer{status, data});
  }
  CmEvent out;
  out.kind = CmEventKind::PathAnswered;
  out.reason = status;
  out.data = data;
  keep(*object, out);
}

void CmEvents::take(const cm::AlternatePathTimedOut& event) {
  CmObject* object = connection_of(event.id);
  if (object == nullptr) return;
  if (auto irp = object->load_path.take()) {
    return (*std::move(irp)).fail(Status::Timeout, "the other side has not answered");
  }
  CmEvent out;
  out.kind = CmEventKind::PathTimedOut;
  keep(*object, out);
}

// --- datagrams ---

void CmEvents::take(const cm::SidrAnswered& event) {
  CmObject* object = objects_.find_id(Kind::Datagram, static_cast<std::uint32_t>(event.id));
  auto irp = object != nullptr ? object->answer.take() : std::nullopt;
  if (!irp) return;
  const al::CmResolved out{static_cast<std::uint32_t>(event.status), event.qpn, event.qkey,
                           data_of(event.private_data.view())};
  if (event.status == cm::SidrStatus::Valid) return finish(*std::move(irp), Status::Ok, out);
  finish(*std::move(irp), Status::Disconnected, out, cm::status_text(event.status).sentence);
}

void CmEvents::take(const cm::SidrTimedOut& event) {
  CmObject* object = objects_.find_id(Kind::Datagram, static_cast<std::uint32_t>(event.id));
  auto irp = object != nullptr ? object->answer.take() : std::nullopt;
  if (irp) (*std::move(irp)).fail(Status::Timeout, "the other side has not answered");
}

}  // namespace ib::services
