// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// DataPlane: what a client executes work requests with: a memory plane, and the poster that it
// calls.
#pragma once

#include "al/poster.h"
#include "al/system.h"
#include "hca/memory/memory_plane.h"

#include <cstdint>

namespace ib::al {

class DataPlane {
 public:
  // `zero`: the client's file 0; `slot`: its process slot.
  DataPlane(System& system, io::FileObject& zero, std::uint32_t slot);
  DataPlane(const DataPlane&) = delete;
  DataPlane& operator=(const DataPlane&) = delete;

  // Returns false if there was no memory for its tables.
  bool is_valid() const { return plane_.valid(); }
  // It is valid, and the client is open from now on.
  void start();
  // Programs that cannot reach softibd's memory by process_vm leave requests for it. From now on
  // the next ring of the doorbell raises an event; requests from before are served at once.
  void listen();

  Poster& poster() { return poster_; }
  hca::MemoryPlane& plane() { return plane_; }

 private:
  System& system_;
  std::uint32_t slot_;
  Poster poster_;
  hca::MemoryPlane plane_;
};

}  // namespace ib::al
