// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// In place of src/hca/memory/memory_plane.h: what OpScope needs of it. The threads of a model are
// fibers of one thread, so their words are not found through thread-local storage.
#pragma once

#include "hca/layout/arena.h"
#include "hca/memory/poster_host.h"
#include "tests/models/explorer.h"

namespace ib::hca {

class ThreadWords {
 public:
  explicit ThreadWords(ProcessSlot& slot) : slot_(slot) {}
  ThreadWord* own() const { return &slot_.threads[models::this_thread_number()]; }
  ThreadWord& mine() const { return *own(); }
  bool is_shared(const ThreadWord&) const { return false; }
  std::atomic<std::uint32_t>& shared_lock() { return lock_; }

 private:
  ProcessSlot& slot_;
  std::atomic<std::uint32_t> lock_{0};
};

class MemoryPlane {
 public:
  MemoryPlane(const Arena& arena, PosterHost& host, std::uint32_t slot)
      : arena_(arena), host_(host), words_(*arena.slot(slot)) {}
  bool fenced_entries() const {
    return arena_.header().fenced_entries.load(std::memory_order_acquire) != 0;
  }
  ThreadWords& thread_words() { return words_; }
  PosterHost& host() const { return host_; }

 private:
  Arena arena_;
  PosterHost& host_;
  ThreadWords words_;
};

}  // namespace ib::hca
