// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// MemoryPlane: how one process reaches registered memory, its own and that of its peers, by the
// three paths of docs/design/0001 (mapped adopted pages, process_vm, bounce). It owns the parts
// that do so; each resolves keys or moves bytes, and has its own header.
//
// Everything here runs inside an OpScope.
#pragma once

#include "hca/layout/arena.h"
#include "hca/layout/thread_words.h"
#include "hca/memory/backing_mappings.h"
#include "hca/memory/bounce.h"
#include "hca/memory/far_memory.h"
#include "hca/memory/local_memory.h"
#include "hca/memory/memory_mover.h"
#include "hca/memory/poster_host.h"
#include "hca/memory/remote_keys.h"

#include <cstddef>
#include <cstdint>

namespace ib::hca {

// Which ways into other processes may be used (`softib run --path`).
enum class Path : std::uint32_t { Auto, Adopted, ProcessVm, Bounce };

class MemoryPlane {
 public:
  MemoryPlane(const Arena& arena, PosterHost& host, std::uint32_t slot, Path path);
  MemoryPlane(const MemoryPlane&) = delete;
  MemoryPlane& operator=(const MemoryPlane&) = delete;

  // Returns false if there was no room for the tables; then no other call is allowed.
  bool valid() const { return local_.keys().valid() && remote_keys_.mappings().valid(); }
  static constexpr std::size_t kTableBytes =
      LocalKeys::Table::kBytes + BackingMappings::Table::kBytes;

  const Arena& arena() const { return arena_; }
  PosterHost& host() const { return host_; }
  std::uint32_t slot() const { return slot_; }
  Path path() const { return path_; }
  bool fenced_entries() const {
    return arena_.header().fenced_entries.load(std::memory_order_acquire) != 0;
  }

  // The words in device memory that mark threads as executing (op_scope.h).
  ThreadWords& thread_words() { return thread_words_; }
  const LocalMemory& local() const { return local_; }
  LocalKeys& local_keys() { return local_.keys(); }
  const LocalKeys& local_keys() const { return local_.keys(); }
  RemoteKeys& remote_keys() { return remote_keys_; }
  FarMemory& far_memory() { return far_; }
  MemoryMover& mover() { return mover_; }

  // All that peers want of this process's memory now (path 3).
  void serve_bounces() { bounces_.serve_all(); }
  // Quiescence for a caller that itself holds an OpScope and no reference to anything of a peer.
  // Returns false if some thread did not move on for a long time.
  bool quiesce_from_inside();
  // Tells peers how this process calls itself; before it has anything that they could reach.
  void introduce(const platform::ProcessName& self);
  // Moves a queue pair of this process to Error; the service thread flushes it.
  void break_own(std::uint32_t qpn, Cause cause);

 private:
  Arena arena_;
  PosterHost& host_;
  std::uint32_t slot_;
  Path path_;
  ThreadWords thread_words_;
  LocalMemory local_;
  FarMemory far_;
  RemoteKeys remote_keys_;
  MemoryMover mover_;
  BounceServer bounces_;
};

}  // namespace ib::hca
