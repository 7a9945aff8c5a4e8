// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Section: this thread works with an end. It has the end's lock, and softibd takes nothing away
// meanwhile (an OpScope).
//
// The scope names the queue pair of the caller's own end, also while it works with the peer's: both
// queue pairs, and all that belongs to both ends, are softibd's. So softibd waits for a process
// that is stopped in here before it reuses anything of a stream, and no other process does
// (hca/layout/quiescence.h). That holds as softibd stores 0 in SharedEnd::stream of both ends
// before it destroys a queue pair of either, and as the queue pairs count as used
// (streams/end_setup.cpp).
#pragma once

#include "hca/layout/shm_lock.h"
#include "hca/memory/op_scope.h"
#include "streams/shared_end.h"

#include <cstdint>

namespace ib::streams {

// A process at one end of a stream.
struct Access {
  hca::MemoryPlane& plane;
  std::uint64_t stream;
  std::uint64_t executing;  // of its own end: hca::executing::queue_pair()
};

class Section {
 public:
  enum class Wait : std::uint8_t { No, Yes };
  // `end`: the own one, or within a section of that the peer's. Empty if it is not of this stream
  // any more, or the lock does not become free.
  Section(const Access& access, SharedEnd& end, Wait wait = Wait::Yes)
      : scope_(access.plane, access.executing), end_(end) {
    if (end.stream.load(std::memory_order_acquire) != access.stream) return;
    const std::uint32_t owner = hca::lock_owner(access.plane.slot());
    hca::PosterHost& host = access.plane.host();
    has_lock_ = wait == Wait::No ? hca::try_lock(end.lock, owner)
                                 : hca::lock(end.lock, owner,
                                             [&host](std::uint32_t round) { host.relax(round); });
    if (has_lock_) end.last_user.store(owner, std::memory_order_relaxed);
  }
  Section(const Section&) = delete;
  Section& operator=(const Section&) = delete;
  ~Section() {
    if (has_lock_) hca::unlock(end_.lock);
  }
  explicit operator bool() const { return has_lock_; }

 private:
  hca::OpScope scope_;
  SharedEnd& end_;
  bool has_lock_ = false;
};

}  // namespace ib::streams
