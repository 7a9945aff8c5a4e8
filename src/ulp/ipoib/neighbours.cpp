// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The table of neighbours: three indexes over a dense array.
#include "ulp/ipoib/neighbours.h"

#include "base/assert.h"
#include "ulp/ipoib/packets/hash.h"
#include "ulp/ipoib/packets/headers.h"

#include <algorithm>

namespace ib::ipoib {
namespace {

bool claims(const Neighbour& entry, const ClaimedAddress& claimed) {
  if (const auto* ipv4 = std::get_if<Ipv4Address>(&claimed)) return entry.ipv4 == *ipv4;
  if (const auto* ipv6 = std::get_if<Ipv6Address>(&claimed)) return entry.ipv6 == *ipv6;
  return false;
}

// All claims of an entry, as far as it has any.
std::array<ClaimedAddress, 2> claims_of(const Neighbour& entry) {
  std::array<ClaimedAddress, 2> claims;
  if (entry.ipv4) claims[0] = *entry.ipv4;
  if (entry.ipv6) claims[1] = *entry.ipv6;
  return claims;
}

}  // namespace

Neighbours::Neighbours(std::size_t limit, const MacAddress& own, std::uint64_t seed)
    : limit_(std::max<std::size_t>(limit, 1)), own_(own), random_(seed) {}

const Neighbour* Neighbours::peek(const MacAddress& mac) const {
  const auto found = by_mac_.find(mac);
  return found != by_mac_.end() ? &entries_[found->second] : nullptr;
}

const Neighbour* Neighbours::peek(const HardwareAddress& address) const {
  const auto found = by_end_.find(end_of(address));
  return found != by_end_.end() ? &entries_[found->second] : nullptr;
}

const Neighbour* Neighbours::find(const MacAddress& mac, Instant now) {
  const auto found = by_mac_.find(mac);
  if (found == by_mac_.end()) return nullptr;
  entries_[found->second].last_used = now;
  return &entries_[found->second];
}

const Neighbour* Neighbours::find(const HardwareAddress& address, Instant now) {
  const auto found = by_end_.find(end_of(address));
  if (found == by_end_.end()) return nullptr;
  entries_[found->second].last_used = now;
  return &entries_[found->second];
}

LearntNeighbour Neighbours::learn(const HardwareAddress& address, const ClaimedAddress& claimed,
                                  NeighbourRow::Source source, Instant now) {
  IB_ASSERT(is_valid_unicast(address));
  LearntNeighbour learnt;
  const auto found = by_end_.find(end_of(address));
  const bool is_known = found != by_end_.end() && claims(entries_[found->second], claimed);
  const auto former = is_known ? std::nullopt : find_former(address, claimed);
  std::size_t index = 0;
  if (found != by_end_.end()) {
    index = found->second;
    if (former) {
      learnt.gone = entries_[*former].address;
      // The kernel has the former MAC for this IP address.
      const MacAddress mac = entries_[*former].mac;
      remove(*former);
      index = by_end_.find(end_of(address))->second;  // removal may have moved it
      by_mac_.erase(entries_[index].mac);
      by_mac_.emplace(mac, index);
      entries_[index].mac = mac;
    }
  } else if (former) {
    index = *former;
    learnt.gone = entries_[index].address;
    by_end_.erase(end_of(entries_[index].address));
    by_end_.emplace(end_of(address), index);
    entries_[index].address = address;
  } else {
    index = add(address, learnt);
  }
  Neighbour& entry = entries_[index];
  if (source != NeighbourRow::Source::Packet) {
    entry.address.flags = address.flags;
    entry.source = source;
  }
  set_claim(index, claimed);
  entry.last_used = now;
  learnt.mac = entry.mac;
  return learnt;
}

std::size_t Neighbours::add(const HardwareAddress& address, LearntNeighbour& learnt) {
  if (entries_.size() >= limit_) {
    const std::size_t victim = least_used();
    learnt.gone = entries_[victim].address;
    remove(victim);
    ++evicted_;
  }
  Neighbour entry;
  entry.address = address;
  entry.mac = free_mac(address.gid);
  entries_.push_back(entry);
  const std::size_t index = entries_.size() - 1;
  by_mac_.emplace(entry.mac, index);
  by_end_.emplace(end_of(address), index);
  return index;
}

// Each ARP of the fabric comes by here, so this is no walk over the table.
std::optional<std::size_t> Neighbours::find_former(const HardwareAddress& address,
                                                   const ClaimedAddress& claimed) const {
  const auto found = by_claim_.find({address.gid, claimed});
  if (found == by_claim_.end() || entries_[found->second].address.qpn == address.qpn) {
    return std::nullopt;
  }
  return found->second;
}

std::size_t Neighbours::ClaimHash::operator()(const Claim& claim) const noexcept {
  const std::size_t gid = std::hash<Gid>()(claim.gid);
  if (const auto* ipv4 = std::get_if<Ipv4Address>(&claim.ip)) {
    return gid ^ scramble(std::uint32_t{get<Be32>(std::as_bytes(std::span(ipv4->bytes)))});
  }
  if (const auto* ipv6 = std::get_if<Ipv6Address>(&claim.ip)) {
    return gid ^ ~std::hash<Gid>()(Gid{ipv6->bytes});
  }
  return gid;
}

void Neighbours::set_claim(std::size_t index, const ClaimedAddress& claimed) {
  Neighbour& entry = entries_[index];
  const Gid& gid = entry.address.gid;
  if (const auto* ipv4 = std::get_if<Ipv4Address>(&claimed)) {
    if (entry.ipv4 == *ipv4) return;
    if (entry.ipv4) by_claim_.erase({gid, *entry.ipv4});
    entry.ipv4 = *ipv4;
    by_claim_.emplace(Claim{gid, claimed}, index);
  }
  if (const auto* ipv6 = std::get_if<Ipv6Address>(&claimed)) {
    if (entry.ipv6 == *ipv6) return;
    if (entry.ipv6) by_claim_.erase({gid, *entry.ipv6});
    entry.ipv6 = *ipv6;
    by_claim_.emplace(Claim{gid, claimed}, index);
  }
}

void Neighbours::remove(std::size_t index) {
  by_mac_.erase(entries_[index].mac);
  by_end_.erase(end_of(entries_[index].address));
  for (const ClaimedAddress& claim : claims_of(entries_[index])) {
    by_claim_.erase({entries_[index].address.gid, claim});
  }
  if (index + 1 != entries_.size()) {
    entries_[index] = entries_.back();
    const Neighbour& moved = entries_[index];
    by_mac_[moved.mac] = index;
    by_end_[end_of(moved.address)] = index;
    for (const ClaimedAddress& claim : claims_of(moved)) {
      if (!std::holds_alternative<std::monostate>(claim))
        by_claim_[{moved.address.gid, claim}] = index;
    }
  }
  entries_.pop_back();
}

// A flood of new ends must not evict those in use, nor cost a walk over the table each.
std::size_t Neighbours::least_used() {
  constexpr unsigned kTries = 8;
  std::size_t least = random_.number() % entries_.size();
  for (unsigned i = 1; i < kTries; ++i) {
    const std::size_t other = random_.number() % entries_.size();
    if (entries_[other].last_used < entries_[least].last_used) least = other;
  }
  return least;
}

// From the GID alone, so that a neighbour mostly keeps its MAC even after its entry has gone.
MacAddress Neighbours::free_mac(const Gid& gid) const {
  for (std::uint32_t attempt = 0;; ++attempt) {
    const MacAddress mac = derive_mac(gid.bytes, attempt);
    if (mac != own_ && !by_mac_.contains(mac)) return mac;
  }
}

std::optional<HardwareAddress> Neighbours::take_unused(Instant before) {
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    if (entries_[i].last_used > before) continue;
    const HardwareAddress address = entries_[i].address;
    remove(i);
    return address;
  }
  return std::nullopt;
}

}  // namespace ib::ipoib
