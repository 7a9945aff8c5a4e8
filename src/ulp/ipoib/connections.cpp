// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Both halves of connected mode: which connection carries what, and when it ends.
#include "ulp/ipoib/connections.h"

#include "ulp/ipoib/packets/headers.h"

#include <algorithm>
#include <utility>

namespace ib::ipoib {
namespace {

// An entry that was used within this time is not evicted for another.
constexpr Duration kInUse = std::chrono::seconds(30);

}  // namespace

Connections::Connections(const Settings& settings, Host& host, Counters& counters,
                         WaitingBudget& budget)
    : settings_(&settings),
      host_(&host),
      counters_(&counters),
      budget_(&budget),
      random_(settings.seed ^ 0x636f'6e6e) {}

std::optional<ConnectionId> Connections::id_of(const Active& active) {
  if (const auto* state = std::get_if<Connecting>(&active.state)) return state->id;
  if (const auto* state = std::get_if<Established>(&active.state)) return state->id;
  return std::nullopt;
}

Connections::Active* Connections::find_active(ConnectionId id) {
  const auto found = active_ids_.find(static_cast<std::uint32_t>(id));
  return found != active_ids_.end() ? &active_.find(found->second)->second : nullptr;
}

std::optional<UsableConnection> Connections::use(const HardwareAddress& peer, Instant now) {
  const auto found = active_.find({peer.qpn, peer.gid});
  if (found == active_.end()) return std::nullopt;
  const auto* const state = std::get_if<Established>(&found->second.state);
  if (state == nullptr) return std::nullopt;
  found->second.last_used = now;
  return UsableConnection{state->id, state->mtu};
}

bool Connections::start(const HardwareAddress& peer, const PathRecord& path,
                        const AddressVector& vector, Instant now) {
  if (!settings_->connected_mode || !peer.takes_rc()) return false;
  Active* const active = find_or_add(peer, now);
  if (active == nullptr) return false;
  active->last_used = now;
  const auto* const refused = std::get_if<Refused>(&active->state);
  if (refused == nullptr) return std::holds_alternative<Connecting>(active->state);
  if (refused->retry_at > now) return false;

  const ConnectionId id{next_id_++};
  const Instant until = now + settings_->times.connect;
  active->state = Connecting{id, until};
  active_ids_.emplace(static_cast<std::uint32_t>(id), end_of(peer));
  next_.at(until);
  ++counters_->connect_requests;
  ConnectRequest request;
  request.peer = peer;
  request.path = vector;
  request.path_mtu = path.mtu;
  request.service_id = kServiceId | static_cast<std::uint32_t>(peer.qpn);
  request.data = {static_cast<std::uint32_t>(settings_->qpn), kConnectionBufferBytes};
  host_->connect(id, request);
  return true;
}

void Connections::wait(const HardwareAddress& peer, WaitingPacket packet) {
  const auto found = active_.find({peer.qpn, peer.gid});
  if (found == active_.end()) return counters_->drop(Drop::QueueFull);
  const Instant until = packet.until;
  if (!found->second.waiting.put(std::move(packet))) return counters_->drop(Drop::QueueFull);
  next_.at(until);
}

std::optional<WaitingPacket> Connections::take_waiting(const HardwareAddress& peer) {
  const auto found = active_.find({peer.qpn, peer.gid});
  if (found == active_.end() || std::holds_alternative<Connecting>(found->second.state)) {
    return std::nullopt;
  }
  return found->second.waiting.take();
}

std::optional<HardwareAddress> Connections::on_connected(ConnectionId id,
                                                         std::span<const std::byte> private_data,
                                                         Instant now) {
  Active* const active = find_active(id);
  if (active == nullptr || !std::holds_alternative<Connecting>(active->state)) return std::nullopt;
  std::uint32_t receive_bytes = 0;
  bool is_peer = false;
  if (private_data.size() >= sizeof(ConnectionData)) {
    const auto data = get<ConnectionData>(private_data);
    receive_bytes = data.receive_bytes;
    is_peer = data.qpn == static_cast<std::uint32_t>(active->peer.qpn);
  }
  // Not the interface that was meant, or one that takes less than a datagram.
  constexpr std::uint32_t kLeastBytes = 256;
  if (!is_peer || receive_bytes < kLeastBytes) {
    host_->disconnect(id);
    fail(*active, Trouble::ConnectionRefused, Status::Malformed, now);
    return active->peer;
  }
  const std::uint32_t mtu = std::min(receive_bytes, kConnectionBufferBytes) - kEncapsulationBytes;
  active->state = Established{id, mtu};
  active->failures = 0;
  active->last_used = now;
  next_.at(now + settings_->times.idle_connection);
  if (active->trouble != Trouble::None) {
    active->trouble = Trouble::None;
    host_->report({Trouble::None, Status::Ok, active->peer.gid});
  }
  return active->peer;
}

std::optional<HardwareAddress> Connections::on_lost(ConnectionId id, Status reason, Instant now) {
  if (passive_.erase(static_cast<std::uint32_t>(id)) != 0) return std::nullopt;
  Active* const active = find_active(id);
  if (active == nullptr) return std::nullopt;
  const bool was_established = std::holds_alternative<Established>(active->state);
  fail(*active, was_established ? Trouble::ConnectionLost : Trouble::ConnectionRefused, reason,
       now);
  return active->peer;
}

void Connections::fail(Active& active, Trouble trouble, Status status, Instant now) {
  const Times& times = settings_->times;
  if (const auto id = id_of(active)) active_ids_.erase(static_cast<std::uint32_t>(*id));
  ++active.failures;
  const Instant retry_at =
      now + random_.back_off(times.first_reconnect, times.longest_reconnect, active.failures);
  active.state = Refused{retry_at};
  next_.at(std::max(retry_at, active.last_used + times.idle_connection));
  if (active.trouble == trouble) return;
  active.trouble = trouble;
  host_->report({trouble, status, active.peer.gid});
}

Result<ConnectionId> Connections::on_request(const HardwareAddress& peer, Instant now) {
  // A peer makes a second connection only when the first one is dead on its side.
  for (auto it = passive_.begin(); it != passive_.end();) {
    if (!it->second.peer.is_same_end(peer)) {
      ++it;
      continue;
    }
    host_->disconnect(ConnectionId{it->first});
    it = passive_.erase(it);
  }
  if (passive_.size() >= settings_->limits.connections && !make_passive_room(now)) {
    return Status::InsufficientResources;
  }
  const ConnectionId id{next_id_++};
  passive_.emplace(static_cast<std::uint32_t>(id), Passive{peer, now});
  next_.at(now + settings_->times.idle_passive_connection);
  return id;
}

std::optional<HardwareAddress> Connections::on_message(ConnectionId id, Instant now) {
  if (const auto found = passive_.find(static_cast<std::uint32_t>(id)); found != passive_.end()) {
    found->second.last_used = now;
    return found->second.peer;
  }
  // RFC 4755 lets a peer send on any connection.
  Active* const active = find_active(id);
  if (active == nullptr) return std::nullopt;
  active->last_used = now;
  return active->peer;
}

void Connections::forget(const HardwareAddress& peer) {
  if (const auto found = active_.find({peer.qpn, peer.gid}); found != active_.end()) {
    if (const auto id = id_of(found->second)) {
      active_ids_.erase(static_cast<std::uint32_t>(*id));
      host_->disconnect(*id);
    }
    drop(Drop::WaitExpired, found->second.waiting.clear());
    active_.erase(found);
  }
  for (auto it = passive_.begin(); it != passive_.end();) {
    if (it->second.peer.is_same_end(peer)) {
      host_->disconnect(ConnectionId{it->first});
      it = passive_.erase(it);
    } else {
      ++it;
    }
  }
}

void Connections::clear() {
  for (auto& [end, active] : active_) {
    if (const auto id = id_of(active)) host_->disconnect(*id);
    drop(Drop::WaitExpired, active.waiting.clear());
  }
  for (const auto& [id, passive] : passive_) host_->disconnect(ConnectionId{id});
  active_.clear();
  active_ids_.clear();
  passive_.clear();
  next_.clear();
}

Connections::Active* Connections::find_or_add(const HardwareAddress& peer, Instant now) {
  const PeerEnd end = end_of(peer);
  if (const auto found = active_.find(end); found != active_.end()) return &found->second;
  if (active_.size() >= settings_->limits.connections && !make_active_room(now)) return nullptr;
  Active& active =
      active_.try_emplace(end, *budget_, settings_->limits.packets_per_queue).first->second;
  active.peer = peer;
  active.state = Refused{now};
  active.last_used = now;
  return &active;
}

bool Connections::make_active_room(Instant now) {
  const auto oldest = std::min_element(active_.begin(), active_.end(), [](auto& a, auto& b) {
    return a.second.last_used < b.second.last_used;
  });
  if (oldest == active_.end() || oldest->second.last_used + kInUse > now) return false;
  if (const auto id = id_of(oldest->second)) {
    active_ids_.erase(static_cast<std::uint32_t>(*id));
    host_->disconnect(*id);
  }
  drop(Drop::WaitExpired, oldest->second.waiting.clear());
  active_.erase(oldest);
  return true;
}

bool Connections::make_passive_room(Instant now) {
  const auto oldest = std::min_element(passive_.begin(), passive_.end(), [](auto& a, auto& b) {
    return a.second.last_used < b.second.last_used;
  });
  if (oldest == passive_.end() || oldest->second.last_used + kInUse > now) return false;
  host_->disconnect(ConnectionId{oldest->first});
  passive_.erase(oldest);
  return true;
}

void Connections::on_time(Instant now) {
  if (!next_.has_passed(now)) return;
  next_.clear();
  walk_active(now);
  walk_passive(now);
}

void Connections::walk_active(Instant now) {
  const Duration idle = settings_->times.idle_connection;
  for (auto it = active_.begin(); it != active_.end();) {
    Active& active = it->second;
    drop(Drop::WaitExpired, active.waiting.expire(now));
    if (const auto* state = std::get_if<Connecting>(&active.state);
        state != nullptr && state->until <= now) {
      host_->disconnect(state->id);
      fail(active, Trouble::ConnectionRefused, Status::Timeout, now);
    }
    Instant over = active.last_used + idle;
    if (const auto* state = std::get_if<Connecting>(&active.state)) over = state->until;
    if (const auto* state = std::get_if<Refused>(&active.state)) {
      over = std::max(over, state->retry_at);
    }
    if (over <= now && active.waiting.size() == 0) {
      if (const auto id = id_of(active)) {
        active_ids_.erase(static_cast<std::uint32_t>(*id));
        host_->disconnect(*id);
      }
      it = active_.erase(it);
      continue;
    }
    if (active.waiting.size() == 0) next_.at(over);
    next_.at(active.waiting.deadline());
    ++it;
  }
}

void Connections::walk_passive(Instant now) {
  for (auto it = passive_.begin(); it != passive_.end();) {
    const Instant over = it->second.last_used + settings_->times.idle_passive_connection;
    if (over <= now) {
      host_->disconnect(ConnectionId{it->first});
      it = passive_.erase(it);
      continue;
    }
    next_.at(over);
    ++it;
  }
}

void Connections::drop(Drop reason, std::size_t count) {
  counters_->drops[static_cast<std::size_t>(reason)] += count;
}

std::vector<ConnectionRow> Connections::rows() const {
  std::vector<ConnectionRow> rows;
  rows.reserve(active_.size() + passive_.size());
  for (const auto& [end, active] : active_) {
    ConnectionRow row;
    row.is_active = true;
    row.peer = active.peer;
    row.state = ConnectionRow::State::Refused;
    if (const auto* state = std::get_if<Connecting>(&active.state)) {
      row.state = ConnectionRow::State::Connecting;
      row.id = state->id;
    }
    if (const auto* state = std::get_if<Established>(&active.state)) {
      row.state = ConnectionRow::State::Established;
      row.id = state->id;
      row.mtu = state->mtu;
    }
    row.waiting_packets = active.waiting.size();
    rows.push_back(row);
  }
  for (const auto& [id, passive] : passive_) {
    rows.push_back({false, passive.peer, ConnectionRow::State::Established, ConnectionId{id},
                    kConnectedMtu, 0});
  }
  return rows;
}

}  // namespace ib::ipoib
