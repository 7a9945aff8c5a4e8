// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Connections for programs [IBA1 chapter 12]: the requests of al::Cm (al/cm.h), with the same
// statuses and limits, and a callback for the completion of each.
//
//   passive   listen, get_request (a REQ came), accept (REP; ends with the RTU)
//   active    connect (REQ; ends with the REP), establish (RTU)
//   both      reject, delay (MRA), disconnect (DREQ; ends with the DREP), wait_event,
//             confirm_disconnect (DREP)
//
// The program moves its queue pairs, with the attributes of query(): to Init before connect() or
// accept(), to Rtr and Rts before establish() or accept().
//
// An active side, with the queue pair in Init, `in.path` and `in.path_mtu` from Sa::query_path:
//   cm.connect(in, [&](const ServiceEnd& end, const control::CmReply& reply) ...), and in there:
//   cm.query({reply.handle, QpState::Rtr}, [&](const ServiceEnd& end, const control::CmQueryOut&
//   out)
//       { qp->modify(out.mask, out.attr) })
//   cm.query({reply.handle, QpState::Rts}, the same); cm.establish({reply.handle}) after that
//   cm.wait_event(reply.handle, ...) hears of the other side's end
//
// AccessDenied: the queue pair is not one of this process at this HCA.
// `out` of connect(), accept() and resolve() is filled in also with Disconnected: the reason and
// the private data of the rejection.
#pragma once

#include "user/services/service_file.h"
#include "verbs/services/cm_requests.h"

namespace ib::user {

class Cm : public ServiceFile {
 public:
  using CmCode = control::CmCode;

  explicit Cm(ServiceChannel& channel) : ServiceFile(channel, control::ServiceKind::Cm) {}
  ~Cm() = default;

  // ServiceEnd::handle is the listener. AlreadyExists: another one gets some of these requests.
  Status listen(const control::CmListenIn& in, ServiceDone done) {
    return call(CmCode::Listen, in, std::move(done));
  }
  Status get_request(control::CmHandle listener, ServiceAnswer<control::CmRequest> done) {
    return call_for<control::CmRequest>(CmCode::GetRequest, control::CmHandleIn{listener},
                                        std::move(done));
  }
  Status connect(const control::CmConnectIn& in, ServiceAnswer<control::CmReply> done) {
    return call_for<control::CmReply>(CmCode::Connect, in, std::move(done));
  }
  Status establish(const control::CmMessageIn& in, ServiceDone done = {}) {
    return call(CmCode::Establish, in, std::move(done));
  }
  Status accept(const control::CmAcceptIn& in, ServiceAnswer<control::CmEvent> done) {
    return call_for<control::CmEvent>(CmCode::Accept, in, std::move(done));
  }
  Status reject(const control::CmRejectIn& in, ServiceDone done = {}) {
    return call(CmCode::Reject, in, std::move(done));
  }
  Status delay(const control::CmMessageIn& in, ServiceDone done = {}) {
    return call(CmCode::Delay, in, std::move(done));
  }
  Status disconnect(const control::CmMessageIn& in, ServiceAnswer<control::CmEvent> done) {
    return call_for<control::CmEvent>(CmCode::Disconnect, in, std::move(done));
  }
  Status confirm_disconnect(const control::CmMessageIn& in, ServiceDone done = {}) {
    return call(CmCode::ConfirmDisconnect, in, std::move(done));
  }
  // The next event of a connection that no other request waits for.
  Status wait_event(control::CmHandle connection, ServiceAnswer<control::CmEvent> done) {
    return call_for<control::CmEvent>(CmCode::WaitEvent, control::CmHandleIn{connection},
                                      std::move(done));
  }
  Status load_path(const control::CmLoadPathIn& in, ServiceAnswer<control::CmPathAnswer> done) {
    return call_for<control::CmPathAnswer>(CmCode::LoadPath, in, std::move(done));
  }
  Status answer_path(const control::CmAnswerPathIn& in, ServiceDone done = {}) {
    return call(CmCode::AnswerPath, in, std::move(done));
  }
  Status path_migrated(control::CmHandle connection, ServiceDone done = {}) {
    return call(CmCode::PathMigrated, control::CmHandleIn{connection}, std::move(done));
  }
  // Attributes for QueuePair::modify().
  Status query(const control::CmQueryIn& in, ServiceAnswer<control::CmQueryOut> done) {
    return call_for<control::CmQueryOut>(CmCode::Query, in, std::move(done));
  }
  Status resolve(const control::CmResolveIn& in, ServiceAnswer<control::CmResolved> done) {
    return call_for<control::CmResolved>(CmCode::Resolve, in, std::move(done));
  }
  Status respond(const control::CmRespondIn& in, ServiceDone done = {}) {
    return call(CmCode::Respond, in, std::move(done));
  }
  // A listener, a connection or a request, in any state; the other side is told as the state
  // demands. Requests that wait for it end with Cancelled. `done` may be empty.
  Status destroy(control::CmHandle object, ServiceDone done = {}) {
    return call(CmCode::Destroy, control::CmHandleIn{object}, std::move(done));
  }
};

}  // namespace ib::user
