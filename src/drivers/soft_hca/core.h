// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Core: all state of the driver `soft_hca`, and the few helpers that every request handler uses.
// The handlers are free functions, grouped by object: pd.cpp, memory_regions.cpp, cq.cpp, qp.cpp
// ...
#pragma once

#include "drivers/soft_hca/lifetime/later.h"
#include "drivers/soft_hca/memory/device_memory.h"
#include "drivers/soft_hca/objects/datagram_ways.h"
#include "drivers/soft_hca/objects/gid_chains.h"
#include "drivers/soft_hca/objects/mcast_chains.h"
#include "drivers/soft_hca/records.h"
#include "drivers/soft_hca/table.h"
#include "drivers/trace/trace.h"
#include "drivers/trace/words.h"
#include "fabric/key_violation.h"
#include "fabric/management/gmp_agents.h"
#include "fabric/management/smi.h"
#include "io/device.h"
#include "io/irp.h"
#include "platform/executor.h"

#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace ib::drivers {

// Objects of one HCA, by Kind.
using Counts = std::array<std::uint32_t, kKinds>;

// The traffic of a port (docs/design/0022): messages, requests and answers with data, and their
// payload; and packets, acknowledgements too, with their headers.
struct PortTotals {
  struct Packets {
    std::uint64_t all = 0;
    std::uint64_t multicast = 0;
    std::uint64_t bytes = 0;
  };
  std::uint64_t sent_messages = 0;
  std::uint64_t sent_bytes = 0;
  std::uint64_t received_messages = 0;
  std::uint64_t received_bytes = 0;
  Packets sent;
  Packets received;
  // Requests of one-sided operations that have come.
  struct Served {
    std::uint64_t writes = 0;
    std::uint64_t reads = 0;
    std::uint64_t atomics = 0;
  };
  Served served;
};

struct Core {
  Core(platform::Executor& loop, fabric::Fabric& model, platform::DeviceMemoryHost& host,
       std::uint64_t max_memory, std::function<void(std::string_view)> on_trace);
  ~Core() { fabric.graph().set_on_marked({}); }
  Core(const Core&) = delete;
  Core& operator=(const Core&) = delete;

  const hca::Arena& arena() const { return memory.arena(); }
  // Of objects of the process in slot `owner`, or of any (kAnyOwner).
  void after_quiescence(std::uint32_t owner, Once then) {
    later.after_quiescence(memory.arena(), owner, std::move(then));
  }
  Counts& counts_of(const HcaFile& file) { return counts[file.hca->index]; }

  platform::Executor& executor;
  fabric::Fabric& fabric;
  DeviceMemory memory;
  Trace trace;
  Fault fault;
  Instant started;

  Table<Pd> pds{control::HandleKind::Pd, 1, 1u << 20};
  Table<Key> keys{control::HandleKind::Key, 1, hca::kMaxKeys};
  Table<Dm> dms{control::HandleKind::DeviceMemory, 1, 1u << 20};
  Table<Ah> ahs{control::HandleKind::Ah, 1, 1u << 20};
  Table<Cq> cqs{control::HandleKind::Cq, 1, hca::kMaxCqs};
  Table<Xrcd> xrcds{control::HandleKind::Xrcd, 1, 1u << 18};
  Table<Srq> srqs{control::HandleKind::Srq, 1, hca::kMaxSrqs};
  Table<Qp> qps{control::HandleKind::Qp, 2,
                hca::kMaxQps - 1};  // 0 and 1 are special; the last could give 0xffffff (multicast)
  Table<McastGroupEntry> mcasts{control::HandleKind::McastGroup, 0, hca::kMaxMcast};
  Table<Channel> channels{control::HandleKind::Channel, 0, 1u << 16};
  Table<Backing> backings{control::HandleKind::Backing, 0, hca::kMaxBackings};

