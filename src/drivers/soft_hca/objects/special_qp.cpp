// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Queue pairs 0 (SMI) and 1 (GSI) of a port. The first kernel client that creates one has it, until
// it destroys it; messages to a port's queue pair without an owner are dropped. The agents of the
// port are no part of it: the owner of queue pair 0 queries them by LocalMad (docs/design/0008).
#include "drivers/soft_hca/handlers.h"

#include <fmt/format.h>

namespace ib::drivers {
namespace {

std::size_t which(verbs::QpType type) {
  return type == verbs::QpType::Smi ? 0 : 1;
}

std::uint32_t port_index(const Qp& qp) {
  return qp.file->hca->first_port + qp.special_port - 1;
}

}  // namespace

Status check_special(Core& core, HcaFile& file, const control::CreateQpIn& in,
                     io::RequestorMode mode, std::string& reason) {
  if (!verbs::is_special(in.type)) {
    if (in.port == 0) return Status::Ok;
    reason = fmt::format("port {}; only queue pairs 0 and 1 are made for a port", in.port);
    return Status::InvalidParameter;
  }
  const std::size_t number = which(in.type);
  if (mode != io::RequestorMode::Kernel) {
    reason = fmt::format("queue pair {} of a port is for kernel clients", number);
    return Status::AccessDenied;
  }
  if (find_port(file, in.port) == nullptr) {
    reason = no_such_port(file, in.port);
    return Status::InvalidParameter;
  }
  if (in.srq != control::kNoIndex) {
    reason = fmt::format("queue pair {} has a receive queue of its own", number);
    return Status::InvalidParameter;
  }
  const auto taken = core.special_qps[number].find(file.hca->first_port + in.port - 1);
  if (taken == core.special_qps[number].end()) return Status::Ok;
  const Qp& there = *core.qps.find(taken->second);
  reason = fmt::format("{} has queue pair {} of port {}{}", describe(*there.file->session), number,
                       in.port, there.dying ? " still" : "");
  return Status::AlreadyExists;
}

void enter_special(Core& core, Qp& qp, std::uint32_t port) {
  if (!verbs::is_special(qp.type)) return;
  qp.special_port = static_cast<std::uint8_t>(port);
  qp.attr.port = qp.special_port;
  core.special_qps[which(qp.type)][port_index(qp)] = qp.index;
}

void publish_special(Core& core, const Qp& qp) {
  if (!verbs::is_special(qp.type)) return;
  core.arena()
      .port(port_index(qp))
      ->special[which(qp.type)]
      .store(qp.qpn, std::memory_order_seq_cst);
}

void hide_special(Core& core, const Qp& qp) {
  if (!verbs::is_special(qp.type)) return;
  core.arena().port(port_index(qp))->special[which(qp.type)].store(0, std::memory_order_seq_cst);
}

void leave_special(Core& core, const Qp& qp) {
  if (verbs::is_special(qp.type)) core.special_qps[which(qp.type)].erase(port_index(qp));
}

}  // namespace ib::drivers
