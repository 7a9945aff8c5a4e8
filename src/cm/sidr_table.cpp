// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// An exchange is in one of two indexes, by the side that sent the request.
#include "cm/sidr_table_internal.h"

namespace ib::cm {

SidrTable::Key SidrTable::key_of(const MadAddress& from, std::uint32_t request_id) {
  return {peer_of(from), from.remote_qpn, request_id};
}

SidrExchange& SidrTable::create() {
  while (next_id_ == 0 || all_.contains(next_id_)) ++next_id_;
  auto& exchange = all_[next_id_];
  exchange = std::make_unique<SidrExchange>();
  exchange->id = SidrId{next_id_++};
  return *exchange;
}

SidrExchange& SidrTable::create_request() {
  std::uint32_t request_id = request_ids_.next();
  while (requests_.contains(request_id)) request_id = request_ids_.next();
  SidrExchange& exchange = create();
  exchange.request_id = request_id;
  requests_[request_id] = &exchange;
  return exchange;
}

SidrExchange& SidrTable::create_answer(const MadAddress& from, std::uint32_t request_id) {
  SidrExchange& exchange = create();
  exchange.request_id = request_id;
  exchange.peer = from;
  remote_[key_of(from, request_id)] = &exchange;
  return exchange;
}

void SidrTable::erase(SidrExchange& exchange) {
  forget_remote(exchange);
  set_deadline(exchange, std::nullopt);
  all_.erase(static_cast<std::uint32_t>(exchange.id));
}

void SidrTable::forget_remote(SidrExchange& exchange) {
  const auto request = requests_.find(exchange.request_id);
  if (request != requests_.end() && request->second == &exchange) requests_.erase(request);
  const auto remote = remote_.find(key_of(exchange.peer, exchange.request_id));
  if (remote != remote_.end() && remote->second == &exchange) remote_.erase(remote);
}

SidrExchange* SidrTable::find(std::uint32_t id) const {
  const auto found = all_.find(id);
  return found == all_.end() ? nullptr : found->second.get();
}
SidrExchange* SidrTable::find_request(std::uint32_t request_id) const {
  const auto found = requests_.find(request_id);
  return found == requests_.end() ? nullptr : found->second;
}
SidrExchange* SidrTable::find_answer(const MadAddress& from, std::uint32_t request_id) const {
  const auto found = remote_.find(key_of(from, request_id));
  return found == remote_.end() ? nullptr : found->second;
}

void SidrTable::set_deadline(SidrExchange& exchange, std::optional<Instant> deadline) {
  const auto id = static_cast<std::uint32_t>(exchange.id);
  if (exchange.deadline) deadlines_.erase({*exchange.deadline, id});
  exchange.deadline = deadline;
  if (deadline) deadlines_.insert({*deadline, id});
}

std::optional<Instant> SidrTable::deadline() const {
  if (deadlines_.empty()) return std::nullopt;
  return deadlines_.begin()->first;
}

SidrExchange* SidrTable::due(Instant now) const {
  if (deadlines_.empty() || deadlines_.begin()->first > now) return nullptr;
  return find(deadlines_.begin()->second);
}

}  // namespace ib::cm
