// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "softibd/device_files/daemon_rdma_cm.h"

#include "drivers/soft_hca/core.h"
#include "services/rdma_cm/addresses/places.h"
#include "softibd/connections_json.h"
#include "softibd/daemon_request.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>

namespace ib::softib {
namespace {

using services::rdma_cm::File;
using services::rdma_cm::Service;
using services::rdma_cm::ServiceOptions;
using verbs::control::kRdmaCmBytes;
using verbs::control::RdmaCmIn;
using verbs::control::RdmaCmNeed;
using verbs::control::RdmaCmOut;

// A queue pair belongs to the process that has made it; receive queue pairs of XRC also to those
// that have opened it.
services::rdma_cm::QueuePairOwner owner_of(const drivers::Core& core, const fabric::Hca& hca,
                                           std::uint32_t qpn, std::uint32_t pid) {
  using services::rdma_cm::QueuePairOwner;
  const drivers::Qp* qp = core.qps.find(hca::qp_index(qpn));
  if (qp == nullptr || qp->qpn != qpn || qp->file->hca != &hca) return QueuePairOwner::Nobody;
  const bool is_callers = std::ranges::any_of(
      qp->holders, [pid](const drivers::Qp::Holder& one) { return one.file->session->pid == pid; });
  return is_callers ? QueuePairOwner::Caller : QueuePairOwner::Other;
}

ServiceOptions make_options(platform::Executor& executor, std::mt19937& random,
                            drivers::Core& core) {
  drivers::Trace& trace = core.trace;
  ServiceOptions options;
  options.find_owner = [&core](const fabric::Hca& hca, std::uint32_t qpn, std::uint32_t pid) {
    return owner_of(core, hca, qpn, pid);
  };
  options.random = [&random] { return static_cast<std::uint32_t>(random()); };
  options.now = [&executor] { return executor.now(); };
  options.trace = [&trace](std::string line, const File* file, std::string_view node) {
    drivers::TraceEntry entry;
    entry.kind = drivers::TraceKind::Refused;
    entry.node = node;
    if (file != nullptr) {
      entry.program = file->options.program;
      entry.pid = file->options.pid;
    }
    entry.text = std::move(line);
    trace.add(std::move(entry));
  };
  return options;
}

// Lives as long as its file.
struct Notice {
  std::uint32_t file;
  DaemonRdmaCm::SendNotice send;
};

}  // namespace

DaemonRdmaCm::DaemonRdmaCm(const fabric::Fabric& fabric, DaemonDevices& devices)
    : fabric_(fabric),
      connector_(devices.cm()),
      routes_(devices.sa(), devices.cm().executor()),
      service_(fabric, connector_, routes_,
               make_options(devices.cm().executor(), random_, devices.tree().core())),
      kernel_ports_(fabric, service_.ports()),
      cm_(devices.cm()),
      drivers_(devices.cm_device()) {
  cm_.set_ports(&kernel_ports_);
}

Result<std::uint32_t> DaemonRdmaCm::open(const verbs::control::OpenRdmaCmIn& in, std::uint32_t pid,
                                         SendNotice send_notice, std::string& reason) {
  const std::string name = printable(in.node);
  const fabric::Node* node = fabric_.find_node(name);
  if (node == nullptr) {
    reason = "there is no node " + name;
    return Status::NotFound;
  }
  const auto notice = std::make_shared<Notice>(Notice{0, std::move(send_notice)});
  // A program that is about to get the event needs no notice.
  const auto soon = [this, notice] {
    cm_.executor().post_late([this, weak = std::weak_ptr(notice)] {
      const auto still = weak.lock();
      if (still == nullptr) return;
      if (const auto ahead = service_.give_notice(still->file)) {
        still->send(std::as_bytes(std::span(ahead->data(), ahead->size())));
      }
    });
  };
  notice->file = service_.open(
      {services::rdma_cm::index_of(fabric_, *node), pid, printable(in.program), soon});
  return notice->file;
}

std::optional<DaemonRdmaCm::Command> DaemonRdmaCm::read_command(std::span<const std::byte> input) {
  Command in;
  if (input.size() < sizeof in.head || input.size() > sizeof(RdmaCmIn)) return std::nullopt;
  std::memcpy(&in.head, input.data(), sizeof in.head);
  const auto part = [input](std::size_t at, std::uint64_t size) {
    const std::size_t wanted = std::min<std::uint64_t>(size, kRdmaCmBytes);
    return at + wanted <= input.size() ? std::optional(input.subspan(at, wanted)) : std::nullopt;
  };
  const auto bytes = part(offsetof(RdmaCmIn, bytes), in.head.size);
  if (!bytes) return std::nullopt;
  in.bytes = *bytes;
  if (in.head.option_size == 0) return in;
  const auto option = part(offsetof(RdmaCmIn, option), in.head.option_size);
  if (!option) return std::nullopt;
  in.option = *option;
  return in;
}

DaemonRdmaCm::Answered DaemonRdmaCm::command(const Command& in, std::uint32_t pid,
                                             std::span<std::byte> output,
                                             services::rdma_cm::EventOffer* offer) {
  const auto as_data = [](std::span<const std::byte> bytes) {
    return std::span(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
  };
  Service::Request request;
  request.file = in.head.file;
  request.pid = pid;
  request.from_file = in.head.from_file;
  request.size = in.head.size;
  request.bytes = as_data(in.bytes);
  request.option = as_data(in.option);
  request.takes_ahead = (in.head.flags & verbs::control::rdma_cm_in_flag::kTakesAhead) != 0;
  if (request.takes_ahead) request.offer = offer;
  const Service::Answer answer = service_.command(request);
  RdmaCmOut out;
  out.result = -static_cast<std::int32_t>(answer.error);
  out.flags = (answer.is_drained ? verbs::control::rdma_cm_flag::kDrained : 0) |
              (answer.is_old_file_drained ? verbs::control::rdma_cm_flag::kOldFileDrained : 0);
  out.address = answer.address;
  IB_ASSERT(answer.data.size() <= out.bytes.size());
  out.size = static_cast<std::uint32_t>(answer.data.size());
  std::copy(answer.data.begin(), answer.data.end(), out.bytes.begin());
  out.need = static_cast<RdmaCmNeed>(answer.need);
  out.need_address = answer.need_address;
  out.need_size = answer.need_size;
  out.ahead_size = static_cast<std::uint32_t>(answer.ahead.size());
  IB_ASSERT(sizeof out + answer.ahead.size() <= output.size());
  std::memcpy(output.data(), &out, sizeof out);
  if (!answer.ahead.empty()) {
    std::memcpy(output.data() + sizeof out, answer.ahead.data(), answer.ahead.size());
  }
  return {sizeof out + answer.ahead.size(), out.result};
}

bool DaemonRdmaCm::await_event(std::uint32_t file, std::function<void()> on_event) {
  return service_.await_event(file, [this, on_event = std::move(on_event)]() mutable {
    cm_.executor().post(std::move(on_event));
  });
}

nlohmann::ordered_json DaemonRdmaCm::list() {
  std::vector<services::rdma_cm::Listing> all = service_.list();
  drivers_.list(all);
  services::rdma_cm::find_other_ends(all);
  return connections_json(fabric_, all);
}

}  // namespace ib::softib
