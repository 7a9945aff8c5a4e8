// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The model of a random walk: every byte of both sides' memory, and the completions that each side
// must still get, in their order.
//
// The unit is the lane: one direction of a connection, with memory of its own at both ends. Within
// a lane everything happens in the order of posting, so its model can be exact. Lanes do not share
// memory, so their relative timing does not matter.
#pragma once

#include "side.h"

#include <cstdint>
#include <deque>
#include <set>
#include <vector>

namespace ib::conformance {

// Registered memory and what it should contain.
struct ModelArea {
  Region region;
  std::vector<std::uint8_t> bytes;

  std::uint64_t word(std::uint64_t at) const {
    std::uint64_t value = 0;
    for (std::uint64_t i = 8; i > 0; --i) value = value << 8 | bytes[at + i - 1];
    return value;
  }
  void set_word(std::uint64_t at, std::uint64_t value) {
    for (std::uint64_t i = 0; i < 8; ++i) bytes[at + i] = static_cast<std::uint8_t>(value >> 8 * i);
  }
};

// Bytes of an area, an element of a gather or scatter list.
struct Extent {
  std::uint64_t at = 0;
  std::uint32_t length = 0;
};

struct ModelReceive {
  std::uint64_t wr_id = 0;
  std::uint32_t slot = 0;
  std::vector<Extent> extents;
};

// A queue of receives, of one lane or shared by several. Each slot of its memory is used by one
// receive at a time: the content of a receive's buffer is undefined until its completion is polled.
struct ModelReceiveQueue {
  static constexpr std::uint32_t kSlots = 32;
  static constexpr std::uint32_t kSlotBytes = 2048;
  static constexpr std::uint32_t kCapacity = 1024;  // every receive has room for this size

  ModelArea area;
  Srq srq;                          // if it is shared
  std::deque<ModelReceive> posted;  // not consumed yet
  std::vector<std::uint32_t> free_slots;

  bool is_shared() const { return srq.handle != kNoHandle; }
};

struct ModelSend {
  Work work;  // as posted
  std::vector<Extent> local;
  std::vector<std::uint8_t> inline_bytes;
  std::uint64_t remote = 0;  // offset in the lane's far area
};

struct Expected {
  std::uint64_t wr_id = 0;
  WcStatus status = WcStatus::Success;
  WcOpcode opcode = WcOpcode::Send;
  std::uint32_t byte_len = 0;
  std::uint32_t imm = 0;
  bool has_imm = false;
  ModelReceive receive;  // that a receive's completion ends
};

struct ModelLane {
  int from = 0;  // the requester's side
  QpType type = QpType::Rc;
  Qp requester;
  Qp responder;
  ModelArea near;   // RDMA and send data of the requester
  ModelArea far;    // RDMA targets of the responder
  ModelArea still;  // source of inline sends; never changes
  ModelReceiveQueue own;
  ModelReceiveQueue* receives = nullptr;

  bool has_received = false;  // the responder has had a receive since its last reset

  std::deque<ModelSend> waiting;  // for a receive
  std::deque<Expected> sends;     // completions that the requester must still get
  std::deque<Expected> arrivals;  // completions that the responder must still get
  std::deque<std::pair<std::uint64_t, bool>> queue;  // send slots in use: wr_id, signalled

  bool is_idle() const { return waiting.empty(); }
};

// Executes all requests that can be executed, exactly as the HCA must.
inline void run(ModelLane& lane) {
  const auto gather = [&lane](const ModelSend& send) {
    std::vector<std::uint8_t> data = send.inline_bytes;
    for (const Extent& e : send.local) {
      const auto first = lane.near.bytes.begin() + static_cast<std::ptrdiff_t>(e.at);
      data.insert(data.end(), first, first + e.length);
    }
    return data;
  };
  const auto scatter = [](ModelArea& area, const std::vector<Extent>& to,
                          const std::vector<std::uint8_t>& data) {
    std::size_t next = 0;
    for (const Extent& e : to) {
      for (std::uint32_t i = 0; i < e.length && next < data.size(); ++i) {
        area.bytes[e.at + i] = data[next++];
      }
    }
  };
  while (!lane.waiting.empty()) {
    const ModelSend& send = lane.waiting.front();
    const WrOpcode opcode = send.work.opcode;
    const bool is_send = opcode == WrOpcode::Send || opcode == WrOpcode::SendWithImm;
    const bool needs_receive = is_send || opcode == WrOpcode::RdmaWriteWithImm;
    const bool is_lost = needs_receive && lane.receives->posted.empty();
    if (is_lost && lane.type != QpType::Uc) return;
    Expected done;
    done.wr_id = send.work.wr_id;
    if (!is_lost) {
      const std::vector<std::uint8_t> data = gather(send);
      const auto at = static_cast<std::size_t>(send.remote);
      const std::vector<Extent> remote{{send.remote, static_cast<std::uint32_t>(data.size())}};
      Expected arrival;
      arrival.byte_len = static_cast<std::uint32_t>(data.size());
      switch (opcode) {
        case WrOpcode::RdmaWrite:
        case WrOpcode::RdmaWriteWithImm: scatter(lane.far, remote, data); break;
        case WrOpcode::RdmaRead: {
          const auto first = lane.far.bytes.begin() + static_cast<std::ptrdiff_t>(at);
          scatter(lane.near, send.local, {first, first + static_cast<std::ptrdiff_t>(data.size())});
          break;
        }
        case WrOpcode::AtomicCmpSwap:
        case WrOpcode::AtomicFetchAdd: {
          const std::uint64_t old = lane.far.word(at);
          const bool swap = opcode == WrOpcode::AtomicCmpSwap;
          if (!swap) lane.far.set_word(at, old + send.work.compare_add);
          if (swap && old == send.work.compare_add) lane.far.set_word(at, send.work.swap);
          lane.near.set_word(send.local[0].at, old);
          break;
        }
        case WrOpcode::AtomicWrite: lane.far.set_word(at, send.work.compare_add); break;
        case WrOpcode::Send:
        case WrOpcode::SendWithImm:
          scatter(lane.receives->area, lane.receives->posted.front().extents, data);
          break;
        case WrOpcode::Flush:  // what is there already, stays
        case WrOpcode::LocalInv:
        case WrOpcode::BindMw:
        case WrOpcode::SendWithInv: break;
      }
      if (needs_receive) {
        arrival.receive = lane.receives->posted.front();
        lane.receives->posted.pop_front();
        arrival.wr_id = arrival.receive.wr_id;
        arrival.opcode = is_send ? WcOpcode::Recv : WcOpcode::RecvRdmaWithImm;
        arrival.has_imm = opcode != WrOpcode::Send;
        arrival.imm = send.work.imm;
        lane.arrivals.push_back(arrival);
      }
    }
    if ((send.work.flags & send_flag::kSignaled) != 0) lane.sends.push_back(done);
    lane.waiting.pop_front();
  }
}

}  // namespace ib::conformance
