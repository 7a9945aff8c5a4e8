// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Regions: this process's memory regions, and the adoption of their pages (docs/design/0001, 1).
//
// Pages move into a memfd at the same address while the program registers them, and at no other
// time: no peer has the key then, and the program keeps memory that it registers. The path by which
// peers reach a page does not change while a region covers it. Thread rule: under the process's
// control_lock.
#pragma once

#include "hca/memory/memory_plane.h"
#include "platform/client_host.h"
#include "user/move_budget.h"
#include "user/range_index.h"
#include "user/watched_ranges.h"
#include "verbs/control.h"

#include <cstdint>
#include <list>
#include <map>
#include <vector>

namespace ib::user {

class Process;

class Regions {
 public:
  explicit Regions(Process& process);
  ~Regions();

  // Enters a new region into private memory. Its pages may be adopted from now on.
  void add(std::uint32_t index, const verbs::control::RegMrIn& in, const verbs::control::MrOut& out,
           std::byte* address, std::uint64_t length);
  // Called before the request to softibd that deregisters or changes it: no local use from now on.
  // `undo` follows a refusal.
  void hide(std::uint32_t index);
  void undo(std::uint32_t index);
  // After its key was given another range, domain or rights. No pages are adopted: peers have the
  // key.
  void change(std::uint32_t index, const verbs::control::RegMrIn& now,
              const verbs::control::MrOut& out, std::byte* address, std::uint64_t length);
  // After it is gone: pages that no region needs become private again.
  void remove(std::uint32_t index);
  // The program is about to unmap [start, start + length), to map something else there or to take
  // rights away: regions there are from now on read and written by system calls, which return an
  // error where loads and stores would be a signal. Any thread; takes no lock, allocates nothing.
  void mappings_change(std::uint64_t start, std::uint64_t length);

 private:
  struct Backing {
    platform::AdoptedPages pages;
    std::uint32_t handle = 0;
    std::uint32_t index = 0;
    std::uint32_t generation = 0;
    std::uint32_t regions = 0;  // that overlap it
  };
  using BackingRef = std::list<Backing>::iterator;
  struct Region {
    std::uint32_t key = 0;
    hca::KeyKind kind = hca::KeyKind::Region;
    std::uint64_t address = 0;
    std::uint64_t length = 0;
    std::uint32_t watched = WatchedRanges::kNotWatched;
    std::vector<BackingRef> backings;
  };

  void publish_local(std::uint32_t index, const verbs::control::RegMrIn& in, std::uint32_t lkey,
                     std::byte* address, std::uint64_t length);
  void hold_backings(Region& region);
  bool use_backing(std::uint32_t index, const Region& region);
  void adopt(std::uint32_t index, Region& region);
  bool publish_backing(platform::AdoptedPages pages, BackingRef& made);
  void point(std::uint32_t index, const Backing& backing);
  void cover(const Region& region);
  void uncover(const Region& region);
  void drop(BackingRef backing);
  void drop_unused();
  void watch(Region& region);

  Process& process_;
  std::map<std::uint32_t, Region> regions_;  // by key index
  RangeIndex covered_;                       // by the regions
  // Those that no region overlaps could not be given back yet: the kernel may hold pages for I/O.
  std::list<Backing> backings_;
  MoveBudget budget_;
  WatchedRanges watched_;
};

}  // namespace ib::user
