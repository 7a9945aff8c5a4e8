// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "drivers/soft_hca/objects/gid_chains.h"

#include "verbs/gid.h"

#include <algorithm>

namespace ib::drivers {
namespace {

constexpr std::uint32_t kTable = verbs::limits::kGidTableLength;

hca::PortEntry& port_of(const hca::Arena& arena, std::uint32_t entry) {
  hca::PortEntry* port = arena.port(entry / kTable);
  IB_ASSERT(port != nullptr);
  return *port;
}

}  // namespace

void GidChains::store(const hca::Arena& arena, std::uint32_t port, std::uint32_t index,
                      const verbs::Gid& gid) {
  const std::uint32_t entry = hca::gid_entry(port, index);
  const auto before = gids_.find(entry);
  if (before != gids_.end()) {
    if (before->second == gid) return;
    const std::uint32_t chain = hca::gid_chain(before->second);
    std::erase(chains_[chain], entry);
    link(arena, chain);
    if (chains_[chain].empty()) chains_.erase(chain);
    gids_.erase(before);
  }
  port_of(arena, entry).gids[index] = gid;
  if (verbs::is_zero(gid)) return;
  gids_.emplace(entry, gid);
  const std::uint32_t chain = hca::gid_chain(gid);
  chains_[chain].push_back(entry);
  link(arena, chain);
}

// From the end to the head, so that a reader who comes in meanwhile finds a whole chain. An entry
// that has left it still leads on into it.
void GidChains::link(const hca::Arena& arena, std::uint32_t chain) const {
  const std::vector<std::uint32_t>& entries = chains_.at(chain);
  std::uint32_t next = 0;
  std::for_each(entries.rbegin(), entries.rend(), [&](std::uint32_t entry) {
    port_of(arena, entry).next_by_gid[entry % kTable].store(next, std::memory_order_release);
    next = entry + 1;
  });
  arena.gid_head(chain).store(next, std::memory_order_release);
}

}  // namespace ib::drivers
