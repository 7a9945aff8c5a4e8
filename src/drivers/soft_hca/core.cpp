// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "drivers/soft_hca/core.h"

#include "drivers/soft_hca/events.h"
#include "drivers/soft_hca/handlers.h"
#include "drivers/soft_hca/objects/connection_paths.h"
#include "drivers/soft_hca/objects/traffic.h"
#include "drivers/trace/code_name.h"
#include "verbs/limits.h"

#include <fmt/format.h>

#include <algorithm>

namespace ib::drivers {

namespace limits = verbs::limits;

Core::Core(platform::Executor& loop, fabric::Fabric& model, platform::DeviceMemoryHost& host,
           std::uint64_t max_memory, std::function<void(std::string_view)> on_trace)
    : executor(loop),
      fabric(model),
      memory(host, max_memory),
      trace(std::move(on_trace), [&loop] { return loop.now(); }),
      started(loop.now()),
      by_slot(hca::kMaxSlots),
      qpn_tags(hca::kMaxQps),
      srqn_tags(hca::kMaxSrqs),
      key_tags(hca::kMaxKeys),
      counts(model.hca_count()),
      port_totals(model.device_port_count()),
      smi(model,
          {.now = [&loop] { return loop.now(); },
           .on_changes =
               [this](const fabric::PortChanges& changes) { apply_changes(*this, changes); }}),
      gmp_agents(model.graph(), loop,
                 [this](const fabric::Port& port) { return port_counters(*this, port); }),
      later(loop, host.barriers(), [this](std::uint32_t slot) {
        return by_slot[slot] == nullptr || by_slot[slot]->buried;
      }) {
  later.on_slow([this](std::uint32_t owner, const Later::Holder& holder) {
    const Session* waits = session_of_slot(*this, owner);
    const Session* inside = session_of_slot(*this, holder.slot);
    if (inside == nullptr) return;
    trace.add(
        fmt::format("{}: a change waits since 1 s for {}, which is in the middle of a work "
                    "request; is it stopped?",
                    waits != nullptr ? describe(*waits) : "softibd itself", describe(*inside)));
  });
  (void)fabric.graph().take_forwarding_marks();  // of how it was made: nothing is on a way yet
  fabric.graph().set_on_marked([this] { follow_forwarding_soon(*this); });
  memory.set_on_attention([this](std::uint32_t slot) {
    if (Session* session = by_slot[slot]; session != nullptr) raise_attention(*this, *session);
  });
}

const char* kind_name(Kind kind) {
  switch (kind) {
    case Kind::Qp: return "queue pair";
    case Kind::Srq: return "shared receive queue";
    case Kind::Cq: return "completion queue";
    case Kind::Ah: return "address handle";
    case Kind::Window: return "memory window";
    case Kind::Region: return "memory region";
    case Kind::DeviceMemory: return "device memory";
    case Kind::Xrcd: return "XRC domain";
    case Kind::Pd: return "protection domain";
  }
  return "object";
}

// Requests without a file are steps of ours, as when a connection comes: no program's mistake.
static void trace_refusal(Core& core, const io::Irp& irp, const std::string& reason) {
  if (irp.file == nullptr || irp.major != io::Major::DeviceControl) {
    return core.trace.add(fmt::format("a step of softibd was refused: {}", reason),
                          TraceKind::Device);
  }
  TraceEntry entry;
  entry.kind = TraceKind::Refused;
  const io::FileObject& process = irp.file->process() != nullptr ? *irp.file->process() : *irp.file;
  entry.pid = process.client().pid;
  std::string who = fmt::format("pid {}", entry.pid);
  const auto found = core.sessions.find(process.client().session);
  if (found != core.sessions.end()) {
    const Session& session = *found->second;
    who = describe(session);
    entry.program = session.program;
    if (session.node != nullptr) entry.node = session.node->name;
  }
  entry.text = fmt::format("{}: {} refused: {}", who, verb_name(irp.code), reason);
  core.trace.add(std::move(entry));
}

void fail(Core& core, io::IrpRef irp, Status status, std::string reason) {
  trace_refusal(core, *irp, reason);
  std::move(irp).fail(status, std::move(reason));
}

std::string name_of(const Core& core, const fabric::Hca& hca) {
  return fmt::format("{} of {}", hca.name, core.fabric.node_of(hca).name);
}

std::string describe(const Session& session) {
  std::string text = fmt::format("pid {}", session.pid);
  if (!session.program.empty()) text += fmt::format(" ({})", session.program);
  if (session.node != nullptr) text += fmt::format(" on {}", session.node->name);
  return text;
}

Session* session_of_slot(Core& core, std::uint32_t slot) {
  return slot < core.by_slot.size() ? core.by_slot[slot] : nullptr;
}

Session* session_of_slot(Core& core, std::uint32_t slot, std::uint32_t generation) {
  Session* session = session_of_slot(core, slot);
  return session != nullptr && session->generation == generation && !session->ending ? session
                                                                                     : nullptr;
}

Qp* find_qp(Core& core, HcaFile& file, std::uint32_t handle) {
  Qp* qp = core.qps.find_handle(handle);
  if (qp == nullptr || qp->making || qp->dying || !file.of(Kind::Qp).contains(qp->index))
    return nullptr;
  return qp;
}

Xrcd* find_xrcd(Core& core, HcaFile& file, std::uint32_t handle) {
  Xrcd* xrcd = core.xrcds.find_handle(handle);
  return xrcd != nullptr && file.of(Kind::Xrcd).contains(xrcd->index) ? xrcd : nullptr;
}

Key* find_key(Core& core, HcaFile& file, Kind kind, std::uint32_t handle) {
  Key* key = find_own(core.keys, file, handle);
  return key != nullptr && key->kind == kind ? key : nullptr;
}

// A handle has its kind in it, so that no two tables have the same one.
static bool is_given_out(const Core& core, std::uint32_t handle) {
  const auto in_any = [handle](const auto&... tables) {
    return ((tables.find_handle(handle) != nullptr) || ...);
  };
  return in_any(core.pds, core.keys, core.dms, core.ahs, core.cqs, core.xrcds, core.srqs, core.qps,
                core.channels, core.backings);
}

Status no_such(const Core& core, Kind kind, std::uint32_t handle, std::string& reason) {
  if (handle == control::kNoIndex) {
    reason = fmt::format("a {} is required here", kind_name(kind));
    return Status::InvalidParameter;
  }
  reason = fmt::format(
      "there is no {} with handle {:#x} in this file (destroyed already, or another process's)",
      kind_name(kind), handle);
  return is_given_out(core, handle) ? Status::InvalidParameter : Status::NotFound;
}

void fail_no_such(Core& core, io::IrpRef irp, Kind kind, std::uint32_t handle) {
  std::string reason;
  const Status status = no_such(core, kind, handle, reason);
  fail(core, std::move(irp), status, std::move(reason));
}

std::string still_busy(Kind kind, std::uint32_t handle) {
  return fmt::format("{} {} is being changed by another request", kind_name(kind),
                     control::index_of(handle));
}

bool has_room(Core& core, const HcaFile& file, Kind kind, std::uint32_t limit,
              std::string& reason) {
  if (core.fault.is_set() && core.fault(fmt::format("one more {}", kind_name(kind)), reason)) {
    return false;
  }
  const auto k = static_cast<std::size_t>(kind);
  if (core.counts_of(file)[k] >= limit) {
    reason = fmt::format("HCA {} has all the {} {}s that it can have", file.hca->name, limit,
                         kind_name(kind));
    return false;
  }
  std::size_t held = 0;
  for (const auto& other : file.session->files) {
    if (other->hca == file.hca) held += other->objects[k].size();
  }
  const std::uint32_t quota = limits::quota_of_one(limit);
  if (held < quota) return true;
  reason = fmt::format(
      "this process has {} {}s of HCA {}, and no more than that of its {} are for one process",
      quota, kind_name(kind), file.hca->name, limit);
  return false;
}

void enter(Core& core, HcaFile& file, Kind kind, std::uint32_t index) {
  const bool is_new = file.of(kind).insert(index).second;
  IB_ASSERT(is_new);
  ++core.counts_of(file)[static_cast<std::size_t>(kind)];
}

void leave(Core& core, HcaFile& file, Kind kind, std::uint32_t index) {
  const bool was_there = file.of(kind).erase(index) == 1;
  IB_ASSERT(was_there);
  --core.counts_of(file)[static_cast<std::size_t>(kind)];
}

}  // namespace ib::drivers