  std::map<std::uint64_t, std::unique_ptr<Session>> sessions;
  std::vector<Session*> by_slot;            // kMaxSlots
  std::deque<std::uint32_t> resting_slots;  // free, but had a process; the first is free longest
  std::uint32_t slots_used = 0;             // slots from here on never had a process
  // Slots of dead processes that bounce entries may still name.
  struct Settling {
    std::vector<std::uint32_t> slots;
    Instant last = Instant::min();  // when all entries were looked at
    bool is_armed = false;
  } settling;
  McastChains mcast_chains;
  GidChains gid_chains;
  DatagramWays datagram_ways;
  std::vector<std::uint8_t> qpn_tags;  // by index: the generation bits of the last number
  std::vector<std::uint16_t> srqn_tags;
  std::vector<std::uint8_t> key_tags;
  std::vector<Counts> counts;           // by HCA
  std::vector<PortTotals> port_totals;  // by port of the fabric, as far as counted (traffic.h)
  // Who has queue pairs 0 and 1: by port of the fabric, index of the queue pair.
  std::array<std::map<std::uint32_t, std::uint32_t>, 2> special_qps;

  fabric::Smi smi;
  fabric::GmpAgents gmp_agents;
  // After changes of ports that have been published.
  std::function<void(const fabric::PortChanges& changes)> on_port_changes;
  // A port, the second one, has dropped packets for their keys.
  std::function<void(const fabric::KeyViolation& violation, const fabric::Port& at)>
      on_key_violation;

  // The process of a session is over, and what it was in the middle of in the queues is repaired;
  // its slot has no successor yet.
  std::function<void(std::uint64_t session, std::uint32_t slot)> on_process_ended;

  Later later;  // last: what it still holds may use everything above
};

// --- requests ---

// Completes with an error and leaves no line in the trace: a peer that has ended in order, which
// its reporter cannot detect earlier, is no mistake of anybody.
inline void fail_quietly(io::IrpRef irp, Status status, std::string reason) {
  std::move(irp).fail(status, std::move(reason));
}
// Completes with an error and leaves a line in the trace.
void fail(Core& core, io::IrpRef irp, Status status, std::string reason);
inline void succeed(io::IrpRef irp, std::uint64_t information = 0) {
  std::move(irp).complete(Status::Ok, information);
}
// The dispatcher has checked that the output buffer is large enough.
template <class Out>
void succeed_with(io::IrpRef irp, const Out& out, std::uint64_t information = 0) {
  const bool fits = irp->set_output(out);
  IB_ASSERT(fits);
  std::move(irp).complete(Status::Ok, information);
}

// --- who ---

std::string name_of(const Core& core, const fabric::Hca& hca);  // softib0 of node0
std::string describe(const Session& session);                   // pid 4711 (ib_write_bw) on node0
Session* session_of_slot(Core& core, std::uint32_t slot);
Session* session_of_slot(Core& core, std::uint32_t slot, std::uint32_t generation);

// --- handles ---

// Objects that this file may use: its own, ready and alive. Others' do not exist for it.
template <class T>
T* find_own(const Table<T>& table, const HcaFile& file, std::uint32_t handle) {
  T* object = table.find_handle(handle);
  const bool usable =
      object != nullptr && object->file == &file && !object->making && !object->dying;
  return usable ? object : nullptr;
}
Qp* find_qp(Core& core, HcaFile& file, std::uint32_t handle);
Xrcd* find_xrcd(Core& core, HcaFile& file, std::uint32_t handle);
Key* find_key(Core& core, HcaFile& file, Kind kind, std::uint32_t handle);
// The status of a request whose handle names no object that the file may use: NotFound, or
// InvalidParameter if it is that of an object of another kind or of another file, or is missing.
// `reason`: "there is no queue pair with handle 0x17 in this file".
Status no_such(const Core& core, Kind kind, std::uint32_t handle, std::string& reason);
void fail_no_such(Core& core, io::IrpRef irp, Kind kind, std::uint32_t handle);
std::string still_busy(Kind kind, std::uint32_t handle);

// Room for one more object of this kind under the HCA's limit and under what one process may have
// of it? If not, `reason` names the limit.
bool has_room(Core& core, const HcaFile& file, Kind kind, std::uint32_t limit, std::string& reason);
// Enters it into / takes it out of the file's list and the HCA's count.
void enter(Core& core, HcaFile& file, Kind kind, std::uint32_t index);
void leave(Core& core, HcaFile& file, Kind kind, std::uint32_t index);

}  // namespace ib::drivers
