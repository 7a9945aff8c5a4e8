// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The requests of a kernel client or a program.
#include "services/cm/cm_file.h"

#include "cm/service_id.h"
#include "services/cm/cm_records.h"
#include "services/request_table.h"

#include <fmt/format.h>

#include <array>
#include <utility>

namespace ib::services {
namespace {

using al::CmCode;

constexpr auto kTable = std::to_array<RequestEntry<CmFile>>({
    {0, with<&CmFile::listen>},
    {sizeof(al::CmRequest), with<&CmFile::get_request>},
    {sizeof(al::CmReply), with<&CmFile::connect>},
    {0, with<&CmFile::establish>},
    {sizeof(al::CmEvent), with<&CmFile::accept>},
    {0, with<&CmFile::reject>},
    {0, with<&CmFile::delay>},
    {sizeof(al::CmEvent), with<&CmFile::disconnect>},
    {0, with<&CmFile::confirm_disconnect>},
    {sizeof(al::CmEvent), with<&CmFile::wait_event>},
    {sizeof(al::CmPathAnswer), with<&CmFile::load_path>},
    {0, with<&CmFile::answer_path>},
    {0, with<&CmFile::path_migrated>},
    {sizeof(al::CmQueryOut), with<&CmFile::query>},
    {sizeof(al::CmResolved), with<&CmFile::resolve>},
    {0, with<&CmFile::respond>},
    {0, with<&CmFile::destroy>},
});
static_assert(kTable.size() == al::kCmCodes);

// The largest values that their fields have room for; the engine takes them in the size of these.
constexpr std::uint32_t kMostOffset = 0xff;
constexpr std::uint32_t kMostExponent = 31;
constexpr std::uint32_t kMostRetries = 15;
constexpr std::uint32_t kMostReason = 0xffff;
constexpr std::uint32_t kMostStatus = 0xff;

// Whether the listener gets requests for one of the service IDs.
bool meets(const al::CmListenIn& in, std::uint64_t service_ids, std::uint64_t mask) {
  const std::uint64_t both = in.service_mask & mask;
  return (in.service_id & both) == (service_ids & both);
}

bool is_connected_type(verbs::QpType type) {
  return type == verbs::QpType::Rc || type == verbs::QpType::Uc || type == verbs::QpType::XrcSend ||
         type == verbs::QpType::XrcRecv;
}

// For what a cancellation cannot take back any more once it is sent.
bool was_cancelled(io::IrpRef& irp) {
  if (!irp->is_cancelled()) return false;
  std::move(irp).fail(Status::Cancelled, "the request was cancelled");
  return true;
}

const char* words_of(Status status) {
  if (status == Status::InvalidState) return "not in this state of the connection";
  if (status == Status::DeviceBusy) return "the queue pair has another connection";
  return status_text(status);
}

bool check_room(io::IrpRef& irp, const al::CmData& data, std::uint32_t room) {
  if (data.size <= room) return true;
  const std::uint32_t size = data.size;
  std::move(irp).fail(
      Status::InvalidParameter,
      fmt::format("{} bytes of private data, the message has room for {}", size, room));
  return false;
}

}  // namespace

CmFile::CmFile(CmService& service, const fabric::Hca& hca, io::DeviceObject& waiting,
               ServiceUser user)
    : service_(service),
      manager_(service.manager_of(hca)),
      waiting_(waiting),
      user_(std::move(user)),
      objects_(service, manager_),
      events_(service.executor(), hca, objects_) {
  service_.add(*this);
}

CmFile::~CmFile() {
  *alive_ = false;
  objects_.give_back_ports();
  service_.remove(*this);
}

void CmFile::control(io::IrpRef irp) {
  const RequestTarget target{
      "the communication manager", manager_.hca(), is_gone_ || !manager_.hca().present,
      static_cast<std::uint32_t>(CmCode::Listen), static_cast<std::uint32_t>(CmCode::Destroy)};
  run_request(kTable, *this, target, std::move(irp));
}

void CmFile::for_each_object(const CmObjectVisitor& visit) const {
  for (const auto& [handle, object] : objects_.all()) visit(*object, manager_, user_);
}

void CmFile::on_hca_gone(const fabric::Hca& hca) {
  if (&hca != &manager_.hca() || is_gone_) return;
  is_gone_ = true;
  const std::string reason = fmt::format("HCA {} was pulled out", hca.name);
  const std::shared_ptr<bool> alive = alive_;
  while (*alive && !objects_.all().empty()) {
    CmObject& object = *objects_.all().begin()->second;
    io::IrpQueue* const queues[] = {&object.answer, &object.disconnect, &object.load_path,
                                    &object.wait_event, &object.get_request};
    std::vector<io::IrpRef> waiting;
    for (io::IrpQueue* queue : queues) {
      while (auto irp = queue->take()) waiting.push_back(*std::move(irp));
    }
    object.is_connecting = false;
    if (waiting.empty()) {
      objects_.remove(object.handle);
      continue;
    }
    for (io::IrpRef& irp : waiting) std::move(irp).fail(Status::DeviceRemoved, reason);
  }
}

CmObject* CmFile::check(io::IrpRef& irp, al::CmHandle handle, Kind kind, const al::CmData* data,
                        std::uint32_t room) {
  CmObject* object = objects_.find(handle, kind);
  if (object == nullptr || !object->has_id) {
    std::move(irp).fail(Status::NotFound, fmt::format("there is no such object {}", handle));
    return nullptr;
  }
  if (data != nullptr && !check_room(irp, *data, room)) return nullptr;
  return object;
}

bool CmFile::is_full(io::IrpRef& irp) const {
  if (objects_.all().size() < kMostObjects) return false;
  std::move(irp).fail(Status::InsufficientResources,
                      fmt::format("this client has {} listeners and connections", kMostObjects));
  return true;
}

bool CmFile::may_use(io::IrpRef& irp, std::uint32_t qpn) const {
  if (user_.may_use(manager_.hca(), qpn)) return true;
  std::move(irp).fail(
      Status::AccessDenied,
      fmt::format("queue pair {:#x} of {} is not one of this program", qpn, manager_.hca().name));
  return false;
}

void CmFile::destroy(const al::CmHandleIn& in, io::IrpRef irp) {
  if (objects_.find(in.handle) == nullptr) {
    if (is_gone_) return std::move(irp).complete(Status::Ok);
    return std::move(irp).fail(Status::NotFound, fmt::format("there is no object {}", in.handle));
  }
  objects_.remove(in.handle);
  std::move(irp).complete(Status::Ok);
}

// --- waiting ---

void CmFile::wait_for_answer(CmObject& object, io::IrpRef irp) {
  irp->parameters.set(&object.answer);
  io::call_driver(waiting_, std::move(irp), &CmFile::answered, &object);
}

void CmFile::answered(io::IrpRef irp, void* context) {
  auto& object = *static_cast<CmObject*>(context);
  irp->parameters = {};
  const bool is_kept =
      object.kind == Kind::Connection && (irp->status == Status::Ok || !object.is_connecting);
  object.is_connecting = false;
  if (!is_kept) object.owner.remove(object.handle);  // nothing if remove() is under way
  std::move(irp).pass_up();
}

template <class Call>
bool CmFile::act(const CmObject& object, io::IrpRef& irp, const Call& call) {
  const cm::ConnectionId id{object.id};
  const Status status =
      manager_.act([&](cm::Engine& engine, Instant now) { return call(engine, id, now); });
  if (status == Status::Ok) return true;
  std::move(irp).fail(status, words_of(status));
  return false;
}

// --- requests ---

void CmFile::listen(const al::CmListenIn& in, io::IrpRef irp) {
  if (in.compare_size > in.value.size() || in.offset > kMostOffset ||
      in.port > manager_.hca().ports.size() || in.services > al::CmServices::Both) {
    return std::move(irp).fail(Status::InvalidParameter, "no such port, kind or comparison");
  }
  cm::Listen listen;
  listen.service_id = in.service_id;
  listen.service_mask = in.service_mask;
  listen.kind = static_cast<cm::ServiceKind>(in.services);
  listen.port = static_cast<std::uint8_t>(in.port);
  listen.backlog = in.backlog;
  if (in.compare_size > 0) {
    const auto value = std::span(in.value).first(in.compare_size);
    const auto mask = std::span(in.mask).first(in.compare_size);
    listen.compare = cm::PrivateDataCompare{static_cast<std::uint8_t>(in.offset), value, mask};
  }
  const bool meets_ports = meets(in, cm::kIpServices, cm::kIpServiceMask);
  const bool is_exact = in.service_mask == ~std::uint64_t{0};
  const fabric::Node& node = service_.fabric().node_of(manager_.hca());
  if (meets_ports && !is_exact) {
    return std::move(irp).fail(Status::AlreadyExists,
                               "these are ports of programs; listen on a single one");
  }
  if (is_program() && meets(in, cm::kSdpServices, cm::kSdpServiceMask)) {
    return std::move(irp).fail(Status::AlreadyExists, "these are streams of programs");
  }
  if (is_full(irp)) return;
  const Result<cm::ListenerId> made = manager_.listen(*this, listen);
  if (!made) {
    const bool taken = made.error() == Status::AlreadyExists;
    return std::move(irp).fail(
        made.error(), taken ? cm::service_text(in.service_id) + " has a listener on this HCA"
                            : words_of(made.error()));
  }
  if (meets_ports && !service_.take_port(node, in.service_id)) {
    manager_.destroy(*made);
    return std::move(irp).fail(Status::AlreadyExists, "a program of " + node.name + " has " +
                                                          cm::service_text(in.service_id));
  }
  CmObject& object = objects_.add(Kind::Listener);
  objects_.set_id(object, static_cast<std::uint32_t>(*made));
  if (meets_ports) object.port = in.service_id;
  object.service_id = in.service_id;
  object.backlog = in.backlog;
  std::move(irp).complete(Status::Ok, object.handle);
}

void CmFile::get_request(const al::CmHandleIn& in, io::IrpRef irp) {
  CmObject* object = check(irp, in.handle, Kind::Listener);
  if (object == nullptr) return;
  object->get_request.park(std::move(irp));
  events_.serve_listener(in.handle);
}

// Sends a REQ or SIDR_REQ when both nodes are open, unless the caller has given up.
void CmFile::begin(al::CmHandle handle, Status status, const std::string& reason,
                   const std::function<Result<std::uint32_t>()>& send) {
  CmObject* const object = objects_.find(handle);
  if (object == nullptr) return;
  std::string why = reason;
  if (status == Status::Ok) {
    const Result<std::uint32_t> id = send();
    if (id) return objects_.set_id(*object, *id);
    status = id.error();
    why = words_of(status);
  }
  if (auto irp = object->answer.take()) (*std::move(irp)).fail(status, std::move(why));
}

void CmFile::connect(const al::CmConnectIn& in, io::IrpRef irp) {
  if (!check_room(irp, in.data, al::cm_room::kConnect) || !may_use(irp, in.qpn) || is_full(irp)) {
    return;
  }
  if (!is_connected_type(in.type)) {
    return std::move(irp).fail(Status::InvalidParameter, "queue pairs of this type do not connect");
  }
  CmObject& object = objects_.add(Kind::Connection);
  object.is_connecting = true;
  object.service_id = in.service_id;
  const al::CmHandle handle = object.handle;
  wait_for_answer(object, std::move(irp));
  const auto send = [this, in]() -> Result<std::uint32_t> {
    IB_TRY(id, manager_.connect(*this, to_cm(in)));
    return static_cast<std::uint32_t>(id);
  };
  const auto go = [this, alive = alive_, handle, send](Status status, const std::string& reason) {
    if (*alive) begin(handle, status, reason, send);
  };
  const Status leads = service_.open(manager_.hca(), to_cm(in.path), go);
  if (leads != Status::Ok) begin(handle, leads, "the path leads to no port of the fabric", send);
}

void CmFile::resolve(const al::CmResolveIn& in, io::IrpRef irp) {
  if (!check_room(irp, in.data, al::cm_room::kResolve) || is_full(irp)) return;
  if (in.response_timeout > kMostExponent || in.max_retries > kMostRetries) {
    return std::move(irp).fail(Status::InvalidParameter,
                               "a timeout is at most 31, retries are at most 15");
  }
  CmObject& object = objects_.add(Kind::Datagram);
  object.service_id = in.service_id;
  const al::CmHandle handle = object.handle;
  wait_for_answer(object, std::move(irp));
  const auto send = [this, in]() -> Result<std::uint32_t> {
    cm::SidrRequest request;
    request.service_id = in.service_id;
    request.path = to_cm(in.path);
    request.response_timeout = static_cast<std::uint8_t>(in.response_timeout);
    request.max_retries = static_cast<std::uint8_t>(in.max_retries);
    request.private_data = in.data.view();
    IB_TRY(id, manager_.resolve_sidr(*this, request));
    return static_cast<std::uint32_t>(id);
  };
  const auto go = [this, alive = alive_, handle, send](Status status, const std::string& reason) {
    if (*alive) begin(handle, status, reason, send);
  };
  const Status leads = service_.open(manager_.hca(), to_cm(in.path), go);
  if (leads != Status::Ok) begin(handle, leads, "the path leads to no port of the fabric", send);
}

void CmFile::establish(const al::CmMessageIn& in, io::IrpRef irp) {
  const auto* object = check(irp, in.handle, Kind::Connection, &in.data, al::cm_room::kEstablish);
  if (object == nullptr) return;
  if (act(*object, irp, [&](cm::Engine& engine, cm::ConnectionId id, Instant now) {
        return engine.establish(id, in.data.view(), now);
      })) {
    std::move(irp).complete(Status::Ok);
  }
}

void CmFile::accept(const al::CmAcceptIn& in, io::IrpRef irp) {
  CmObject* object = check(irp, in.handle, Kind::Connection, &in.data, al::cm_room::kAccept);
  if (object == nullptr || was_cancelled(irp)) return;
  if (!may_use(irp, in.qpn)) return;
  if (in.failover > 2) {
    return std::move(irp).fail(Status::InvalidParameter, "failover is 0, 1 or 2");
  }
  if (act(*object, irp, [&](cm::Engine& engine, cm::ConnectionId id, Instant now) {
        return engine.accept(id, to_cm(in), now);
      })) {
    wait_for_answer(*object, std::move(irp));
  }
}

void CmFile::reject(const al::CmRejectIn& in, io::IrpRef irp) {
  const auto* object = check(irp, in.handle, Kind::Connection, &in.data, al::cm_room::kReject);
  if (object == nullptr || !check_room(irp, in.info, cm::kAdditionalInfoBytes)) return;
  if (in.reason > kMostReason) {
    return std::move(irp).fail(Status::InvalidParameter, "a reason has 16 bits");
  }
  if (act(*object, irp, [&](cm::Engine& engine, cm::ConnectionId id, Instant now) {
        return engine.reject(
            id, {static_cast<cm::RejectReason>(in.reason), in.info.view(), in.data.view()}, now);
      })) {
    objects_.end_waits(in.handle, Status::Cancelled, "this side has rejected the connection");
    std::move(irp).complete(Status::Ok);
  }
}

void CmFile::delay(const al::CmMessageIn& in, io::IrpRef irp) {
  const auto* object = check(irp, in.handle, Kind::Connection, &in.data, al::cm_room::kDelay);
  if (object == nullptr) return;
  if (in.service_timeout > kMostExponent) {
    return std::move(irp).fail(Status::InvalidParameter, "a timeout is at most 31");
  }
  if (act(*object, irp, [&](cm::Engine& engine, cm::ConnectionId id, Instant now) {
        return engine.delay(id, static_cast<std::uint8_t>(in.service_timeout), in.data.view(), now);
      })) {
    std::move(irp).complete(Status::Ok);
  }
}

void CmFile::disconnect(const al::CmMessageIn& in, io::IrpRef irp) {
  CmObject* object = check(irp, in.handle, Kind::Connection, &in.data, al::cm_room::kDisconnect);
  if (object == nullptr || was_cancelled(irp)) return;
  if (act(*object, irp, [&](cm::Engine& engine, cm::ConnectionId id, Instant now) {
        return engine.disconnect(id, in.data.view(), now);
      })) {
    object->disconnect.park(std::move(irp));
  }
}

void CmFile::confirm_disconnect(const al::CmMessageIn& in, io::IrpRef irp) {
  const auto* object = check(irp, in.handle, Kind::Connection, &in.data, al::cm_room::kConfirm);
  if (object == nullptr) return;
  if (act(*object, irp, [&](cm::Engine& engine, cm::ConnectionId id, Instant now) {
        return engine.confirm_disconnect(id, in.data.view(), now);
      })) {
    std::move(irp).complete(Status::Ok);
  }
}

void CmFile::wait_event(const al::CmHandleIn& in, io::IrpRef irp) {
  CmObject* object = check(irp, in.handle, Kind::Connection);
  if (object == nullptr) return;
  if (object->kept.empty() || irp->is_cancelled()) return object->wait_event.park(std::move(irp));
  const al::CmEvent event = object->kept.front();
  object->kept.pop_front();
  static_cast<void>(irp->set_output(event));
  std::move(irp).complete(Status::Ok);
}

void CmFile::load_path(const al::CmLoadPathIn& in, io::IrpRef irp) {
  CmObject* object = check(irp, in.handle, Kind::Connection, &in.data, al::cm_room::kLoadPath);
  if (object == nullptr || was_cancelled(irp)) return;
  if (act(*object, irp, [&](cm::Engine& engine, cm::ConnectionId id, Instant now) {
        return engine.load_alternate_path(id, to_cm(in.path), in.data.view(), now);
      })) {
    object->load_path.park(std::move(irp));
  }
}

void CmFile::answer_path(const al::CmAnswerPathIn& in, io::IrpRef irp) {
  CmObject* object = check(irp, in.handle, Kind::Connection, &in.data, al::cm_room::kAnswerPath);
  if (object == nullptr) return;
  if (in.status > kMostStatus) {
    return std::move(irp).fail(Status::InvalidParameter, "a status has 8 bits");
  }
  if (act(*object, irp, [&](cm::Engine& engine, cm::ConnectionId id, Instant now) {
        return engine.answer_alternate_path(
            id, {static_cast<cm::AlternatePathStatus>(in.status), {}, in.data.view()}, now);
      })) {
    object->path_is_loaded = object->path_is_loaded || in.status == 0;
    std::move(irp).complete(Status::Ok);
  }
}

void CmFile::path_migrated(const al::CmHandleIn& in, io::IrpRef irp) {
  const auto* object = check(irp, in.handle, Kind::Connection);
  if (object == nullptr) return;
  if (act(*object, irp, [&](cm::Engine& engine, cm::ConnectionId id, Instant) {
        return engine.path_has_migrated(id);
      })) {
    std::move(irp).complete(Status::Ok);
  }
}

void CmFile::query(const al::CmQueryIn& in, io::IrpRef irp) {
  const auto* object = check(irp, in.handle, Kind::Connection);
  if (object == nullptr) return;
  Result<cm::ConnectionInfo> info = manager_.engine().query(cm::ConnectionId{object->id});
  IB_ASSERT(info.has_value());  // it is ours until it is destroyed
  const bool is_accepted =
      info->state != cm::State::ReqReceived && info->state != cm::State::ReqReceivedMraSent;
  if (!is_accepted) info->receive_psn = in.starting_psn;
  al::CmQueryOut out;
  out.local_comm_id = info->local_comm_id;
  out.remote_comm_id = info->remote_comm_id;
  out.is_established = info->state == cm::State::Established;
  const Status status = attributes_of(*info, manager_.hca(), in.state,
                                      out.is_established && object->path_is_loaded, out);
  if (status != Status::Ok) {
    return std::move(irp).fail(status, "there are no attributes for this state");
  }
  static_cast<void>(irp->set_output(out));
  std::move(irp).complete(Status::Ok);
}

void CmFile::respond(const al::CmRespondIn& in, io::IrpRef irp) {
  const auto* object = check(irp, in.handle, Kind::Datagram, &in.data, al::cm_room::kRespond);
  if (object == nullptr) return;
  if (in.status > kMostStatus) {
    return std::move(irp).fail(Status::InvalidParameter, "a status has 8 bits");
  }
  if (in.status == 0 && !may_use(irp, in.qpn)) return;
  cm::SidrReply reply;
  reply.status = static_cast<cm::SidrStatus>(in.status);
  reply.qpn = in.qpn;
  reply.qkey = in.qkey;
  reply.private_data = in.data.view();
  const cm::SidrId id{object->id};
  const Status status = manager_.act(
      [&](cm::Engine& engine, Instant now) { return engine.answer_sidr(id, reply, now); });
  if (status != Status::Ok) return std::move(irp).fail(status, words_of(status));
  objects_.remove(in.handle);
  std::move(irp).complete(Status::Ok);
}

}  // namespace ib::services
