// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// CmFile: what one kernel client or program has of the communication manager of one HCA:
// listeners, connections, exchanges of datagram services, and the requests that wait for them
// (al/cm.h).
//
// Here are the requests; events of the engine complete those that wait (cm_events.h). A completion
// may call anything, so nothing here is kept across one but handles.
//
// Thread rule: the executor's thread, dispatch level.
#pragma once

#include "al/cm_requests.h"
#include "io/device.h"
#include "io/irp_queue.h"
#include "services/cm/cm_events.h"
#include "services/cm/cm_objects.h"
#include "services/cm/cm_service.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace ib::services {

class CmFile final : private CmConsumer {
 public:
  // `waiting`: the device whose dispatch routine parks a request in the queue that it names; a
  // request that goes there comes back through a completion routine.
  CmFile(CmService& service, const fabric::Hca& hca, io::DeviceObject& waiting, ServiceUser user);
  CmFile(const CmFile&) = delete;
  CmFile& operator=(const CmFile&) = delete;
  ~CmFile() override;  // no request waits

  void control(io::IrpRef irp);
  void for_each_object(const CmObjectVisitor& visit) const;

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
  // Of one file; requests of peers to its listeners may make it more.
  static constexpr std::size_t kMostObjects = 16384;

  using Kind = CmObject::Kind;

  // CmConsumer
  void on_manager(HcaCm&) override {}
  void on_event(HcaCm&, const cm::Event& event) override { events_.add(event); }
  void on_hca_gone(const fabric::Hca& hca) override;

  // Fails the request unless there is such an object, and it has begun.
  CmObject* check(io::IrpRef& irp, al::CmHandle handle, Kind kind, const al::CmData* data = nullptr,
                  std::uint32_t room = 0);
  // True, and the request has ended: there are too many objects.
  bool is_full(io::IrpRef& irp) const;
  // False, and the request has ended: the queue pair is somebody else's.
  bool may_use(io::IrpRef& irp, std::uint32_t qpn) const;
  bool is_program() const { return user_.pid != 0; }
  // Waits for an event; a Connect or Resolve that does not end with Ok takes the object with it,
  // and a Resolve always.
  void wait_for_answer(CmObject& object, io::IrpRef irp);
  static void answered(io::IrpRef irp, void* context);
  // Calls the engine about a connection, and completes the request unless it returns Ok.
  template <class Call>
  bool act(const CmObject& object, io::IrpRef& irp, const Call& call);
  void begin(al::CmHandle handle, Status status, const std::string& reason,
             const std::function<Result<std::uint32_t>()>& send);

  CmService& service_;
  HcaCm& manager_;
  io::DeviceObject& waiting_;
  const ServiceUser user_;
  bool is_gone_ = false;
  CmObjects objects_;
  CmEvents events_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace ib::services
