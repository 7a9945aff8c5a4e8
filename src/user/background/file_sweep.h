// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// FileSweep: lets go what this process has of files that its peers have destroyed or left behind.
// Nobody says when that is: it queries softibd now and then.
//
// Thread rule: the service thread's, but for peer_may_go() and wants_round().
#pragma once

#include "base/time.h"
#include "hca/layout/quiescence.h"
#include "hca/memory/memory_plane.h"
#include "hca/memory/sweep_schedule.h"
#include "platform/client_host.h"
#include "user/peer_files.h"

#include <atomic>
#include <optional>
#include <vector>

namespace ib::user {

class FileSweep {
 public:
  FileSweep(platform::ClientHost& host, PeerFiles& files, hca::MemoryPlane& plane)
      : host_(host), files_(files), plane_(plane) {}

  // A connection has ended, and what is its peer's may soon be gone. Returns true if the service
  // thread is to be woken for it. Any thread.
  bool peer_may_go() {
    return files_.count() != 0 && !peer_may_go_.exchange(true, std::memory_order_acq_rel);
  }
  // There are more files than the last round has planned for. Any thread.
  bool wants_round() const { return files_.count() >= schedule_.many(); }

  // Returns how long the thread may sleep.
  Duration round();

 private:
  void sweep(Instant now);
  void hide_mappings();
  bool unmapped();

  platform::ClientHost& host_;
  PeerFiles& files_;
  hca::MemoryPlane& plane_;
  hca::SweepSchedule schedule_;
  std::atomic<bool> peer_may_go_{false};
  std::vector<PeerFiles::Gone> unmapping_;
  std::optional<hca::Quiescence> quiet_;  // of the threads of this process that may use those
};

}  // namespace ib::user
