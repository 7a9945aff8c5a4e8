// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// CmObjects: the listeners, connections and exchanges of one kernel client or program, found by
// their handles and by the IDs that the engine has given them.
//
// Thread rule: the executor's thread, dispatch level. A completion may call anything: no reference
// to an object is kept across one.
#pragma once

#include "al/cm_requests.h"
#include "io/irp_queue.h"
#include "services/cm/cm_service.h"
#include "services/service_user.h"

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>

namespace ib::services {

class CmObjects;

// A listener, a connection or an exchange. A handle names it; its engine has an ID for it.
struct CmObject {
  enum class Kind : std::uint8_t { Listener, Connection, Datagram };
  CmObject(CmObjects& o, Kind k, al::CmHandle h) : owner(o), kind(k), handle(h) {}

  CmObjects& owner;
  Kind kind;
  al::CmHandle handle;
  std::uint32_t id = 0;               // of the engine
  bool has_id = false;                // false: not begun, the nodes are being opened
  bool path_is_loaded = false;        // a LAP was agreed on
  std::optional<std::uint64_t> port;  // of a listener: a service ID that was taken from programs
  Instant since{};                    // it was made
  std::uint64_t service_id = 0;       // of a listener or a datagram
  std::uint32_t backlog = 0;          // of a listener
  std::deque<al::CmRequest> came;     // of a listener
  std::deque<al::CmEvent> kept;
  // The requests that wait: Connect, Accept or Resolve; the others by their names.
  io::IrpQueue answer;
  io::IrpQueue disconnect;
  io::IrpQueue load_path;
  io::IrpQueue wait_event;
  io::IrpQueue get_request;
  bool is_connecting = false;  // `answer` is a Connect
};

class CmObjects {
 public:
  using Kind = CmObject::Kind;
  using Map = std::map<al::CmHandle, std::unique_ptr<CmObject>>;

  CmObjects(CmService& service, HcaCm& manager) : service_(service), manager_(manager) {}
  CmObjects(const CmObjects&) = delete;
  CmObjects& operator=(const CmObjects&) = delete;
  ~CmObjects() = default;  // no request waits

  const Map& all() const { return objects_; }
  // Returns null if there is none, or not of this kind.
  CmObject* find(al::CmHandle handle) const;
  CmObject* find(al::CmHandle handle, Kind kind) const;
  CmObject* find_id(Kind kind, std::uint32_t id);

  CmObject& add(Kind kind);
  void set_id(CmObject& object, std::uint32_t id);
  // Takes it out of the tables and tells the other side; its requests end with Cancelled.
  void remove(al::CmHandle handle);
  // The connection is over: what waits for it, but for `disconnect`, ends.
  void end_waits(al::CmHandle handle, Status status, const std::string& reason);
  // Of all listeners, before the client is gone.
  void give_back_ports();

 private:
  using Ids = std::unordered_map<std::uint32_t, al::CmHandle>;
  Ids& ids_of(Kind kind);
  void give_back_port(const CmObject& object);

  CmService& service_;
  HcaCm& manager_;
  al::CmHandle last_ = 0;
  Map objects_;
  Ids listeners_;  // by the engine's IDs
  Ids connections_;
  Ids datagrams_;
};

// `owner`: the client that it belongs to.
using CmObjectVisitor =
    std::function<void(const CmObject& object, const HcaCm& manager, const ServiceUser& owner)>;

}  // namespace ib::services
