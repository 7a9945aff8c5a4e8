// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Peer: the other end of an exchange of MADs, as the engines tell peers apart: by the own port, and
// by its LID or GID and queue pair [IBA1 13.4.6.4, 13.6.1].
#pragma once

#include "verbs/types.h"

#include <compare>
#include <cstdint>

namespace ib::mad {

struct Peer {
  std::uint32_t port = 0;  // the own one
  std::uint16_t lid = 0;   // 0: none
  std::uint32_t qpn = 1;
  verbs::Gid gid{};                               // zero: not known
  auto operator<=>(const Peer&) const = default;  // NOLINT(modernize-use-nullptr): clang-tidy 14

  // Whether MADs from `from` may be those of this peer. A MAD that was sent by GID may be answered
  // by LID, and the other way round: only what both name is compared.
  bool is(const Peer& from) const {
    if (port != from.port || qpn != from.qpn) return false;
    const bool both_lids = lid != 0 && from.lid != 0;
    const bool both_gids = gid != verbs::Gid{} && from.gid != verbs::Gid{};
    if (both_lids && lid != from.lid) return false;
    if (both_gids && gid != from.gid) return false;
    return both_lids || both_gids;
  }
};

}  // namespace ib::mad
