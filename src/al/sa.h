// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The subnet administrator for kernel clients [IBA1 chapter 15]: paths, registrations of services,
// subscriptions to reports, memberships in multicast groups, as IRPs (docs/design/0019). Each can
// be cancelled, and nothing blocks.
//
// An Sa is a file of an open CA on the device of the subnet administrator's client
// (service_file.h). The requests travel as MADs from queue pair 1 of the port that they name.
// Whatever the client has goes with close(): its services are deleted, its subscriptions end, and a
// port leaves a group with the last of all shares in softibd.
//
// Statuses of all operations: InvalidParameter (no such port; a field is wrong; an Ethernet port,
// which has no subnet administrator), NotFound (no record, or no such handle), InvalidState (the
// port is down, or this Sa is not open), AccessDenied (partitions or keys forbid it), Timeout (no
// answer), InsufficientResources (a limit of the subnet administrator or of this client),
// DeviceRemoved (also: the HCA sleeps), Cancelled. The reason says who refused and what to check.
// A request that does not end with Ok leaves nothing behind.
//
// Thread rule: the executor's thread, dispatch level.
#pragma once

#include "al/sa_requests.h"
#include "al/service_file.h"

namespace ib::al {

class IB_DRIVER_API Sa : public ServiceFile {
 public:
  explicit Sa(Ca& ca) : ServiceFile(ca, &System::sa, "client of the subnet administrator") {}

  // Out of the cache at once if it is there (not by service id: a service may move). Equal queries
  // of all clients are one MAD.
  void query_path(const SaPathIn& in, SaPath& out, io::IrpRef irp) {
    call(SaCode::QueryPath, in, out, std::move(irp));
  }
  // Information: the handle.
  void register_service(const SaServiceIn& in, io::IrpRef irp) {
    call(SaCode::Register, in, std::move(irp));
  }
  // Information: the handle. Reports are events.
  void subscribe(const SaSubscribeIn& in, io::IrpRef irp) {
    call(SaCode::Subscribe, in, std::move(irp));
  }
  // A port is a member once, whoever joins it. Queue pairs are attached by al::attach_multicast.
  void join(const SaJoinIn& in, SaGroup& out, io::IrpRef irp) {
    call(SaCode::Join, in, out, std::move(irp));
  }
  // The next event of an object. Up to 256 are kept before it is called.
  void wait_event(const SaHandleIn& in, SaEvent& out, io::IrpRef irp) {
    call(SaCode::WaitEvent, in, out, std::move(irp));
  }
  // Ends a registration, a subscription or a share at once; the subnet administrator is told in the
  // background. Requests that wait for it end with Cancelled. Ok also after DeviceRemoved.
  void destroy(const SaHandleIn& in, io::IrpRef irp) { call(SaCode::Destroy, in, std::move(irp)); }

  // Any of these, with its buffers; they live until it has ended.
  void send(SaCode code, std::span<const std::byte> in, std::span<std::byte> out, io::IrpRef irp) {
    send_code(static_cast<std::uint32_t>(code), in, out, std::move(irp));
  }
};

}  // namespace ib::al
