// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Joins: memberships of this client's ports in multicast groups, shared by those that use them. The
// subnet administrator counts a port once, so a port joins with the first share that needs a bit of
// its join state and takes the bit back after the last one.
//
// Sans-IO. A membership has one request under way at a time, so answers cannot overtake each other.
#pragma once

#include "sa/client/outgoing.h"
#include "sa/records/mc_member_record.h"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <list>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace ib::sa {

class Joins {
 public:
  // The share's join has ended, or its membership is lost; after an error the share is void.
  struct Joined {
    Ticket ticket = 0;
    Outcome outcome;
    McMemberRecord group;
  };
  // The share is given back.
  struct Left {
    Ticket ticket = 0;
  };
  using Event = std::variant<Joined, Left>;

  struct Limits {
    std::size_t shares = 65536;
    std::size_t shares_of_port = 8192;
  };

  Joins() = default;
  explicit Joins(const Limits& limits) : limits_(limits) {}

  // InvalidParameter: components or join state are missing; LimitExceeded.
  Status join(Ticket ticket, std::uint64_t components, const McMemberRecord& record,
              const Patience& patience);
  // Gives back a share, also one whose join is under way or that is void. Ends with Left.
  void leave(Ticket ticket);
  void on_answer(Operation operation, const Outcome& outcome, std::span<const std::byte> record);

  // The port has lost its memberships: it went down. `reason` is told to the shares. Requests that
  // are under way from there are to be withdrawn; their ends are not waited for.
  void on_port_lost(const verbs::Gid& port_gid, Status status, const std::string& reason);
  // The subnet administrator requested it, or is another one: joins all joined groups again.
  void on_reregister(const verbs::Gid& port_gid);

  // Outputs, until both return nothing.
  std::optional<Outgoing> poll_outgoing();
  std::optional<Event> poll_event();

  // Returns whether the ticket is that of a share, void or not, that was not given back.
  bool has(Ticket ticket) const { return tickets_.contains(ticket); }
  std::size_t share_count() const { return tickets_.size(); }
  std::size_t membership_count() const { return memberships_.size(); }

 private:
  enum class ShareState : std::uint8_t { Waiting, Joined, Rejoining };
  struct Share {
    Ticket ticket = 0;
    ShareState state = ShareState::Waiting;
    std::uint64_t components = 0;
    McMemberRecord record;
    Patience patience;
  };
  struct Membership {
    verbs::Gid port_gid{};
    verbs::Gid mgid{};        // zero: not chosen yet
    std::uint8_t joined = 0;  // bits of the join state that the subnet administrator granted
    McMemberRecord group;
    std::list<Share> shares{};
    std::vector<Ticket> leaving{};  // get Left when the bits are given back
    Operation operation = 0;        // under way
    Ticket joining = 0;             // of the share that it is for, if it joins
    std::uint8_t leaving_bits = 0;  // that it gives back, if it leaves
    bool must_rejoin = false;       // once it has ended
  };
  using MembershipList = std::list<Membership>;
  using Place = MembershipList::iterator;
  using ShareList = std::list<Share>;

  Place find_membership(const verbs::Gid& port_gid, const verbs::Gid& mgid);
  void advance(Place membership);
  void advance_shares(Place membership);
  bool grant(Membership& membership, ShareList::iterator share);
  void send(Place membership, std::uint8_t method, std::uint64_t components,
            const McMemberRecord& record, const Patience& patience);
  void end_operation(Membership& membership);
  void on_joined(Place membership, Ticket ticket, const Outcome& outcome,
                 std::span<const std::byte> record);
  static std::uint8_t needed_by_shares(const Membership& membership);
  void rejoin(Membership& membership);
  void fail(ShareList::iterator share, Outcome outcome);
  void count_out(const verbs::Gid& port_gid);

  struct ShareOfTicket {
    Place membership;
    ShareList::iterator share;
    bool is_void = false;  // the share is gone, its ticket not yet
  };

  Limits limits_;
  MembershipList memberships_;
  std::map<std::pair<verbs::Gid, verbs::Gid>, Place> by_name_;  // port, group
  std::map<Operation, Place> by_operation_;
  std::map<Ticket, ShareOfTicket> tickets_;
  std::map<verbs::Gid, std::size_t> shares_of_port_;
  std::deque<Outgoing> outgoing_;
  std::deque<Event> events_;
  Operation last_operation_ = 0;
};

}  // namespace ib::sa
