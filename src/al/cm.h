// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Connections for kernel clients [IBA1 chapter 12]: the communication manager's operations as IRPs
// (docs/design/0018). Everything that others decide is the completion of a request that waits for
// it; each can be cancelled.
//
//   passive   listen, get_request (a REQ came), accept (REP; ends with the RTU)
//   active    connect (REQ; ends with the REP), establish (RTU)
//   both      reject, delay (MRA), disconnect (DREQ; ends with the DREP), wait_event,
//             confirm_disconnect (DREP)
//   paths     load_path (LAP; ends with the APR), answer_path (APR), force_path, path_migrated
//   datagrams resolve (SIDR_REQ; ends with the SIDR_REP), respond
//
// The client moves its queue pairs, by modify_qp() with the attributes of query(): to Init before
// connect() or accept(), to Rtr and Rts before establish() or accept().
//
// A Cm is a file of an open CA on the device of the communication manager. close() ends all that it
// has: requests with Cancelled, listeners, connections (the other side gets REJ or DREQ); nothing
// is called back afterwards. When the HCA is pulled out, all requests end with DeviceRemoved.
// Service IDs are shared by all clients of the HCA; those of the RDMA IP service [IBA1 annex A11]
// also with the programs of the node, whose ports they are.
//
// Statuses of all operations: InvalidParameter (a value does not fit its field, or more private
// data than cm_room has), NotFound (no such handle, or of another kind), InvalidState (out of
// place: the other side may have been faster; or this Cm is not open), DeviceRemoved, Cancelled.
//
// Thread rule: the executor's thread, dispatch level. Nothing here blocks. Nothing completes inside
// a call for another object, save that cancelling does.
#pragma once

#include "al/cm_requests.h"
#include "al/service_file.h"
#include "al/verbs.h"

namespace ib::al {

class IB_DRIVER_API Cm : public ServiceFile {
 public:
  // open() waits until queue pairs 1 of the node are open.
  explicit Cm(Ca& ca) : ServiceFile(ca, &System::cm, "communication manager") {}

  // Information: the handle. AlreadyExists: another listener gets some of these requests, or a
  // program has the port.
  void listen(const CmListenIn& in, io::IrpRef irp) { call(CmCode::Listen, in, std::move(irp)); }
  // Ends with the next request for the listener. Its handle is the client's until destroy(), or
  // respond() for a datagram service.
  void get_request(const CmHandleIn& listener, CmRequest& out, io::IrpRef irp) {
    call(CmCode::GetRequest, listener, out, std::move(irp));
  }

  // Ok: a REP came; establish() or reject() is next. Disconnected: rejected, `out` has the reason
  // and the private data; Timeout: no answer; DeviceBusy: the queue pair has another connection,
  // maybe in time-wait; NotFound: the path leads nowhere. Unless Ok, there is no connection.
  void connect(const CmConnectIn& in, CmReply& out, io::IrpRef irp) {
    call(CmCode::Connect, in, out, std::move(irp));
  }
  void establish(const CmMessageIn& in, io::IrpRef irp) {
    call(CmCode::Establish, in, std::move(irp));
  }
  // Ok: the RTU or its equivalent came. Disconnected: rejected, or it is over; Timeout: no RTU.
  void accept(const CmAcceptIn& in, CmEvent& out, io::IrpRef irp) {
    call(CmCode::Accept, in, out, std::move(irp));
  }
  void reject(const CmRejectIn& in, io::IrpRef irp) { call(CmCode::Reject, in, std::move(irp)); }
  void delay(const CmMessageIn& in, io::IrpRef irp) { call(CmCode::Delay, in, std::move(irp)); }

  // Ok also if the other side does not answer: `out.by`.
  void disconnect(const CmMessageIn& in, CmEvent& out, io::IrpRef irp) {
    call(CmCode::Disconnect, in, out, std::move(irp));
  }
  void confirm_disconnect(const CmMessageIn& in, io::IrpRef irp) {
    call(CmCode::ConfirmDisconnect, in, std::move(irp));
  }
  // The next event of a connection that no other request waits for. None is lost before it is
  // called, but of those that say "later" (Delayed) only the last is kept.
  void wait_event(const CmHandleIn& in, CmEvent& out, io::IrpRef irp) {
    call(CmCode::WaitEvent, in, out, std::move(irp));
  }

  // Of the active side. Ok: the other side has answered, `out.status`; Timeout.
  void load_path(const CmLoadPathIn& in, CmPathAnswer& out, io::IrpRef irp) {
    call(CmCode::LoadPath, in, out, std::move(irp));
  }
  void answer_path(const CmAnswerPathIn& in, io::IrpRef irp) {
    call(CmCode::AnswerPath, in, std::move(irp));
  }
  // The queue pair has migrated (event PathMig, or force_path()).
  void path_migrated(const CmHandleIn& in, io::IrpRef irp) {
    call(CmCode::PathMigrated, in, std::move(irp));
  }

  void query(const CmQueryIn& in, CmQueryOut& out, io::IrpRef irp) {
    call(CmCode::Query, in, out, std::move(irp));
  }

  // Ok: the service has answered with a queue pair. Disconnected: it refuses, `out.status`;
  // Timeout.
  void resolve(const CmResolveIn& in, CmResolved& out, io::IrpRef irp) {
    call(CmCode::Resolve, in, out, std::move(irp));
  }
  void respond(const CmRespondIn& in, io::IrpRef irp) { call(CmCode::Respond, in, std::move(irp)); }

  // Ends a listener, a connection or a request in any state: requests that wait for it end with
  // Cancelled, the other side is told as the state demands. Ok also after DeviceRemoved.
  void destroy(const CmHandleIn& in, io::IrpRef irp) { call(CmCode::Destroy, in, std::move(irp)); }

  // Any of these, with its buffers; they live until it has ended.
  void send(CmCode code, std::span<const std::byte> in, std::span<std::byte> out, io::IrpRef irp) {
    send_code(static_cast<std::uint32_t>(code), in, out, std::move(irp));
  }
};

// Moves the queue pair to its alternate path (IBAL's ib_force_apm).
inline void force_path(Qp& qp, io::IrpRef irp) {
  control::QpAttr attr;
  attr.mig_state = verbs::MigState::Migrated;
  modify_qp(qp, verbs::qp_attr::kPathMigState, attr, std::move(irp));
}

}  // namespace ib::al
