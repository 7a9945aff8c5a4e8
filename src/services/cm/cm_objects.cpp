// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "services/cm/cm_objects.h"

#include <utility>

namespace ib::services {

CmObjects::Ids& CmObjects::ids_of(Kind kind) {
  switch (kind) {
    case Kind::Listener: return listeners_;
    case Kind::Connection: return connections_;
    case Kind::Datagram: break;
  }
  return datagrams_;
}

CmObject& CmObjects::add(Kind kind) {
  do ++last_;
  while (last_ == 0 || objects_.contains(last_));
  auto& object = objects_[last_] = std::make_unique<CmObject>(*this, kind, last_);
  object->since = service_.executor().now();
  return *object;
}

void CmObjects::set_id(CmObject& object, std::uint32_t id) {
  object.id = id;
  object.has_id = true;
  ids_of(object.kind)[id] = object.handle;
}

CmObject* CmObjects::find(al::CmHandle handle) const {
  const auto found = objects_.find(handle);
  return found != objects_.end() ? found->second.get() : nullptr;
}

CmObject* CmObjects::find(al::CmHandle handle, Kind kind) const {
  CmObject* const object = find(handle);
  return object != nullptr && object->kind == kind ? object : nullptr;
}

CmObject* CmObjects::find_id(Kind kind, std::uint32_t id) {
  const Ids& ids = ids_of(kind);
  const auto found = ids.find(id);
  return found != ids.end() ? find(found->second, kind) : nullptr;
}

void CmObjects::remove(al::CmHandle handle) {
  const auto found = objects_.find(handle);
  if (found == objects_.end()) return;
  const std::unique_ptr<CmObject> object = std::move(found->second);
  objects_.erase(found);
  if (object->has_id) {
    ids_of(object->kind).erase(object->id);
    switch (object->kind) {
      case Kind::Listener: manager_.destroy(cm::ListenerId{object->id}); break;
      case Kind::Connection: manager_.destroy(cm::ConnectionId{object->id}); break;
      case Kind::Datagram: manager_.destroy(cm::SidrId{object->id}); break;
    }
  }
  give_back_port(*object);
  for (const al::CmRequest& request : object->came) remove(request.handle);  // the client has none
  for (io::IrpQueue* queue : {&object->answer, &object->disconnect, &object->load_path,
                              &object->wait_event, &object->get_request}) {
    queue->fail_all(Status::Cancelled, "what it waits for was destroyed");
  }
}

void CmObjects::end_waits(al::CmHandle handle, Status status, const std::string& reason) {
  if (CmObject* object = find(handle, Kind::Connection)) {
    if (auto irp = object->answer.take()) (*std::move(irp)).fail(status, reason);
  }
  if (CmObject* object = find(handle, Kind::Connection)) {
    if (auto irp = object->load_path.take()) (*std::move(irp)).fail(status, reason);
  }
}

void CmObjects::give_back_port(const CmObject& object) {
  if (!object.port) return;
  service_.give_back_port(service_.fabric().node_of(manager_.hca()), *object.port);
}

void CmObjects::give_back_ports() {
  for (const auto& [handle, object] : objects_) give_back_port(*object);
}

}  // namespace ib::services
