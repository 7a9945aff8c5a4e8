// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "services/sa/sa_groups.h"

#include "verbs/gid.h"

#include <fmt/format.h>

#include <utility>
#include <variant>

namespace ib::services {

class SaGroups::Share final : public SaClient::Membership {
 public:
  Share(SaGroups& groups, sa::Ticket ticket) : groups_(groups), ticket_(ticket) {}
  Share(const Share&) = delete;
  Share& operator=(const Share&) = delete;
  ~Share() override {
    if (ticket_ != 0) groups_.give_back(ticket_, {});
  }
  sa::Ticket take() { return std::exchange(ticket_, 0); }

 private:
  SaGroups& groups_;
  sa::Ticket ticket_;
};

std::unique_ptr<SaClient::Request> SaGroups::query(const verbs::Gid& port_gid,
                                                   const verbs::Gid& mgid, OnGroup on_group) {
  const sa::Ticket ticket = ++last_ticket_;
  waiters_.emplace(ticket, std::move(on_group));
  sa::McMemberRecord wanted;
  wanted.mgid = mgid;
  sa::Outgoing outgoing;
  outgoing.port_gid = port_gid;
  outgoing.method = sa::method::kGet;
  outgoing.attribute = sa::attribute::kMcMemberRecord;
  outgoing.components = sa::mc_component::kMgid;
  const auto bytes = sa::encode(wanted);
  outgoing.record.assign(bytes.begin(), bytes.end());
  const std::string what = fmt::format("the group {}", verbs::address_text(mgid));
  const auto on_answer = [this, ticket, what](const sa::Outcome& outcome,
                                              std::span<const std::byte> record) {
    sa::McMemberRecord group;
    if (outcome.is_ok()) group = sa::decode_some<sa::McMemberRecord>(record);
    around_.deliveries.later([this, ticket, what, outcome, group] {
      const auto found = waiters_.find(ticket);
      if (found == waiters_.end()) return;
      const OnGroup call = std::move(found->second);
      waiters_.erase(found);
      call(around_.explain(outcome, what), group);
    });
  };
  const std::uint64_t sent = around_.transport.send(std::move(outgoing), on_answer);
  return std::make_unique<SaHandle<SaClient::Request>>([this, ticket, sent] {
    around_.transport.cancel(sent);
    waiters_.erase(ticket);
  });
}

std::unique_ptr<SaClient::Membership> SaGroups::join(const JoinRequest& request,
                                                     OnJoined on_joined) {
  const sa::Ticket ticket = ++last_ticket_;
  joining_.emplace(
      ticket, Joining{std::move(on_joined),
                      fmt::format("joining group {}", verbs::address_text(request.record.mgid))});
  sa::Outcome refusal;
  refusal.status = around_.transport.check(request.record.port_gid, refusal.reason);
  if (refusal.status == Status::Ok) {
    const Status status =
        engine_.join(ticket, request.components, request.record, request.patience);
    refusal.status = status == Status::LimitExceeded ? Status::InsufficientResources : status;
    refusal.reason = status == Status::LimitExceeded
                         ? "the port has as many shares in groups as it may have"
                         : "the request lacks MGID, port GID or join state";
  }
  if (refusal.status != Status::Ok) {
    around_.deliveries.later([this, ticket, refusal] {
      on_event(sa::Joins::Joined{ticket, refusal, {}});
    });
  }
  pump();
  return std::make_unique<Share>(*this, ticket);
}

void SaGroups::leave(std::unique_ptr<SaClient::Membership> membership, OnDone on_done) {
  IB_ASSERT(membership != nullptr);
  give_back(static_cast<Share&>(*membership).take(), std::move(on_done));
}

void SaGroups::give_back(sa::Ticket ticket, OnDone on_done) {
  joining_.erase(ticket);
  if (on_done) leaving_.emplace(ticket, std::move(on_done));
  if (engine_.has(ticket)) {
    engine_.leave(ticket);
  } else {
    around_.deliveries.later([this, ticket] { on_event(sa::Joins::Left{ticket}); });
  }
  pump();
}

void SaGroups::on_event(const sa::Joins::Event& event) {
  if (const auto* left = std::get_if<sa::Joins::Left>(&event)) {
    const auto found = leaving_.find(left->ticket);
    if (found == leaving_.end()) return;
    const OnDone call = std::move(found->second);
    leaving_.erase(found);
    return call({});
  }
  const auto& joined = std::get<sa::Joins::Joined>(event);
  const auto found = joining_.find(joined.ticket);
  if (found == joining_.end()) return;
  const Joining share = found->second;  // the call may destroy the membership
  share.on_joined(around_.explain(joined.outcome, share.what), joined.group);
}

void SaGroups::on_reregister(const verbs::Gid& port_gid) {
  engine_.on_reregister(port_gid);
  pump();
}

void SaGroups::pump() {
  const auto on_answer = [this](sa::Operation operation, const sa::Outcome& outcome,
                                std::span<const std::byte> record) {
    engine_.on_answer(operation, outcome, record);
    pump();
  };
  if (!pump_.run(on_answer)) return;
  while (auto event = engine_.poll_event()) {
    around_.deliveries.later([this, event = *std::move(event)] { on_event(event); });
  }
}

}  // namespace ib::services
