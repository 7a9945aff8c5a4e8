// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "services/streams/stream_table.h"

#include "services/streams/stream_names.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace ib::services {

using platform::TcpName;
using verbs::control::StreamAddress;

namespace {

std::uint64_t hash_of(const TcpName& client, const TcpName& server) {
  std::uint64_t parts[4];
  std::memcpy(parts, client.address.data(), sizeof client.address);
  std::memcpy(parts + 2, server.address.data(), sizeof server.address);
  std::uint64_t hash = std::uint64_t{client.port} << 16 | server.port;
  for (const std::uint64_t part : parts) hash = (hash ^ part) * 0x9e3779b97f4a7c15u;
  return hash ^ hash >> 32;
}

// The scope is another number in each network namespace.
bool is_same(const TcpName& one, const StreamAddress& other) {
  return one.address == other.address && one.port == other.port;
}

}  // namespace

Stream& StreamTable::add() {
  auto stream = std::make_unique<Stream>();
  stream->number = ++last_;
  return *all_.emplace(last_, std::move(stream)).first->second;
}

Stream* StreamTable::find(std::uint64_t number) const {
  const auto at = all_.find(number);
  return at == all_.end() ? nullptr : at->second.get();
}

Stream& StreamTable::after(std::uint64_t number) const {
  const auto at = all_.upper_bound(number);
  return at == all_.end() ? *all_.begin()->second : *at->second;
}

void StreamTable::enter_names(Stream& stream) {
  by_names_.emplace(hash_of(stream.local, stream.remote), &stream);
  stream.has_names = true;
}

void StreamTable::leave_names(Stream& stream) {
  if (!std::exchange(stream.has_names, false)) return;
  const auto [first, last] = by_names_.equal_range(hash_of(stream.local, stream.remote));
  for (auto at = first; at != last; ++at) {
    if (at->second != &stream) continue;
    by_names_.erase(at);
    return;
  }
}

// Nodes with network namespaces of their own may have connections of the same names. A process that
// accepts for another node finds the only one.
Stream* StreamTable::find_by_names(const verbs::control::StreamAcceptIn& in,
                                   std::uint32_t node) const {
  const auto [first, last] = by_names_.equal_range(hash_of(name_of(in.remote), name_of(in.local)));
  Stream* other = nullptr;
  std::size_t others = 0;
  for (auto at = first; at != last; ++at) {
    Stream& one = *at->second;
    if (!is_same(one.local, in.remote) || !is_same(one.remote, in.local)) continue;
    if (one.server_node == node) return &one;
    other = &one;
    ++others;
  }
  return others == 1 ? other : nullptr;
}

std::vector<Stream*> StreamTable::unclaimed() const {
  std::vector<Stream*> found;
  for (const auto& [hash, stream] : by_names_) {
    if (stream->stage == Stream::Stage::Open) found.push_back(stream);
  }
  return found;
}

void StreamTable::hold(Stream& stream, std::uint32_t end, std::uint64_t session) {
  std::vector<std::uint64_t>& holders = stream.ends[end].holders;
  if (std::find(holders.begin(), holders.end(), session) == holders.end()) {
    holders.push_back(session);
  }
  held_[session].insert(stream.number);
}

void StreamTable::release(const Stream& stream) {
  for (const Stream::End& end : stream.ends) {
    for (const std::uint64_t session : end.holders) {
      const auto held = held_.find(session);
      if (held == held_.end()) continue;
      held->second.erase(stream.number);
      if (held->second.empty()) held_.erase(held);
    }
  }
}

std::set<std::uint64_t> StreamTable::take_held(std::uint64_t session) {
  const auto held = held_.find(session);
  if (held == held_.end()) return {};
  std::set<std::uint64_t> numbers = std::move(held->second);
  held_.erase(held);
  for (const std::uint64_t number : numbers) {
    for (Stream::End& end : find(number)->ends) std::erase(end.holders, session);
  }
  return numbers;
}

}  // namespace ib::services
