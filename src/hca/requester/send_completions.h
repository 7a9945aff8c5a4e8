// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// SendCompletions: what a send queue writes into its completion queue [IBA1 10.8.5].
//
// Thread rule: that of Requester.
#pragma once

#include "hca/memory/memory_plane.h"
#include "hca/queues/cq_producer.h"
#include "hca/requester/send_wqe.h"

#include <cstdint>

namespace ib::hca {

class SendCompletions {
 public:
  SendCompletions(MemoryPlane& plane, const RequesterConfig& config, QpEntry& own)
      : plane_(plane),
        own_(own),
        cq_(plane.arena(), config.send_cq),
        signal_all_(config.signal_all) {}

  // Writes the completion of the request at `position`, if it has one.
  void write(const SendWqe& wqe, std::uint64_t position, verbs::WcStatus status, Cause cause,
             std::uint32_t bytes);

  // --- the fast path (fast_path_post.h) ---

  // Refreshes the common part of its completions. There is a completion queue.
  void refresh();
  bool look_again() { return cq_.look_again(plane_.arena()); }
  // Writes the completion of a request that has succeeded. Returns false if finish_fast() has to.
  [[gnu::always_inline]] bool write_fast(std::uint32_t flags, std::uint64_t position,
                                         std::uint32_t bytes, verbs::WcOpcode opcode) {
    if (!signal_all_ && (flags & verbs::send_flag::kSignaled) == 0) return true;
    return are_plain_ && cq_.push_fast(plane_.slot(), nullptr, [&](Cqe& slot) {
      write_sent(slot, position, bytes, opcode);
    });
  }
  // The same, whatever its queue is like.
  void finish_fast(std::uint32_t flags, std::uint64_t position, std::uint32_t bytes,
                   verbs::WcOpcode opcode) noexcept;

 private:
  [[gnu::always_inline]] void write_sent(Cqe& slot, std::uint64_t position, std::uint32_t bytes,
                                         verbs::WcOpcode opcode) const {
    sent_.write(slot);
    slot.wqe = static_cast<std::uint32_t>(position);
    slot.byte_len = bytes;
    slot.opcode = static_cast<std::uint32_t>(opcode);
  }
  void refused();
  std::uint64_t now() const;

  MemoryPlane& plane_;
  QpEntry& own_;
  CqProducer cq_;
  CompletionHead sent_;  // the common part of its successful completions
  bool signal_all_;
  bool are_plain_ = false;  // they are sent_ and no more; by refresh()
};

}  // namespace ib::hca
