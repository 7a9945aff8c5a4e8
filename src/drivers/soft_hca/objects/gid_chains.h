// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The chains in device memory by which posters find a port by its GID (hca/layout/gid_lookup.h).
#pragma once

#include "hca/layout/arena.h"

#include <cstdint>
#include <unordered_map>
#include <vector>

namespace ib::drivers {

// Has its own record of what is chained to what, since any process of the fabric can write to
// device memory.
class GidChains {
 public:
  // Stores `gid` (zero: none) at `index` of the GID table of `port`.
  void store(const hca::Arena& arena, std::uint32_t port, std::uint32_t index,
             const verbs::Gid& gid);

 private:
  void link(const hca::Arena& arena, std::uint32_t chain) const;

  std::unordered_map<std::uint32_t, verbs::Gid> gids_;  // by hca::gid_entry; none is zero
  std::unordered_map<std::uint32_t, std::vector<std::uint32_t>> chains_;  // of entries
};

}  // namespace ib::drivers
