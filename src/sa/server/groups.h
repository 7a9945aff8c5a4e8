// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Multicast groups and their members [IBA1 15.2.5.17]. A group comes with its first full member and
// goes with the last one; the broadcast group of IPoIB [RFC 4391] is always there. The attributes
// of a group are those that its creator named, or what the creator's port can do.
#pragma once

#include "sa/records/mc_member_record.h"
#include "sa/server/request.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

namespace ib::sa {

struct GroupLimits {
  std::size_t groups = 8192;               // no more than there are multicast LIDs
  std::size_t memberships_of_port = 4096;  // also of groups that the port joined for another one
};

// ff12:401b:PPPP::ffff:ffff for a P_Key [RFC 4391 4].
verbs::Gid ipoib_broadcast_mgid(std::uint16_t pkey);

class Groups {
 public:
  struct Change {
    bool is_created = false;  // else deleted
    verbs::Gid mgid{};
    std::uint16_t pkey = 0;
  };

  Groups(const Topology& topology, const GroupLimits& limits)
      : topology_(topology), limits_(limits) {}

  // A group that stays without members. `record` has all attributes but the MLID.
  void add_permanent(McMemberRecord record);

  // Set: joins, or creates and joins. `record` is the request, and the answer if the status is Ok.
  std::uint16_t join(const Requester& requester, std::uint64_t components, McMemberRecord& record);
  // Delete: takes bits from the join state.
  std::uint16_t leave(const Requester& requester, std::uint64_t components, McMemberRecord& record);
  // Get and GetTable: to a trusted requester each membership, to others each group; and to a port
  // its own memberships if the request names it.
  void find(const Requester& requester, std::uint64_t components, const McMemberRecord& wanted,
            RecordList& records) const;
  // The attributes of a group.
  const McMemberRecord* find(const verbs::Gid& mgid) const;

  // A GID is out of service: its memberships end.
  void drop(const verbs::Gid& port_gid);

  // Each member of each group, by MLID.
  template <class Visit>  // (std::uint16_t mlid, const verbs::Gid& port_gid, std::uint8_t
                          // join_state)
  void for_each_member(Visit visit) const {
    for (const auto& [mgid, group] : groups_) {
      for (const auto& [gid, member] : group.members) {
        visit(group.record.mlid, gid, member.join_state);
      }
    }
  }
  // Counts changes of members.
  std::uint64_t version() const { return version_; }

  // Groups that came and went since the last call.
  std::vector<Change> take_changes() { return std::exchange(changes_, {}); }
  std::size_t group_count() const { return groups_.size(); }
  std::size_t membership_count() const;

 private:
  struct Member {
    std::uint8_t join_state = 0;
    bool proxy_join = false;
  };
  struct Group {
    McMemberRecord record;  // without a port
    bool is_permanent = false;
    std::map<verbs::Gid, Member> members;  // by port GID
  };
  using GroupMap = std::map<verbs::Gid, Group>;

  std::uint16_t check_member(const Requester& requester, const EndPort& port,
                             const McMemberRecord& record) const;
  std::uint16_t create(const EndPort& port, std::uint64_t components, const McMemberRecord& record,
                       GroupMap::iterator& group);
  std::uint16_t check_joinable(const EndPort& port, std::uint64_t components,
                               const McMemberRecord& record, const Group& group) const;
  std::optional<verbs::Gid> make_mgid(std::uint8_t scope);
  std::optional<std::uint16_t> take_mlid();
  void remove_if_empty(GroupMap::iterator group);

  const Topology& topology_;
  GroupLimits limits_;
  GroupMap groups_;  // by MGID
  std::map<verbs::Gid, std::set<verbs::Gid>> groups_of_port_;
  std::set<std::uint16_t> mlids_;
  std::uint16_t next_mlid_ = kFirstMulticastLid;
  std::uint32_t next_mgid_ = 1;
  std::vector<Change> changes_;
  std::uint64_t version_ = 0;
};

}  // namespace ib::sa
