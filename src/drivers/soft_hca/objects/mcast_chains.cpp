// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "drivers/soft_hca/objects/mcast_chains.h"

namespace ib::drivers {
namespace {

// One of the two chains that an entry is in.
struct Chain {
  const hca::Arena& arena;
  const Table<McastGroupEntry>& table;
  McastNeighbours McastGroupEntry::*neighbours;
  hca::Shared32 hca::McastEntry::*next;
  std::uint32_t& head;
  hca::Shared32& shared_head;

  McastNeighbours& of(std::uint32_t index) const {
    McastGroupEntry* entry = table.find(index);
    IB_ASSERT(entry != nullptr);
    return entry->*neighbours;
  }
  // Makes `to` the entry after `before`, or the first one (kNone). Device memory counts from 1; 0
  // is the end.
  void lead(std::uint32_t before, std::uint32_t to) const {
    const std::uint32_t word = to == hca::kNone ? 0 : to + 1;
    if (before == hca::kNone) {
      head = to;
      shared_head.store(word, std::memory_order_seq_cst);
    } else {
      of(before).after = to;
      hca::McastEntry* const entry = arena.mcast(before);
      IB_ASSERT(entry != nullptr);
      (entry->*next).store(word, std::memory_order_seq_cst);
    }
  }
  void enter(std::uint32_t index) const {
    const std::uint32_t first = head;
    of(index) = {hca::kNone, hca::kNone};
    lead(index, first);
    if (first != hca::kNone) of(first).before = index;
    lead(hca::kNone, index);
  }
  void leave(std::uint32_t index) const {
    const auto [before, after] = of(index);
    lead(before, after);
    if (after != hca::kNone) of(after).before = before;
  }
};

}  // namespace

McastChains::McastChains() {
  gid_heads_.fill(hca::kNone);
  lid_heads_.fill(hca::kNone);
}

// Calls `change` with each of the two chains that `entry` is in.
template <class Change>
void McastChains::in_both(const hca::Arena& arena, const Table<McastGroupEntry>& table,
                          const McastGroupEntry& entry, Change&& change) {
  const std::uint32_t gid = hca::mcast_chain(entry.mgid);
  const std::uint32_t lid = hca::mcast_chain(entry.mlid);
  change(Chain{arena, table, &McastGroupEntry::by_gid, &hca::McastEntry::next_by_gid,
               gid_heads_[gid], arena.mcast_by_gid(gid)});
  change(Chain{arena, table, &McastGroupEntry::by_lid, &hca::McastEntry::next_by_lid,
               lid_heads_[lid], arena.mcast_by_lid(lid)});
}

void McastChains::enter(const hca::Arena& arena, const Table<McastGroupEntry>& table,
                        const McastGroupEntry& entry) {
  in_both(arena, table, entry, [&](const Chain& chain) { chain.enter(entry.index); });
}

void McastChains::leave(const hca::Arena& arena, const Table<McastGroupEntry>& table,
                        const McastGroupEntry& entry) {
  in_both(arena, table, entry, [&](const Chain& chain) { chain.leave(entry.index); });
}

}  // namespace ib::drivers
