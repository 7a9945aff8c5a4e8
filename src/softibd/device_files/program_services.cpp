// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "softibd/device_files/program_services.h"

#include <algorithm>

namespace ib::softib {
namespace {

namespace control = verbs::control;

// A queue pair belongs to the process that has made it; receive queue pairs of XRC also to those
// that have opened it. The process may have ended, and its slot be another's.
auto owner_check(drivers::Core& core, std::uint32_t slot, std::uint32_t generation) {
  return [&core, slot, generation](const fabric::Hca& hca, std::uint32_t qpn) {
    const drivers::Session* process = drivers::session_of_slot(core, slot, generation);
    const drivers::Qp* qp = core.qps.find(hca::qp_index(qpn));
    if (process == nullptr || qp == nullptr || qp->qpn != qpn || qp->file->hca != &hca) {
      return false;
    }
    return std::ranges::any_of(qp->holders, [process](const drivers::Qp::Holder& one) {
      return one.file->session == process;
    });
  };
}

}  // namespace

Result<ProgramService> find_service(const al::System& services, drivers::Core& core,
                                    const control::OpenServiceIn& in, const io::Client& client,
                                    std::string& reason) {
  const drivers::Session* process = drivers::session_of_slot(core, in.slot, in.slot_generation);
  if (process == nullptr) {
    reason = "there is no such process attached";
    return Status::Disconnected;
  }
  if (process->pid != client.pid) {
    reason = "another process has the slot";
    return Status::AccessDenied;
  }
  const bool has_hca = std::ranges::any_of(
      process->files, [&in](const auto& file) { return file->hca->index == in.ca_index; });
  if (!has_hca) {
    reason = "the process has no such HCA open";
    return Status::NotFound;
  }
  if (in.kind != control::ServiceKind::Sa && in.kind != control::ServiceKind::Cm) {
    reason = "there is no such kind of service";
    return Status::InvalidParameter;
  }
  ProgramService found;
  found.device = in.kind == control::ServiceKind::Sa ? services.sa : services.cm;
  if (found.device == nullptr) {
    reason = "this softibd has no such service";
    return Status::NotSupported;
  }
  found.process = process->id;
  found.user.name = process->program;
  found.user.node = process->node->name;
  found.user.pid = process->pid;
  found.user.owns_qp = owner_check(core, in.slot, in.slot_generation);
  return found;
}

}  // namespace ib::softib
