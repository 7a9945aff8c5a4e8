// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "services/sa/sa_paths.h"

#include <span>
#include <utility>
#include <vector>

namespace ib::services {
namespace {

namespace path_bit = sa::path_component;

constexpr std::uint64_t kPathComponents =
    path_bit::kSgid | path_bit::kPkey | path_bit::kReversible | path_bit::kNumbPath;

sa::PathCache::Key key_of(const SaClient::PathQuery& query) {
  return {query.sgid, query.dgid, query.pkey, query.dlid};
}
bool is_shared(const SaClient::PathQuery& query) {
  return query.service_id == 0 && query.extra_components == 0;
}

sa::Outgoing path_request(const SaClient::PathQuery& query) {
  sa::PathRecord wanted = query.extra;
  std::uint64_t components = kPathComponents | query.extra_components;
  wanted.sgid = query.sgid;
  wanted.dgid = query.dgid;
  wanted.pkey = query.pkey;
  wanted.reversible = true;
  wanted.numb_path = 1;
  if (!verbs::is_zero(query.dgid)) components |= path_bit::kDgid;
  if (query.dlid != 0) {
    wanted.dlid = query.dlid;
    components |= path_bit::kDlid;
  }
  if (query.service_id != 0) {
    wanted.service_id = query.service_id;
    components |= path_bit::kServiceId;
  }
  sa::Outgoing outgoing;
  outgoing.port_gid = query.sgid;
  outgoing.method = sa::method::kGet;
  outgoing.attribute = sa::attribute::kPathRecord;
  outgoing.components = components;
  const auto bytes = sa::encode(wanted);
  outgoing.record.assign(bytes.begin(), bytes.end());
  outgoing.patience = query.patience;
  return outgoing;
}

}  // namespace

std::optional<sa::PathRecord> SaPaths::find_cached(const PathQuery& query) {
  if (!is_shared(query)) return std::nullopt;
  return cache_.find(key_of(query), around_.executor.now());
}

std::unique_ptr<SaClient::Request> SaPaths::query(const PathQuery& query, OnPath on_path) {
  const sa::Ticket ticket = ++last_ticket_;
  waiters_.emplace(ticket, Waiter{query, std::move(on_path)});
  auto handle = std::make_unique<SaHandle<SaClient::Request>>([this, ticket] { withdraw(ticket); });
  sa::Outcome refusal;
  refusal.status = around_.transport.check(query.sgid, refusal.reason);
  if (refusal.status != Status::Ok) {
    around_.deliveries.later([this, ticket, refusal] { this->on_path(ticket, refusal, {}); });
  } else if (const auto path = find_cached(query)) {
    around_.deliveries.later([this, ticket, path = *path] { this->on_path(ticket, {}, path); });
  } else if (!is_shared(query)) {
    send(ticket, query, false);
  } else {
    const Status status = cache_.wait(key_of(query), ticket);
    if (status == Status::Ok) send(ticket, query, true);
    if (status == Status::LimitExceeded) {
      around_.deliveries.later([this, ticket] {
        this->on_path(ticket, {Status::InsufficientResources, 0, "too many queries wait"}, {});
      });
    }
  }
  return handle;
}

void SaPaths::send(sa::Ticket ticket, const PathQuery& query, bool shared) {
  const sa::PathCache::Key key = key_of(query);
  const auto on_answer = [this, ticket, key, shared](const sa::Outcome& outcome,
                                                     std::span<const std::byte> record) {
    sa::PathRecord path;
    if (outcome.is_ok()) path = sa::decode_some<sa::PathRecord>(record);
    std::vector<sa::Ticket> tickets{ticket};
    if (shared) {
      queries_.erase(key);
      tickets = cache_.on_answer(key, outcome.is_ok() ? std::optional(path) : std::nullopt,
                                 around_.executor.now());
    }
    for (const sa::Ticket each : tickets) {
      if (const auto waiter = waiters_.find(each); waiter != waiters_.end()) {
        waiter->second.sent = 0;
      }
      around_.deliveries.later([this, each, outcome, path] { on_path(each, outcome, path); });
    }
  };
  const std::uint64_t last = around_.transport.send(path_request(query), on_answer);
  if (last == 0) return;
  if (shared) {
    queries_.insert_or_assign(key, last);
  } else if (const auto waiter = waiters_.find(ticket); waiter != waiters_.end()) {
    waiter->second.sent = last;
  }
}

void SaPaths::on_path(sa::Ticket ticket, const sa::Outcome& outcome, const sa::PathRecord& path) {
  const auto found = waiters_.find(ticket);
  if (found == waiters_.end()) return;
  const Waiter waiter = std::move(found->second);
  waiters_.erase(found);
  if (outcome.is_ok()) return waiter.on_path({}, path);
  waiter.on_path(explain_path(around_.fabric, around_.topology, outcome, waiter.query), path);
}

void SaPaths::withdraw(sa::Ticket ticket) {
  const auto found = waiters_.find(ticket);
  if (found == waiters_.end()) return;
  const PathQuery query = found->second.query;
  if (found->second.sent != 0) around_.transport.cancel(found->second.sent);
  waiters_.erase(found);
  if (!is_shared(query) || !cache_.withdraw(key_of(query), ticket)) return;
  const auto sent = queries_.find(key_of(query));
  if (sent == queries_.end()) return;
  around_.transport.cancel(sent->second);
  queries_.erase(sent);
}

}  // namespace ib::services
