// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Regions: this process's memory regions, and the adoption of hot ones (DESIGN.md 3, path 1).
//
// Adoption moves whole pages into a memfd at the same address. All regions that overlap those
// pages are stopped while that happens (state Moving; posters wait), since a peer could be writing
// through process_vm to the old pages. Thread rule: under the process's control_lock.
#pragma once

#include "hca/memory_plane.h"
#include "platform/client_host.h"
#include "verbs/control.h"

#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <vector>

namespace ib::user {

class ProcessState;

class Regions {
 public:
  explicit Regions(ProcessState& process);
  ~Regions();

  // A region exists from now on: private memory learns it, and it may be adopted at once.
  void add(std::uint32_t index, const verbs::control::RegMrIn& in, const verbs::control::MrOut& out,
           std::byte* address, std::uint64_t length);
  // Before softibd is asked to deregister: no local use from now on. `undo` after a refusal.
  void hide(std::uint32_t index);
  void undo(std::uint32_t index);
  // After it is gone: pages that nobody needs any more become private again.
  void remove(std::uint32_t index);
  // Adopts what posters asked for (KeyEntry::adopted.adopt_wanted).
  void adopt_wanted();

 private:
  struct Backing {
    platform::AdoptedPages pages;
    std::uint32_t handle = 0;
    std::uint32_t index = 0;
    std::uint32_t generation = 0;
    std::uint32_t regions = 0;  // that overlap it
  };
  struct Region {
    std::uint32_t key = 0;
    hca::KeyKind kind = hca::KeyKind::Region;
    std::uint64_t address = 0;
    std::uint64_t length = 0;
    bool may_adopt = false;
    std::vector<std::list<Backing>::iterator> backings;
  };

  void adopt(std::uint32_t index);
  bool publish(platform::AdoptedPages pages, const std::vector<std::uint32_t>& stopped);
  void set_state(std::uint32_t index, hca::KeyState state);
  void point(std::uint32_t index, const Backing& backing);
  std::vector<std::uint32_t> overlapping(std::uint64_t address, std::uint64_t length) const;
  void release(std::list<Backing>::iterator backing);
  bool quiesce();

  ProcessState& process_;
  std::map<std::uint32_t, Region> regions_;  // by key index
  std::list<Backing> backings_;
  bool eager_ = false;  // adopt at registration
  std::uint64_t eager_max_ = 0;
};

}  // namespace ib::user
