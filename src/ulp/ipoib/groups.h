// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Groups: the multicast groups of an interface [RFC 4391 4, 5, 10], with the broadcast group, whose
// parameters are those of the whole link.
//
// A group is joined as full member while the kernel is a member, and by sending only with the first
// packet to it; the latter is left when nothing was sent for a while. Full memberships are retried
// until they succeed, with growing delays; send-only ones with the next packet after a delay. After
// events of the subnet manager all are joined again, each at a random moment; what was known before
// is used meanwhile.
#pragma once

#include "base/time.h"
#include "ulp/ipoib/counters.h"
#include "ulp/ipoib/deadline.h"
#include "ulp/ipoib/host.h"
#include "ulp/ipoib/random.h"
#include "ulp/ipoib/settings.h"
#include "ulp/ipoib/snapshot.h"
#include "ulp/ipoib/waiting_packets.h"

#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

namespace ib::ipoib {

struct JoinOutcome {
  std::optional<Gid> ready;  // its packets can be sent now
  bool is_broadcast = false;
};

class Groups {
 public:
  Groups(const Settings& settings, Host& host, Counters& counters, WaitingBudget& budget);

  // The port can be used from now on.
  void start(const PortState& port, Instant now);
  // It cannot: leaves all groups. Those of the kernel are joined again after the next start().
  void stop();

  // The parameters of the link; null without a broadcast group.
  const GroupParameters* broadcast() const;
  Trouble trouble() const;  // of the broadcast group
  Status status() const;

  // The parameters for sending to a group; null if it is not joined. The pointer is valid until the
  // next call.
  const GroupParameters* use(const Gid& mgid, Instant now);
  // After use() has returned null: keeps the packet, or drops and counts it.
  void wait(const Gid& mgid, WaitingPacket packet);
  std::optional<WaitingPacket> take_waiting(const Gid& mgid);

  // The kernel is a member of this group from now on, or no more. Several IPv6 groups may share a
  // MGID.
  void set_member(const Ipv6Address& group, bool is_member, Instant now);

  JoinOutcome on_answer(RequestId id, const Result<GroupParameters>& answer, Instant now);
  void join_all_again(Instant now);

  // Returns true if the broadcast group has changed.
  bool on_time(Instant now);
  const std::optional<Instant>& deadline() const { return next_.get(); }
  std::vector<GroupRow> rows() const;

 private:
  struct Request {
    RequestId id{};
    Membership membership = Membership::Full;
    Instant until;
    bool is_late = false;  // the subnet manager was replaced meanwhile: join once more
  };
  struct Group {
    Group(WaitingBudget& budget, std::size_t limit) : waiting(budget, limit) {}
    bool is_permanent = false;
    std::vector<Ipv6Address> members;  // groups of the kernel
    std::optional<GroupParameters> parameters;
    Membership membership = Membership::SendOnly;  // of parameters
    std::optional<Lid> attached;                   // the own queue pair, to this LID
    std::optional<Request> request;
    std::optional<Instant> join_at;  // of full membership
    Instant retry_at;                // of send-only: not before
    bool creates = false;            // the next join of the broadcast group
    std::uint32_t failures = 0;
    Trouble trouble = Trouble::None;
    Status status = Status::Ok;
    Instant last_sent;
    WaitingQueue waiting;

    bool needs_full() const { return is_permanent || !members.empty(); }
  };
  using Table = std::unordered_map<Gid, Group>;

  Group* find_or_add(const Gid& mgid, Instant now);
  bool make_room(Instant now);
  void join(const Gid& mgid, Group& group, Instant now);
  std::optional<GroupParameters> parameters_to_create(const Gid& mgid, const Group& group) const;
  bool is_fit(const GroupParameters& parameters) const;
  void accept(const Gid& mgid, Group& group, const GroupParameters& parameters, Instant now);
  void fail(const Gid& mgid, Group& group, Status status, Trouble trouble, Instant now);
  // Detaches, and forgets the parameters.
  void release(const Gid& mgid, Group& group);
  void leave(const Gid& mgid, Group& group);
  void join_others(Instant now);
  void walk(const Gid& mgid, Group& group, Instant now);
  bool is_over(const Group& group, Instant now) const;
  void schedule(const Group& group);

  const Settings* settings_;
  GroupMapping mapping_;
  Host* host_;
  Counters* counters_;
  WaitingBudget* budget_;
  Random random_;
  NextDeadline next_;
  std::uint64_t next_id_ = 1;
  std::optional<PortState> port_;  // while started
  Table groups_;
};

}  // namespace ib::ipoib
