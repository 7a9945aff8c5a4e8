// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "drivers/soft_hca/lifetime/process_slots.h"

#include "base/buffers.h"
#include "drivers/soft_hca/objects/completion_channels.h"

#include <fmt/format.h>

#include <algorithm>

namespace ib::drivers {
namespace {

constexpr Duration kBusyRetry = std::chrono::milliseconds(1);
constexpr int kBusyTries = 1000;
constexpr Duration kBounceRetry = std::chrono::milliseconds(10);
// Between looks at the bounce entries of all processes: those that die meanwhile share the next.
constexpr Duration kSettlePause = std::chrono::milliseconds(1);

// Slots rest before they are used again; but not for longer than it takes kRestingSlots others to
// end, since each one that was ever used keeps its pages and is looked at in every quiescence.
constexpr std::size_t kRestingSlots = 64;

std::uint32_t free_slot_index(Core& core) {
  const bool fresh_ones = core.slots_used < hca::kMaxSlots;
  if (fresh_ones && core.resting_slots.size() < kRestingSlots) return core.slots_used++;
  if (core.resting_slots.empty()) return hca::kNone;
  const std::uint32_t i = core.resting_slots.front();
  core.resting_slots.pop_front();
  return i;
}

// Generations are odd while a process has the slot.
std::uint32_t take_slot(Core& core, Session& session) {
  const std::uint32_t i = free_slot_index(core);
  if (i == hca::kNone) return i;
  IB_ASSERT(core.by_slot[i] == nullptr);
  core.by_slot[i] = &session;
  hca::ProcessSlot& slot = *core.arena().slot(i);
  session.slot = i;
  session.generation = (slot.generation.load() | 1u);
  slot.pid = session.pid;
  put_text(slot.program, session.program);
  slot.doorbell.store(0);
  slot.waiting.store(0);
  slot.attention.store(0);
  slot.late_events.store(0);
  slot.own_pid.store(0);
  slot.unacknowledged.store(0);
  slot.plate_address.store(0);
  slot.words_used.store(0);
  for (hca::ThreadWord& word : slot.threads) word.sequence.store(0);
  slot.generation.store(session.generation, std::memory_order_seq_cst);
  core.arena().header().slots_used.store(core.slots_used, std::memory_order_seq_cst);
  slot.live.store(1, std::memory_order_seq_cst);
  return i;
}

control::AttachOut attach_out(const Session& session) {
  control::AttachOut out;
  out.slot = session.slot;
  out.slot_generation = session.generation;
  out.arena_size = hca::kArenaSpace;
  put_text(out.node, session.node->name);
  for (const fabric::Hca& hca : session.node->hcas) {
    if (out.ca_count == out.cas.size()) break;
    if (!hca.present) continue;
    put_text(out.cas[out.ca_count].name, hca.name);
    out.cas[out.ca_count].node_guid = hca.node_guid;
    ++out.ca_count;
  }
  return out;
}

bool is_executing(Core& core, const Session& session) {
  const hca::ProcessSlot& slot = *core.arena().slot(session.slot);
  return std::any_of(slot.threads.begin(), slot.threads.end(), [](const hca::ThreadWord& word) {
    return (word.sequence.load(std::memory_order_acquire) & 1) != 0;
  });
}

void erase(Core& core, Session& session) {
  const std::uint64_t id = session.id;
  core.sessions.erase(id);
}

void settle(Core& core) {
  Core::Settling& settling = core.settling;
  settling.is_armed = false;
  settling.last = core.later.now();
  for (const std::uint32_t slot : settle_bounces(core, settling.slots)) {
    core.resting_slots.push_back(slot);
  }
  if (settling.slots.empty()) return;
  settling.is_armed = true;
  core.later.in(kBounceRetry, [&core] { settle(core); });
}

// The slot may get another process once nothing in device memory names this one.
void free_slot(Core& core, std::uint32_t slot) {
  Core::Settling& settling = core.settling;
  settling.slots.push_back(slot);
  if (settling.is_armed) return;
  const Instant next = settling.last + kSettlePause;
  if (core.later.now() >= next) return settle(core);
  settling.is_armed = true;
  core.later.at(next, [&core] { settle(core); });
}

void retire(Core& core, std::uint64_t id, int tries = 0) {
  Session& session = *core.sessions.at(id);
  hca::ProcessSlot& slot = *core.arena().slot(session.slot);
  // Cut off by its library (exec, dlclose) while a thread is in a work request: let that finish,
  // since what it does next must not fall into our repair. A dead process will not finish.
  if (tries < kBusyTries && is_executing(core, session) &&
      core.memory.host().is_alive(session.pid)) {
    core.later.in(kBusyRetry, [&core, id, tries] { retire(core, id, tries + 1); });
    return;
  }
  session.buried = true;
  // Until that is done the process counts as one that may deliver: with these stores others take
  // what it has delivered to for consistent, and flush it.
  repair_after(core, session);
  slot.live.store(0, std::memory_order_seq_cst);
  slot.generation.store(session.generation + 1, std::memory_order_seq_cst);
  if (core.on_process_ended) core.on_process_ended(id, session.slot);
  notify_peers(core, session);
  tear_down(core, session.slot, session.files, [&core, id] {
    Session& gone = *core.sessions.at(id);
    gone.files.clear();
    release_channels_and_backings(core, gone);
    core.by_slot[gone.slot] = nullptr;
    free_slot(core, gone.slot);
    erase(core, gone);
  });
}

}  // namespace

void attach(Core& core, Session& session, const control::AttachIn& in, io::IrpRef irp) {
  if (in.abi != control::kAbiVersion) {
    return fail(core, std::move(irp), Status::NotSupported,
                fmt::format("this program speaks version {} of the control interface, softibd {}: "
                            "they are from different installations",
                            in.abi, control::kAbiVersion));
  }
  if (session.slot != hca::kNone) {
    return fail(core, std::move(irp), Status::InvalidState, "this connection has attached already");
  }
  constexpr std::uint32_t kFlags =
      control::attach_flag::kCaEvents | control::attach_flag::kAttention;
  if ((in.flags & ~kFlags) != 0) {
    return fail(core, std::move(irp), Status::InvalidParameter,
                fmt::format("Attach knows no flags {:#x}", in.flags & ~kFlags));
  }
  const fabric::Node* node = core.fabric.find_node(text_in(in.node));
  if (node == nullptr) {
    return fail(core, std::move(irp), Status::NotFound,
                fmt::format("this fabric has no node \"{}\"; `softib status` lists them",
                            text_in(in.node)));
  }
  std::string reason;
  auto memory = core.memory.host().device_memory_handle(reason);
  if (!memory) return fail(core, std::move(irp), memory.error(), std::move(reason));
  session.node = node;
  session.program = text_in(in.program);
  if (take_slot(core, session) == hca::kNone) {
    session.node = nullptr;
    return fail(core, std::move(irp), Status::InsufficientResources,
                fmt::format("all {} process slots of the fabric are in use", hca::kMaxSlots));
  }
  session.wants_ca_events = (in.flags & control::attach_flag::kCaEvents) != 0;
  session.wants_attention = (in.flags & control::attach_flag::kAttention) != 0;
  irp->file->client().node = node->name;
  irp->out_handles[0] = *std::move(memory);
  succeed_with(std::move(irp), attach_out(session));
}

void end_session(Core& core, Session& session) {
  if (session.ending) return;
  session.ending = true;
  session.events.clear();
  core.fabric.ip_interfaces().remove_all_of(session.id);
  session.waiters.fail_all(Status::Disconnected, "the process has gone");
  for (const auto& file : session.files) file->closing = true;
  if (session.slot == hca::kNone) return erase(core, session);
  retire(core, session.id);
}

}  // namespace ib::drivers
