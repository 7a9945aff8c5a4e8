// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// ConnectionTable: the connections of an engine, each found by its ID, by what the other side calls
// it, by both queue pairs, and by its deadline.
//
// Invariant: an index has a connection only under its present values; the functions that change
// those are here.
#pragma once

#include "base/time.h"
#include "cm/connection_internal.h"
#include "cm/numbers_internal.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <unordered_map>
#include <utility>
#include <vector>

namespace ib::cm {

// A number that a channel adapter has given out: a communication ID or a QPN.
struct RemoteKey {
  std::uint64_t ca_guid = 0;
  std::uint32_t number = 0;
  friend bool operator==(const RemoteKey&, const RemoteKey&) = default;
};
struct RemoteKeyHash {
  std::size_t operator()(const RemoteKey& key) const {
    std::uint64_t x =
        (key.ca_guid ^ (std::uint64_t{key.number} << 32 | key.number)) * 0x9e37'79b9'7f4a'7c15u;
    return static_cast<std::size_t>(x ^ x >> 29);
  }
};

class ConnectionTable {
 public:
  explicit ConnectionTable(std::uint64_t seed) : numbers_(seed) {}

  Connection& create();
  void erase(Connection& connection);
  std::size_t size() const { return all_.size(); }
  std::vector<ConnectionId> ids() const;

  // Returns null if there is none.
  Connection* find(std::uint32_t id) const;
  Connection* find_remote(std::uint64_t ca_guid, std::uint32_t comm_id) const;
  Connection* find_remote_qpn(std::uint64_t ca_guid, std::uint32_t qpn) const;
  bool has_local_qpn(std::uint32_t qpn) const { return local_qpns_.contains(qpn); }
  // Calls `visit` with each peer-to-peer connection that waits for this service.
  template <class Visit>
  void for_each_peer(std::uint64_t service_id, Visit visit) const {
    const auto [first, last] = peers_.equal_range(service_id);
    for (auto it = first; it != last; ++it) visit(*it->second);
  }

  // The other side's names for the connection are those in `info`; QPN 0 is none. Returns false if
  // another connection has its communication ID or QPN; nothing is changed then.
  [[nodiscard]] bool index_remote(Connection& connection);
  // QPN 0 is none.
  void change_local_qpn(Connection& connection, std::uint32_t qpn);
  // Both queue pairs are free again.
  void forget_qpns(Connection& connection);
  void forget_remote(Connection& connection);
  void index_peer(Connection& connection);
  void forget_peer(Connection& connection);

  void set_deadline(Connection& connection, std::optional<Instant> deadline);
  std::optional<Instant> deadline() const;
  // The connection whose deadline has passed first; null: none.
  Connection* due(Instant now) const;

 private:
  Numbers numbers_;
  std::unordered_map<std::uint32_t, std::unique_ptr<Connection>> all_;
  std::unordered_map<RemoteKey, Connection*, RemoteKeyHash> remote_ids_;
  std::unordered_map<RemoteKey, Connection*, RemoteKeyHash> remote_qpns_;
  std::unordered_map<std::uint32_t, Connection*> local_qpns_;
  std::unordered_multimap<std::uint64_t, Connection*> peers_;
  std::set<std::pair<Instant, std::uint32_t>> deadlines_;
};

}  // namespace ib::cm
