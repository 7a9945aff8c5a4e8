// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// SaFile: what one kernel client or program has of the subnet administrator through one HCA:
// queries that are under way, registrations, subscriptions, shares in memberships (al/sa.h).
//
// Each is an object of SaClient (sa_client.h) that lives here, so all of it is withdrawn with the
// file. A completion may call anything: nothing is kept across one but handles.
//
// Thread rule: the executor's thread, dispatch level.
#pragma once

#include "al/sa_requests.h"
#include "fabric/model.h"
#include "io/device.h"
#include "io/irp_queue.h"
#include "services/sa/sa_client.h"

#include <cstddef>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <variant>

namespace ib::services {

class SaFile {
 public:
  // `waiting`: the device whose dispatch routine parks a request in the queue that it names; a
  // request that goes there comes back through a completion routine.
  SaFile(SaClient& client, const fabric::Hca& hca, io::DeviceObject& waiting)
      : client_(client), hca_(hca), waiting_(waiting) {}
  SaFile(const SaFile&) = delete;
  SaFile& operator=(const SaFile&) = delete;
  // No request waits.
  // NOLINTNEXTLINE(bugprone-exception-escape): of the allocator, which ends the process
  ~SaFile();

  void control(io::IrpRef irp);
  bool is_of(const fabric::Hca& hca) const { return &hca == &hca_; }
  bool is_gone() const { return is_gone_; }
  // The HCA was pulled out: all requests end with DeviceRemoved.
  void end();

  // The requests, by their codes.
  void query_path(const al::SaPathIn& in, io::IrpRef irp);
  void register_service(const al::SaServiceIn& in, io::IrpRef irp);
  void subscribe(const al::SaSubscribeIn& in, io::IrpRef irp);
  void join(const al::SaJoinIn& in, io::IrpRef irp);
  void wait_event(const al::SaHandleIn& in, io::IrpRef irp);
  void destroy(const al::SaHandleIn& in, io::IrpRef irp);

 private:
  static constexpr std::size_t kMostObjects = 4096;
  static constexpr std::size_t kMostKept = 256;  // events of an object

  struct Object {
    Object(SaFile& f, al::SaHandle h) : file(f), handle(h) {}
    SaFile& file;
    al::SaHandle handle;
    // A query or subscription, a registration, a share.
    std::variant<std::monostate, std::unique_ptr<SaClient::Request>,
                 std::unique_ptr<SaClient::Registration>, std::unique_ptr<SaClient::Membership>>
        held;
    bool is_query = false;  // over when it is answered
    io::IrpQueue answer;    // the request that makes it
    io::IrpQueue wait_event;
    std::deque<al::SaEvent> kept;
  };

  // nullptr, and the request has ended: no such port.
  const fabric::Port* port_of(io::IrpRef& irp, std::uint32_t number) const;
  // nullptr, and the request has ended: there are too many.
  Object* add(io::IrpRef& irp);
  Object* find(al::SaHandle handle);
  void wait_for_answer(Object& object, io::IrpRef irp);
  static void answered(io::IrpRef irp, void* context);
  // Withdraws it; requests that wait for it end with Cancelled.
  void remove(al::SaHandle handle);
  // Ends the request that makes the object; `finish` completes it if that succeeded.
  template <class Finish>
  void conclude(al::SaHandle handle, const SaOutcome& outcome, const Finish& finish);
  void keep(al::SaHandle handle, const al::SaEvent& event);

  SaClient& client_;
  const fabric::Hca& hca_;
  io::DeviceObject& waiting_;
  bool is_gone_ = false;
  al::SaHandle last_ = 0;
  std::map<al::SaHandle, std::unique_ptr<Object>> objects_;
};

}  // namespace ib::services
