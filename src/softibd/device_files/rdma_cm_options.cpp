// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "softibd/device_files/rdma_cm_options.h"

#include <algorithm>
#include <string>
#include <utility>

namespace ib::softib {
namespace {

using services::rdma_cm::File;
using services::rdma_cm::QueuePairOwner;

// A queue pair belongs to the process that has made it; receive queue pairs of XRC also to those
// that have opened it.
QueuePairOwner owner_of(const drivers::Core& core, const fabric::Hca& hca, std::uint32_t qpn,
                        std::uint32_t pid) {
  const drivers::Qp* qp = core.qps.find(hca::qp_index(qpn));
  if (qp == nullptr || qp->qpn != qpn || qp->file->hca != &hca) return QueuePairOwner::Nobody;
  const bool is_callers = std::ranges::any_of(
      qp->holders, [pid](const drivers::Qp::Holder& one) { return one.file->session->pid == pid; });
  return is_callers ? QueuePairOwner::Caller : QueuePairOwner::Other;
}

void add_line(drivers::Trace& trace, std::string line, const File* file, std::string_view node) {
  drivers::TraceEntry entry;
  entry.kind = drivers::TraceKind::Refused;
  entry.node = node;
  if (file != nullptr) {
    entry.program = file->options.program;
    entry.pid = file->options.pid;
  }
  entry.text = std::move(line);
  trace.add(std::move(entry));
}

}  // namespace

services::rdma_cm::ServiceOptions rdma_cm_options(platform::Executor& executor, drivers::Core& core,
                                                  std::function<std::uint32_t()> random) {
  services::rdma_cm::ServiceOptions options;
  options.find_owner = [&core](const fabric::Hca& hca, std::uint32_t qpn, std::uint32_t pid) {
    return owner_of(core, hca, qpn, pid);
  };
  options.random = std::move(random);
  options.now = [&executor] { return executor.now(); };
  options.trace = [&trace = core.trace](std::string line, const File* file, std::string_view node) {
    add_line(trace, std::move(line), file, node);
  };
  return options;
}

}  // namespace ib::softib
