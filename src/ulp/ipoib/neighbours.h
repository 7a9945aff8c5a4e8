// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Neighbours: the table of 20-byte hardware addresses and the MAC addresses that stand for them on
// this host.
//
// An end is a queue pair number and a GID. A MAC belongs to one entry as long as that is in the
// table, and survives a restart of the neighbour: an end that has another queue pair, but the GID
// and the IP address of an entry, takes its place. Bounded; of some random entries, the one that
// was unused for the longest time goes.
#pragma once

#include "base/time.h"
#include "ulp/ipoib/packets/addresses.h"
#include "ulp/ipoib/peer_end.h"
#include "ulp/ipoib/random.h"
#include "ulp/ipoib/snapshot.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <unordered_map>
#include <variant>
#include <vector>

namespace ib::ipoib {

using ClaimedAddress = std::variant<std::monostate, Ipv4Address, Ipv6Address>;

struct Neighbour {
  HardwareAddress address;
  MacAddress mac;
  std::optional<Ipv4Address> ipv4;
  std::optional<Ipv6Address> ipv6;
  NeighbourRow::Source source = NeighbourRow::Source::Packet;
  Instant last_used;
};

struct LearntNeighbour {
  MacAddress mac;
  std::optional<HardwareAddress> gone;  // the end that this one replaces, or that was evicted
};

class Neighbours {
 public:
  // `own` is never given to a neighbour.
  Neighbours(std::size_t limit, const MacAddress& own, std::uint64_t seed);

  // Each marks the entry as used.
  const Neighbour* find(const MacAddress& mac, Instant now);
  const Neighbour* find(const HardwareAddress& address, Instant now);
  // Without that.
  const Neighbour* peek(const HardwareAddress& address) const;
  const Neighbour* peek(const MacAddress& mac) const;

  // `address` is valid unicast. Flags count unless the source is a packet, which does not show
  // them.
  LearntNeighbour learn(const HardwareAddress& address, const ClaimedAddress& claimed,
                        NeighbourRow::Source source, Instant now);

  // Removes one entry that was not used since `before`.
  std::optional<HardwareAddress> take_unused(Instant before);
  const std::vector<Neighbour>& all() const { return entries_; }
  std::uint64_t evicted() const { return evicted_; }

 private:
  // No two entries have the same: the newer end takes the place of the former.
  struct Claim {
    Gid gid;
    ClaimedAddress ip;
    bool operator==(const Claim&) const = default;
  };
  struct ClaimHash {
    std::size_t operator()(const Claim& claim) const noexcept;
  };

  std::size_t add(const HardwareAddress& address, LearntNeighbour& learnt);
  void set_claim(std::size_t index, const ClaimedAddress& claimed);
  // The entry of another end with this GID and IP address.
  std::optional<std::size_t> find_former(const HardwareAddress& address,
                                         const ClaimedAddress& claimed) const;
  void remove(std::size_t index);
  std::size_t least_used();
  MacAddress free_mac(const Gid& gid) const;

  std::size_t limit_;
  MacAddress own_;
  Random random_;
  std::uint64_t evicted_ = 0;
  std::vector<Neighbour> entries_;  // dense; the maps below have their indexes
  std::unordered_map<MacAddress, std::size_t> by_mac_;
  std::unordered_map<PeerEnd, std::size_t, PeerEndHash> by_end_;
  std::unordered_map<Claim, std::size_t, ClaimHash> by_claim_;
};

}  // namespace ib::ipoib
