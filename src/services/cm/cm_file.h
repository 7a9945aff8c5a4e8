// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// CmFile: what one kernel client has of the communication manager of one HCA: listeners,
// connections, exchanges of datagram services, and the requests that wait for them (al/cm.h).
//
// An event of the engine completes the request that waits for it, or is kept for WaitEvent. It is
// taken from the executor, never inside a call: a completion may call anything, so nothing here is
// kept across one but handles.
//
// Thread rule: the executor's thread, dispatch level.
#pragma once

#include "al/cm_requests.h"
#include "io/device.h"
#include "io/irp_queue.h"
#include "services/cm/cm_service.h"
#include "services/rdma_cm/words/listing.h"

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

namespace ib::services {

class CmFile;

// A listener, a connection or an exchange. A handle names it; its engine has an ID for it.
struct CmObject {
  enum class Kind : std::uint8_t { Listener, Connection, Datagram };
  CmObject(CmFile& f, Kind k, al::CmHandle h) : file(f), kind(k), handle(h) {}

  CmFile& file;
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

class CmFile final : private CmConsumer {
 public:
  // `waiting`: the device whose dispatch routine parks a request in the queue that it names; a
  // request that goes there comes back through a completion routine.
  CmFile(CmService& service, const fabric::Hca& hca, io::DeviceObject& waiting, std::string driver);
  CmFile(const CmFile&) = delete;
  CmFile& operator=(const CmFile&) = delete;
  ~CmFile() override;  // no request waits

  void control(io::IrpRef irp);
  // Adds its listeners and connections (cm_listing.cpp).
  void list(std::vector<rdma_cm::Listing>& all) const;

  // The requests, by their codes.
  void listen(const al::CmListenIn& in, io::IrpRef irp);
  void get_request(const al::CmHandleIn& in, io::IrpRef irp);
  void connect(const al::CmConnectIn& in, io::IrpRef irp);
  void establish(const al::CmMessageIn& in, io::IrpRef irp);
  void accept(const al::CmAcceptIn& in, io::IrpRef irp);
  void reject(const al::CmRejectIn& in, io::IrpRef irp);
  void delay(const al::CmMessageIn& in, io::IrpRef irp);
  void disconnect(const al::CmMessageIn& in, io::IrpRef irp);
  void confirm_disconnect(const al::CmMessageIn& in, io::IrpRef irp);
  void wait_event(const al::CmHandleIn& in, io::IrpRef irp);
  void load_path(const al::CmLoadPathIn& in, io::IrpRef irp);
  void answer_path(const al::CmAnswerPathIn& in, io::IrpRef irp);
  void path_migrated(const al::CmHandleIn& in, io::IrpRef irp);
  void query(const al::CmQueryIn& in, io::IrpRef irp);
  void resolve(const al::CmResolveIn& in, io::IrpRef irp);
  void respond(const al::CmRespondIn& in, io::IrpRef irp);
  void destroy(const al::CmHandleIn& in, io::IrpRef irp);

 private:
  using Kind = CmObject::Kind;

  // CmConsumer
  void on_manager(HcaCm&) override {}
  void on_event(HcaCm& manager, const cm::Event& event) override;
  void on_hca_gone(const fabric::Hca& hca) override;

  CmObject& add(Kind kind);
  void set_id(CmObject& object, std::uint32_t id);
  CmObject* find(al::CmHandle handle, Kind kind);
  CmObject* find_id(Kind kind, std::uint32_t id);
  // For people: one of its objects as it is.
  rdma_cm::Listing listing_of(const CmObject& object) const;
  // Fails the request unless there is such an object, and it has begun.
  CmObject* check(io::IrpRef& irp, al::CmHandle handle, Kind kind, const al::CmData* data = nullptr,
                  std::uint32_t room = 0);
  bool check_room(io::IrpRef& irp, const al::CmData& data, std::uint32_t room);
  // Takes it out of the tables and tells the other side; its requests end with Cancelled.
  void remove(al::CmHandle handle);
  std::unordered_map<std::uint32_t, al::CmHandle>& ids_of(Kind kind);
  // Waits in `queue` for an event; a Connect or Resolve that does not end with Ok takes the object
  // with it, and a Resolve always.
  void wait(CmObject& object, io::IrpQueue& queue, io::IrpRef irp);
  void wait_for_answer(CmObject& object, io::IrpRef irp);
  static void answered(io::IrpRef irp, void* context);
  // Calls the engine about a connection, and completes the request unless it returns Ok.
  template <class Call>
  bool act(const CmObject& object, io::IrpRef& irp, const Call& call);
  void begin(al::CmHandle handle, Status status, const std::string& reason,
             const std::function<Result<std::uint32_t>()>& send);

  // Events, from the executor.
  void run();
  void take(const cm::RequestReceived& event);
  void take(const cm::ReplyReceived& event);
  void take(const cm::Established& event);
  void take(const cm::Rejected& event);
  void take(const cm::TimedOut& event);
  void take(const cm::Delayed& event);
  void take(const cm::DisconnectRequested& event);
  void take(const cm::Disconnected& event);
  void take(const cm::TimeWaitEnded& event);
  void take(const cm::AlternatePathOffered& event);
  void take(const cm::AlternatePathAnswered& event);
  void take(const cm::AlternatePathTimedOut& event);
  void take(const cm::SidrRequested& event);
  void take(const cm::SidrAnswered& event);
  void take(const cm::SidrTimedOut& event);
  void offer(cm::ListenerId listener, CmObject& object, al::CmRequest request);
  void serve_listener(al::CmHandle handle);
  void keep(CmObject& object, al::CmEvent event);
  // The connection is over: what waits for it, but for `disconnect`, ends.
  void end_waits(al::CmHandle handle, Status status, const std::string& reason);

  CmService& service_;
  HcaCm& manager_;
  io::DeviceObject& waiting_;
  std::string driver_;  // its name
  bool is_gone_ = false;
  al::CmHandle last_ = 0;
  std::map<al::CmHandle, std::unique_ptr<CmObject>> objects_;
  std::unordered_map<std::uint32_t, al::CmHandle> listeners_;  // by the engine's IDs
  std::unordered_map<std::uint32_t, al::CmHandle> connections_;
  std::unordered_map<std::uint32_t, al::CmHandle> datagrams_;
  std::deque<cm::Event> events_;
  std::unique_ptr<platform::Timer> timer_;  // while there are events
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace ib::services
