// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Indexes are removed by the values that they were made with: those change only in between.
#include "cm/connection_table_internal.h"

namespace ib::cm {
namespace {

template <class Map, class Key>
Connection* lookup(const Map& map, const Key& key) {
  const auto found = map.find(key);
  return found == map.end() ? nullptr : found->second;
}

// Removes the entry if it is that of this connection.
template <class Map, class Key>
void remove(Map& map, const Key& key, const Connection& connection) {
  const auto found = map.find(key);
  if (found != map.end() && found->second == &connection) map.erase(found);
}

RemoteKey remote_id(const Connection& connection) {
  return {connection.info.remote_ca_guid, connection.info.remote_comm_id};
}
RemoteKey remote_qpn(const Connection& connection) {
  return {connection.info.remote_ca_guid, connection.info.remote_qpn};
}

}  // namespace

Connection& ConnectionTable::create() {
  std::uint32_t id = numbers_.next();
  while (id == 0 || all_.contains(id)) id = numbers_.next();
  auto& connection = all_[id];
  connection = std::make_unique<Connection>();
  connection->id = ConnectionId{id};
  connection->info.local_comm_id = id;
  return *connection;
}

void ConnectionTable::erase(Connection& connection) {
  forget_qpns(connection);
  forget_remote(connection);
  forget_peer(connection);
  set_deadline(connection, std::nullopt);
  all_.erase(static_cast<std::uint32_t>(connection.id));
}

std::vector<ConnectionId> ConnectionTable::ids() const {
  std::vector<ConnectionId> ids;
  ids.reserve(all_.size());
  for (const auto& [id, connection] : all_) ids.push_back(ConnectionId{id});
  return ids;
}

Connection* ConnectionTable::find(std::uint32_t id) const {
  const auto found = all_.find(id);
  return found == all_.end() ? nullptr : found->second.get();
}
Connection* ConnectionTable::find_remote(std::uint64_t ca_guid, std::uint32_t comm_id) const {
  return lookup(remote_ids_, RemoteKey{ca_guid, comm_id});
}
Connection* ConnectionTable::find_remote_qpn(std::uint64_t ca_guid, std::uint32_t qpn) const {
  return lookup(remote_qpns_, RemoteKey{ca_guid, qpn});
}

bool ConnectionTable::index_remote(Connection& connection) {
  Connection* const same_id = lookup(remote_ids_, remote_id(connection));
  const bool has_qpn = connection.info.remote_qpn != 0;
  Connection* const same_qpn = has_qpn ? lookup(remote_qpns_, remote_qpn(connection)) : nullptr;
  if ((same_id != nullptr && same_id != &connection) ||
      (same_qpn != nullptr && same_qpn != &connection)) {
    return false;
  }
  remote_ids_[remote_id(connection)] = &connection;
  if (has_qpn) remote_qpns_[remote_qpn(connection)] = &connection;
  return true;
}

void ConnectionTable::change_local_qpn(Connection& connection, std::uint32_t qpn) {
  remove(local_qpns_, connection.info.local_qpn, connection);
  connection.info.local_qpn = qpn;
  if (qpn != 0) local_qpns_[qpn] = &connection;
}

void ConnectionTable::forget_qpns(Connection& connection) {
  remove(local_qpns_, connection.info.local_qpn, connection);
  remove(remote_qpns_, remote_qpn(connection), connection);
}
void ConnectionTable::forget_remote(Connection& connection) {
  remove(remote_ids_, remote_id(connection), connection);
}

void ConnectionTable::index_peer(Connection& connection) {
  peers_.emplace(connection.info.service_id, &connection);
}
void ConnectionTable::forget_peer(Connection& connection) {
  const auto [first, last] = peers_.equal_range(connection.info.service_id);
  for (auto it = first; it != last; ++it) {
    if (it->second == &connection) {
      peers_.erase(it);
      return;
    }
  }
}

void ConnectionTable::set_deadline(Connection& connection, std::optional<Instant> deadline) {
  const auto id = static_cast<std::uint32_t>(connection.id);
  if (connection.deadline) deadlines_.erase({*connection.deadline, id});
  connection.deadline = deadline;
  if (deadline) deadlines_.insert({*deadline, id});
}

std::optional<Instant> ConnectionTable::deadline() const {
  if (deadlines_.empty()) return std::nullopt;
  return deadlines_.begin()->first;
}

Connection* ConnectionTable::due(Instant now) const {
  if (deadlines_.empty() || deadlines_.begin()->first > now) return nullptr;
  return find(deadlines_.begin()->second);
}

}  // namespace ib::cm
