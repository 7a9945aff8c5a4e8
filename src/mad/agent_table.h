// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// AgentTable: which agent gets a request [IBA1 13.5]. An agent registers a class with its version,
// vendor classes 0x30 to 0x4f with an OUI, the methods of requests that it takes, and perhaps one
// port. Two agents never take the same request.
//
// Pure.
#pragma once

#include "base/result.h"
#include "mad/header.h"
#include "mad/method_set.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace ib::mad {

using AgentId = std::uint32_t;  // 0: none

struct AgentKey {
  std::uint8_t mgmt_class = 0;
  std::uint8_t class_version = 1;
  std::uint32_t oui = 0;
  MethodSet methods;                    // empty: it only sends
  std::optional<std::uint32_t> port{};  // of this port only
};

class AgentTable {
 public:
  struct Match {
    AgentId agent = 0;
    // Of a request that no agent takes: mad_status of the refusal.
    std::uint16_t refusal = mad_status::kOk;
  };

  explicit AgentTable(std::size_t limit = 1024) : limit_(limit) {}

  // AlreadyExists: another agent takes such requests; InvalidParameter; LimitExceeded. The reason
  // names the other one by what `name_of` it was added with.
  Result<AgentId> add(const AgentKey& key, std::string name, std::string& reason);
  void remove(AgentId agent);
  // Nothing if it is gone.
  const AgentKey* find(AgentId agent) const;
  const std::string& name_of(AgentId agent) const { return agents_.at(agent).name; }

  // For a request that came to `port`; the MAD is at least kMadSize long.
  Match match(std::uint32_t port, std::span<const std::byte> mad) const;
  std::size_t size() const { return agents_.size(); }

 private:
  struct Agent {
    AgentKey key;
    std::string name;
  };
  Status check(const AgentKey& key, std::string& reason) const;

  std::size_t limit_;
  AgentId last_ = 0;  // an id is not used twice: late responses of the first would reach the second
  std::map<AgentId, Agent> agents_;
  std::array<std::vector<AgentId>, 256> by_class_;
};

}  // namespace ib::mad
