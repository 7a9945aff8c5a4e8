// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// P_Key tables of end ports [IBA1 10.9, 14.2.5.7], as partitions want them.
#pragma once

#include "sm/partitions/partitions.h"
#include "sm/subnet/problems.h"
#include "sm/subnet/subnet.h"

#include <cstdint>
#include <unordered_map>
#include <vector>

namespace ib::sm {

class Pkeys {
 public:
  explicit Pkeys(PartitionList partitions);

  const PartitionList& partitions() const { return partitions_; }
  // Whether there are others than the default one with everybody as a full member.
  bool separates() const;
  // The P_Keys of an end port, without an order; the one with index 0 first.
  std::vector<std::uint16_t> of(const Subnet& subnet, const Port& port) const;
  // The table of an end port: keys that are in the old one keep their place, since queue pairs
  // name them by it; others take free places. The first key is at index 0.
  std::vector<std::uint16_t> table_of(const Subnet& subnet, const Port& port,
                                      Problems& problems) const;

 private:
  struct Key {
    std::uint16_t value = 0;
    bool is_first = false;
  };
  void add(std::vector<Key>& keys, const Partition& partition, Membership membership) const;

  PartitionList partitions_;
  // By port GUID: partition, membership.
  std::unordered_map<std::uint64_t, std::vector<std::pair<std::uint32_t, Membership>>> by_guid_;
};

}  // namespace ib::sm
