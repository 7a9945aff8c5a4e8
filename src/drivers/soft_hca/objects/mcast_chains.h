// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// McastChains: who is attached to which multicast group, so that a datagram finds the members of
// its group without looking at others': two chains of attachments in device memory, by the hash of
// the group's GID and of its LID.
//
// Posters walk them at any time: an attachment enters at the head when it is complete; one that
// leaves goes on leading to the next until posters have left it (quiescence), and is reused after
// that. The chains here decide; device memory holds a copy.
#pragma once

#include "drivers/soft_hca/records.h"
#include "drivers/soft_hca/table.h"
#include "hca/layout/arena.h"

#include <array>
#include <cstdint>

namespace ib::drivers {

class McastChains {
 public:
  McastChains();

  // Entries that device memory has too (GID and LID are set), of `table`.
  void enter(const hca::Arena& arena, const Table<McastGroupEntry>& table,
             const McastGroupEntry& entry);
  void leave(const hca::Arena& arena, const Table<McastGroupEntry>& table,
             const McastGroupEntry& entry);

 private:
  template <class Change>
  void in_both(const hca::Arena& arena, const Table<McastGroupEntry>& table,
               const McastGroupEntry& entry, Change&& change);

  std::array<std::uint32_t, hca::kMcastChains> gid_heads_;  // kNone: empty
  std::array<std::uint32_t, hca::kMcastChains> lid_heads_;
};

}  // namespace ib::drivers
