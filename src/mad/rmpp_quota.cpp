// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "mad/rmpp_quota.h"

#include <algorithm>

namespace ib::mad {
namespace {

// A peer is one however many queue pairs it has.
Peer account_of(const Peer& peer) {
  return {peer.port, peer.lid, 0, peer.gid};
}

}  // namespace

std::size_t RmppQuota::room_of(const Peer& peer) const {
  const auto usage = usage_.find(account_of(peer));
  const std::size_t of_peer = usage != usage_.end() ? usage->second.bytes : 0;
  return std::min(limits_.max_bytes - std::min(bytes_, limits_.max_bytes),
                  limits_.max_bytes_per_peer - std::min(of_peer, limits_.max_bytes_per_peer));
}

bool RmppQuota::start(const Peer& peer) {
  const auto usage = usage_.find(account_of(peer));
  const std::size_t of_peer = usage != usage_.end() ? usage->second.receptions : 0;
  if (receptions_ >= limits_.max_receptions || of_peer >= limits_.max_receptions_per_peer) {
    return false;
  }
  ++usage_[account_of(peer)].receptions;
  ++receptions_;
  return true;
}

void RmppQuota::change_bytes(const Peer& peer, std::size_t before, std::size_t after) {
  usage_[account_of(peer)].bytes += after - before;
  bytes_ += after - before;
}

void RmppQuota::end(const Peer& peer, std::size_t bytes) {
  --receptions_;
  bytes_ -= bytes;
  const auto usage = usage_.find(account_of(peer));
  usage->second.bytes -= bytes;
  if (--usage->second.receptions == 0) usage_.erase(usage);
}

}  // namespace ib::mad
