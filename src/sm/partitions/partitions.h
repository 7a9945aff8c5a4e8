// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Partitions, as a file in the syntax of OpenSM's partitions.conf says them:
//
//   `storage=0x8002, ipoib, mtu=5, defmember=limited : 0x0002c90300000001=full, ALL_CAS, SELF;`
//
// A partition has a name, a P_Key, flags, and members: GUIDs of ports, or words for many.
#pragma once

#include "base/result.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace ib::sm {

enum class Membership : std::uint8_t { Limited, Full, Both };
enum class MemberKind : std::uint8_t { Port, All, AllAdapters, AllSwitches, AllRouters, Self };

struct PartitionMember {
  MemberKind kind = MemberKind::Port;
  std::uint64_t guid = 0;  // of Port
  Membership membership = Membership::Limited;
  bool operator==(const PartitionMember&) const = default;
};

// Properties of the multicast group for IP broadcasts, or of another group. -1: not said.
struct GroupFlags {
  int rate = -1;
  int mtu = -1;
  int sl = -1;
  int scope = -1;
  std::int64_t q_key = -1;
  int traffic_class = -1;
  std::int64_t flow_label = -1;
  bool operator==(const GroupFlags&) const = default;
};
struct PartitionGroup {
  std::string mgid;  // as it is written
  GroupFlags flags;
};

struct Partition {
  std::string name;
  std::uint16_t pkey = 0;  // 15 bits
  bool is_first = false;   // `indx0`: its P_Key is that with index 0
  bool has_ipoib = false;
  GroupFlags flags;
  std::vector<PartitionMember> members;
  std::vector<PartitionGroup> groups;
};

inline constexpr std::uint16_t kDefaultPartition = 0x7fff;
inline constexpr std::uint16_t kFullMember = 0x8000;

struct PartitionList {
  std::vector<Partition> all;
  // Each port is a full member of the default partition.
  static PartitionList everybody();
};

// A place in the text, 1-based, and a sentence: what was found, and what was expected.
struct TextError {
  std::size_t line = 0;
  std::size_t column = 0;
  std::string text;
};
// Malformed: `error` says where and why. A partition of this key that comes again gets more
// members. Without one of the default partition the list has one with the manager's port as its
// only full member.
Result<PartitionList> parse_partitions(std::string_view text, TextError& error);

}  // namespace ib::sm
