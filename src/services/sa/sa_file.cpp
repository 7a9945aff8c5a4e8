// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "services/sa/sa_file.h"

#include "services/request_table.h"
#include "verbs/gid.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>
#include <vector>

namespace ib::services {
namespace {

constexpr auto kTable = std::to_array<RequestEntry<SaFile>>({
    {sizeof(al::SaPath), with<&SaFile::query_path>},
    {0, with<&SaFile::register_service>},
    {0, with<&SaFile::subscribe>},
    {sizeof(al::SaGroup), with<&SaFile::join>},
    {sizeof(al::SaEvent), with<&SaFile::wait_event>},
    {0, with<&SaFile::destroy>},
});
static_assert(kTable.size() == al::kSaCodes);

template <class Out>
void finish_with(io::IrpRef irp, const Out& out) {
  static_cast<void>(irp->set_output(out));
  std::move(irp).complete(Status::Ok);
}

al::SaPath path_of(const sa::PathRecord& record, const fabric::Port& port) {
  al::SaPath out;
  out.path.sgid = record.sgid;
  out.path.dgid = record.dgid;
  out.path.slid = record.slid;
  out.path.dlid = record.dlid;
  out.path.pkey = record.pkey;
  out.path.port = static_cast<std::uint8_t>(port.number);
  out.path.sl = record.sl;
  out.path.flow_label = record.flow_label;
  out.path.traffic_class = record.traffic_class;
  out.path.hop_limit = record.hop_limit;
  out.path.rate = record.rate;
  out.path.packet_lifetime = record.life;
  out.mtu = static_cast<verbs::Mtu>(record.mtu);
  return out;
}

al::SaGroup group_of(const sa::McMemberRecord& record, al::SaHandle handle) {
  al::SaGroup out;
  out.handle = handle;
  out.mgid = record.mgid;
  out.mlid = record.mlid;
  out.pkey = record.pkey;
  out.qkey = record.qkey;
  out.mtu = static_cast<verbs::Mtu>(record.mtu);
  out.rate = record.rate;
  out.sl = record.sl;
  out.packet_lifetime = record.life;
  return out;
}

}  // namespace

// NOLINTNEXTLINE(bugprone-exception-escape): of the allocator, which ends the process
SaFile::~SaFile() {
  while (!objects_.empty()) remove(objects_.begin()->first);
}

void SaFile::control(io::IrpRef irp) {
  const RequestTarget target{"the subnet administrator's client", hca_, is_gone_ || !hca_.present,
                             static_cast<std::uint32_t>(al::SaCode::QueryPath),
                             static_cast<std::uint32_t>(al::SaCode::Destroy)};
  run_request(kTable, *this, target, std::move(irp));
}

// --- objects ---

const fabric::Port* SaFile::port_of(io::IrpRef& irp, std::uint32_t number) const {
  if (number >= 1 && number <= hca_.ports.size()) return &hca_.ports[number - 1];
  std::move(irp).fail(Status::InvalidParameter,
                      fmt::format("HCA {} has no port {}", hca_.name, number));
  return nullptr;
}

SaFile::Object* SaFile::add(io::IrpRef& irp) {
  if (objects_.size() >= kMostObjects) {
    std::move(irp).fail(Status::InsufficientResources,
                        fmt::format("this client has {} requests and objects", kMostObjects));
    return nullptr;
  }
  do ++last_;
  while (last_ == 0 || objects_.contains(last_));
  auto& object = objects_[last_] = std::make_unique<Object>(*this, last_);
  return object.get();
}

SaFile::Object* SaFile::find(al::SaHandle handle) {
  const auto found = objects_.find(handle);
  return found == objects_.end() ? nullptr : found->second.get();
}

void SaFile::remove(al::SaHandle handle) {
  const auto found = objects_.find(handle);
  if (found == objects_.end()) return;
  const std::unique_ptr<Object> object = std::move(found->second);
  objects_.erase(found);
  object->held = std::monostate();
  for (io::IrpQueue* queue : {&object->answer, &object->wait_event}) {
    queue->fail_all(Status::Cancelled, "what it waits for was destroyed");
  }
}

void SaFile::end() {
  is_gone_ = true;
  const std::string reason = fmt::format("HCA {} was pulled out", hca_.name);
  std::vector<io::IrpRef> waiting;
  std::vector<std::unique_ptr<Object>> ended;
  for (auto& [handle, object] : objects_) ended.push_back(std::move(object));
  objects_.clear();
  for (const auto& object : ended) {
    object->held = std::monostate();
    for (io::IrpQueue* queue : {&object->answer, &object->wait_event}) {
      while (auto irp = queue->take()) waiting.push_back(*std::move(irp));
    }
  }
  // The objects live until each request has passed answered(); `this` may be gone with the last.
  for (io::IrpRef& irp : waiting) std::move(irp).fail(Status::DeviceRemoved, reason);
}

// --- waiting ---

void SaFile::wait_for_answer(Object& object, io::IrpRef irp) {
  irp->parameters.set(&object.answer);
  io::call_driver(waiting_, std::move(irp), &SaFile::answered, &object);
}

// However it ended: also by a cancellation, when the object is still here.
void SaFile::answered(io::IrpRef irp, void* context) {
  auto& object = *static_cast<Object*>(context);
  irp->parameters = {};
  if (object.is_query || irp->status != Status::Ok) object.file.remove(object.handle);
  std::move(irp).pass_up();
}

template <class Finish>
void SaFile::conclude(al::SaHandle handle, const SaOutcome& outcome, const Finish& finish) {
  Object* object = find(handle);
  auto irp = object != nullptr ? object->answer.take() : std::nullopt;
  if (!irp) return;
  if (outcome.status == Status::Ok) return finish(*std::move(irp));
  (*std::move(irp)).fail(outcome.status, outcome.reason);
}

void SaFile::keep(al::SaHandle handle, const al::SaEvent& event) {
  Object* object = find(handle);
  if (object == nullptr) return;
  if (auto irp = object->wait_event.take()) return finish_with(*std::move(irp), event);
  if (object->kept.size() < kMostKept) return object->kept.push_back(event);
  object->kept.back() = {};
  object->kept.back().kind = al::SaEventKind::EventsLost;
}

// --- requests ---

void SaFile::query_path(const al::SaPathIn& in, io::IrpRef irp) {
  const fabric::Port* port = port_of(irp, in.port);
  if (port == nullptr) return;
  const int names = (verbs::is_zero(in.dgid) ? 0 : 1) + (in.dlid != 0) + (in.service_id != 0);
  if (names != 1) {
    return std::move(irp).fail(Status::InvalidParameter,
                               "a path leads to one GID, LID or service id");
  }
  SaClient::PathQuery query;
  query.sgid = port->gid();
  query.dgid = in.dgid;
  query.dlid = in.dlid;
  query.service_id = in.service_id;
  query.pkey = in.pkey;
  if (const auto cached = client_.cached_path(query)) {
    return finish_with(std::move(irp), path_of(*cached, *port));
  }
  Object* object = add(irp);
  if (object == nullptr) return;
  object->is_query = true;
  object->held = client_.query_path(
      query,
      [this, handle = object->handle, port](const SaOutcome& outcome, const sa::PathRecord& path) {
        conclude(handle, outcome,
                 [&](io::IrpRef asked) { finish_with(std::move(asked), path_of(path, *port)); });
      });
  wait_for_answer(*object, std::move(irp));
}

void SaFile::register_service(const al::SaServiceIn& in, io::IrpRef irp) {
  const fabric::Port* port = port_of(irp, in.port);
  Object* object = port != nullptr ? add(irp) : nullptr;
  if (object == nullptr) return;
  sa::ServiceRecord record;
  record.id = in.service_id;
  record.gid = port->gid();
  record.pkey = in.pkey;
  record.lease_seconds = in.lease_seconds;
  record.key = in.key;
  record.data8 = in.data;
  std::transform(in.name.begin(), in.name.end(), record.name.begin(),
                 [](char c) { return static_cast<std::uint8_t>(c); });
  object->held = client_.register_service(
      record, [this, handle = object->handle](const SaOutcome& outcome, const sa::ServiceRecord&) {
        Object* made = find(handle);
        if (made == nullptr) return;
        if (made->answer.size() > 0) {
          return conclude(handle, outcome, [handle](io::IrpRef asked) {
            std::move(asked).complete(Status::Ok, handle);
          });
        }
        al::SaEvent event;
        event.kind = al::SaEventKind::RegistrationLost;
        if (outcome.status != Status::Ok) keep(handle, event);
      });
  wait_for_answer(*object, std::move(irp));
}

void SaFile::subscribe(const al::SaSubscribeIn& in, io::IrpRef irp) {
  const fabric::Port* port = port_of(irp, in.port);
  Object* object = port != nullptr ? add(irp) : nullptr;
  if (object == nullptr) return;
  const al::SaHandle handle = object->handle;
  const auto on_notice = [this, handle](const sa::Notice& notice) {
    al::SaEvent event;
    event.kind = al::SaEventKind::Report;
    event.trap = notice.trap;
    event.issuer_lid = notice.issuer_lid;
    event.details = notice.details;
    const bool has_subject =
        notice.trap >= sa::trap::kGidInService && notice.trap <= sa::trap::kGroupDeleted;
    if (has_subject) event.subject = sa::subject_gid(notice);
    keep(handle, event);
  };
  object->held =
      client_.subscribe(port->gid(), in.trap, on_notice, [this, handle](const SaOutcome& outcome) {
        conclude(handle, outcome,
                 [handle](io::IrpRef asked) { std::move(asked).complete(Status::Ok, handle); });
      });
  wait_for_answer(*object, std::move(irp));
}

void SaFile::join(const al::SaJoinIn& in, io::IrpRef irp) {
  const fabric::Port* port = port_of(irp, in.port);
  Object* object = port != nullptr ? add(irp) : nullptr;
  if (object == nullptr) return;
  SaClient::JoinRequest request;
  request.components = in.may_create ? sa::mc_component::kToCreate : sa::mc_component::kToJoin;
  request.record.mgid = in.mgid;
  request.record.port_gid = port->gid();
  request.record.join_state = in.join_state;
  if (in.may_create) {
    request.record.pkey = in.pkey;
    request.record.qkey = in.qkey;
    request.record.traffic_class = in.traffic_class;
    request.record.sl = in.sl;
    request.record.flow_label = in.flow_label;
  }
  object->held = client_.join(
      request,
      [this, handle = object->handle](const SaOutcome& outcome, const sa::McMemberRecord& group) {
        Object* made = find(handle);
        if (made == nullptr) return;
        if (made->answer.size() > 0) {
          return conclude(handle, outcome, [&](io::IrpRef asked) {
            finish_with(std::move(asked), group_of(group, handle));
          });
        }
        al::SaEvent event;
        event.kind = al::SaEventKind::MembershipLost;
        if (outcome.status != Status::Ok) keep(handle, event);
      });
  wait_for_answer(*object, std::move(irp));
}

void SaFile::wait_event(const al::SaHandleIn& in, io::IrpRef irp) {
  Object* object = find(in.handle);
  if (object == nullptr || object->answer.size() > 0) {
    return std::move(irp).fail(Status::NotFound, fmt::format("there is no object {}", in.handle));
  }
  if (object->kept.empty() || irp->is_cancelled()) return object->wait_event.park(std::move(irp));
  const al::SaEvent event = object->kept.front();
  object->kept.pop_front();
  finish_with(std::move(irp), event);
}

void SaFile::destroy(const al::SaHandleIn& in, io::IrpRef irp) {
  if (find(in.handle) == nullptr && !is_gone_) {
    return std::move(irp).fail(Status::NotFound, fmt::format("there is no object {}", in.handle));
  }
  remove(in.handle);
  std::move(irp).complete(Status::Ok);
}

}  // namespace ib::services
