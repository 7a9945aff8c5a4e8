// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// StreamListeners: where programs of the fabric listen with TCP sockets: addresses of nodes.
//
// A listener belongs to the sessions that hold it: those that have said so, and those that accept
// connections there. It goes with the last of them. That no process which is left has the socket
// after all is found out by connecting (forget()); that one has, when it accepts.
#pragma once

#include "base/result.h"
#include "platform/stream_host.h"

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

namespace ib::services {

class StreamListeners {
 public:
  static constexpr std::size_t kMostOfSession = 8192;

  struct Key {
    std::uint32_t node = 0;
    std::array<std::uint8_t, 16> address{};  // maybe a wildcard
    std::uint16_t port = 0;
    friend bool operator==(const Key&, const Key&) = default;
  };
  struct Holder {
    std::uint64_t session = 0;
    std::uint32_t count = 0;  // sockets
    std::uint32_t pid = 0;
  };

  // LimitExceeded: the session has too many.
  Status add(const Key& key, std::uint64_t session, std::uint32_t pid);
  void remove(const Key& key, std::uint64_t session);
  // The session has accepted a connection to this address.
  void on_accepted(const Key& name, std::uint64_t session, std::uint32_t pid);
  void on_session_ended(std::uint64_t session);
  // Nobody listens there.
  void forget(const Key& key);

  // Returns the listener that gets connections to this address, which is the node's, or nullptr.
  const Key* find(const Key& name) const;

  template <class F>
  void for_each(F&& f) const {
    for (const auto& [key, holders] : all_) f(key, holders);
  }

 private:
  struct Hash {
    std::size_t operator()(const Key& key) const;
  };
  void let_go(const Key& key, std::uint64_t session);

  std::unordered_map<Key, std::vector<Holder>, Hash> all_;
  std::unordered_map<std::uint64_t, std::vector<Key>> of_session_;
};

}  // namespace ib::services
