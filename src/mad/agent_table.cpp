// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "mad/agent_table.h"

#include "mad/mgmt_class.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace ib::mad {

Status AgentTable::check(const AgentKey& key, std::string& reason) const {
  if (!is_general_class(key.mgmt_class)) {
    reason = fmt::format("class {:#04x} is none of general management", key.mgmt_class);
    return Status::InvalidParameter;
  }
  if (has_oui(key.mgmt_class) ? key.oui > 0xffffff : key.oui != 0) {
    reason = fmt::format(
        "class {:#04x} with OUI {:#x}: an OUI has 24 bits and belongs to classes {:#x} to {:#x}",
        key.mgmt_class, key.oui, mgmt_class::kVendorHigh, mgmt_class::kVendorHighEnd);
    return Status::InvalidParameter;
  }
  for (const AgentId id : by_class_[key.mgmt_class]) {
    const Agent& other = agents_.at(id);
    const bool same_port = !key.port || !other.key.port || key.port == other.key.port;
    const bool same_requests = key.class_version == other.key.class_version &&
                               key.oui == other.key.oui && key.methods.meets(other.key.methods);
    if (!same_port || !same_requests) continue;
    reason = fmt::format("{} takes method {:#04x} of class {:#04x}", other.name,
                         key.methods.first_of_both(other.key.methods), key.mgmt_class);
    return Status::AlreadyExists;
  }
  if (agents_.size() < limit_) return Status::Ok;
  reason = fmt::format("there are {} agents", agents_.size());
  return Status::LimitExceeded;
}

Result<AgentId> AgentTable::add(const AgentKey& key, std::string name, std::string& reason) {
  IB_CHECK(check(key, reason));
  do ++last_;
  while (last_ == 0 || agents_.contains(last_));
  agents_.emplace(last_, Agent{key, std::move(name)});
  by_class_[key.mgmt_class].push_back(last_);
  return last_;
}

void AgentTable::remove(AgentId agent) {
  const auto found = agents_.find(agent);
  if (found == agents_.end()) return;
  std::erase(by_class_[found->second.key.mgmt_class], agent);
  agents_.erase(found);
}

const AgentKey* AgentTable::find(AgentId agent) const {
  const auto found = agents_.find(agent);
  return found == agents_.end() ? nullptr : &found->second.key;
}

// The refusal tells how near an agent came: the class with another version, or the method.
AgentTable::Match AgentTable::match(std::uint32_t port, std::span<const std::byte> mad) const {
  MadHeader header;
  std::memcpy(&header, mad.data(), sizeof header);
  if (header.base_version != kBaseVersion) return {0, mad_status::kBadVersion};
  const std::uint32_t oui = has_oui(header.mgmt_class) ? oui_of(mad) : 0;
  Match match{0, mad_status::kBadVersion};
  for (const AgentId id : by_class_[header.mgmt_class]) {
    const AgentKey& key = agents_.at(id).key;
    const bool is_here = !key.port || *key.port == port;
    if (!is_here || key.methods.is_empty() || key.oui != oui ||
        key.class_version != header.class_version) {
      continue;
    }
    if (key.methods.has(header.method)) return {id, mad_status::kOk};
    match.refusal = mad_status::kMethodNotSupported;
  }
  return match;
}

}  // namespace ib::mad
