// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "services/streams/stream_listeners.h"

#include "verbs/gid.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace ib::services {
namespace {

using Address = std::array<std::uint8_t, 16>;
constexpr Address kAnyIpv4{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0, 0, 0, 0};
constexpr Address kAnyIpv6{};

StreamListeners::Holder* find_holder(std::vector<StreamListeners::Holder>& holders,
                                     std::uint64_t session) {
  const auto at = std::find_if(holders.begin(), holders.end(),
                               [session](const auto& one) { return one.session == session; });
  return at == holders.end() ? nullptr : &*at;
}

}  // namespace

std::size_t StreamListeners::Hash::operator()(const Key& key) const {
  std::uint64_t halves[2];
  std::memcpy(halves, key.address.data(), sizeof halves);
  std::uint64_t hash = halves[0] * 0x9e3779b97f4a7c15u ^ halves[1];
  hash = (hash ^ (std::uint64_t{key.node} << 16 | key.port)) * 0xff51afd7ed558ccdu;
  return static_cast<std::size_t>(hash ^ hash >> 32);
}

Status StreamListeners::add(const Key& key, std::uint64_t session, std::uint32_t pid) {
  std::vector<Key>& own = of_session_[session];
  if (own.size() >= kMostOfSession) return Status::LimitExceeded;
  std::vector<Holder>& holders = all_[key];
  if (Holder* holder = find_holder(holders, session)) {
    ++holder->count;
    return Status::Ok;
  }
  holders.push_back({session, 1, pid});
  own.push_back(key);
  return Status::Ok;
}

void StreamListeners::remove(const Key& key, std::uint64_t session) {
  const auto at = all_.find(key);
  if (at == all_.end()) return;
  Holder* holder = find_holder(at->second, session);
  if (holder == nullptr || --holder->count > 0) return;
  let_go(key, session);
  const auto own = of_session_.find(session);
  if (own == of_session_.end()) return;
  std::erase(own->second, key);
  if (own->second.empty()) of_session_.erase(own);
}

void StreamListeners::let_go(const Key& key, std::uint64_t session) {
  const auto at = all_.find(key);
  if (at == all_.end()) return;
  std::erase_if(at->second, [session](const Holder& one) { return one.session == session; });
  if (at->second.empty()) all_.erase(at);
}

void StreamListeners::on_accepted(const Key& name, std::uint64_t session, std::uint32_t pid) {
  const Key* known = find(name);
  const Key key = known != nullptr ? *known : name;
  const auto at = all_.find(key);
  if (at != all_.end() && find_holder(at->second, session) != nullptr) return;
  static_cast<void>(add(key, session, pid));
}

void StreamListeners::on_session_ended(std::uint64_t session) {
  const auto own = of_session_.find(session);
  if (own == of_session_.end()) return;
  const std::vector<Key> keys = std::move(own->second);
  of_session_.erase(own);
  for (const Key& key : keys) let_go(key, session);
}

void StreamListeners::forget(const Key& key) {
  const auto at = all_.find(key);
  if (at == all_.end()) return;
  const Key copy = key;  // may be the one in the table
  const std::vector<Holder> holders = std::move(at->second);
  all_.erase(at);
  for (const Holder& holder : holders) {
    const auto own = of_session_.find(holder.session);
    if (own == of_session_.end()) continue;
    std::erase(own->second, copy);
    if (own->second.empty()) of_session_.erase(own);
  }
}

const StreamListeners::Key* StreamListeners::find(const Key& name) const {
  Key wanted = name;
  const auto look = [&](const Address& address) -> const Key* {
    wanted.address = address;
    const auto at = all_.find(wanted);
    return at == all_.end() ? nullptr : &at->first;
  };
  if (const Key* exact = look(name.address)) return exact;
  if (verbs::is_ipv4(name.address)) {
    if (const Key* any = look(kAnyIpv4)) return any;
  }
  return look(kAnyIpv6);  // takes IPv4, too, unless the socket says otherwise: then TCP refuses
}

}  // namespace ib::services
