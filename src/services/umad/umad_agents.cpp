// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "services/umad/umad_agents.h"

#include "mad/mgmt_class.h"
#include "mad/rmpp_header.h"
#include "services/gsi/messages_internal.h"

#include <algorithm>
#include <cstring>

namespace ib::services {
namespace {

constexpr std::uint8_t kClassVersions = 0x83;       // those below it
constexpr std::uint32_t kBmResponse = 1;            // of the attribute modifier
constexpr std::uint8_t kFirstReservedClass = 0x50;  // 0x81 aside

bool is_subnet_class(std::uint8_t mgmt_class) {
  return mgmt_class == mad::mgmt_class::kSubnLid || mgmt_class == mad::mgmt_class::kSubnDirected;
}

}  // namespace

bool is_umad_response(std::span<const std::byte> mad) {
  const mad::MadHeader header = header_of(mad);
  return mad::is_response(header.method) || header.method == mad::method::kTrapRepress ||
         (header.mgmt_class == mad::mgmt_class::kBm && (header.modifier & kBmResponse) != 0);
}

Status UmadAgents::check(const UmadRegistration& what, bool is_ethernet) {
  const std::uint8_t mgmt_class = what.mgmt_class;
  if (what.qpn > 1) return Status::InvalidParameter;
  if (what.qpn == 0 && is_ethernet) return Status::NotSupported;
  if (what.rmpp_version > mad::kRmppVersion) return Status::InvalidParameter;
  if (mgmt_class == 0) return what.has_own_rmpp ? Status::InvalidParameter : Status::Ok;
  const bool is_reserved =
      mgmt_class >= kFirstReservedClass && mgmt_class != mad::mgmt_class::kSubnDirected;
  if (is_reserved || what.class_version >= kClassVersions) return Status::InvalidParameter;
  if (mad::has_oui(mgmt_class) && (what.oui == 0 || what.oui > 0xffffff)) {
    return Status::InvalidParameter;
  }
  if (what.rmpp_version != 0 && !mad::has_rmpp(mgmt_class)) return Status::InvalidParameter;
  return is_subnet_class(mgmt_class) == (what.qpn == 0) ? Status::Ok : Status::InvalidParameter;
}

bool UmadAgents::is_taken(const UmadAgent& agent) const {
  const auto here = servers_.find(agent.port);
  if (here == servers_.end()) return false;
  return std::ranges::any_of(here->second, [&](UmadAgentNumber number) {
    const UmadRegistration& other = agents_.at(number).what;
    return other.mgmt_class == agent.what.mgmt_class &&
           other.class_version == agent.what.class_version &&
           (!mad::has_oui(other.mgmt_class) || other.oui == agent.what.oui) &&
           other.methods.meets(agent.what.methods);
  });
}

Result<UmadAgentNumber> UmadAgents::add(const UmadAgent& agent, bool is_ethernet) {
  IB_CHECK(check(agent.what, is_ethernet));
  const bool serves = agent.what.mgmt_class != 0 && !agent.what.methods.is_empty();
  if (serves && is_taken(agent)) return Status::InvalidParameter;
  do last_ = last_ == ~UmadAgentNumber{0} ? kFirst : last_ + 1;
  while (agents_.contains(last_));
  agents_.emplace(last_, agent);
  if (serves) servers_[agent.port].push_back(last_);
  return last_;
}

void UmadAgents::remove(UmadAgentNumber number) {
  const auto found = agents_.find(number);
  if (found == agents_.end()) return;
  if (const auto here = servers_.find(found->second.port); here != servers_.end()) {
    std::erase(here->second, number);
    if (here->second.empty()) servers_.erase(here);
  }
  agents_.erase(found);
}

const UmadAgent* UmadAgents::find(UmadAgentNumber number) const {
  const auto found = agents_.find(number);
  return found == agents_.end() ? nullptr : &found->second;
}

UmadAgentNumber UmadAgents::match(std::uint32_t port, std::uint32_t qpn,
                                  std::span<const std::byte> mad) const {
  const auto here = servers_.find(port);
  if (here == servers_.end()) return 0;
  const mad::MadHeader header = header_of(mad);
  const std::uint32_t oui = mad::has_oui(header.mgmt_class) ? mad::oui_of(mad) : 0;
  for (const UmadAgentNumber number : here->second) {
    const UmadRegistration& what = agents_.at(number).what;
    const bool has_oui = !mad::has_oui(what.mgmt_class) || what.oui == oui;
    if (what.qpn == qpn && what.mgmt_class == header.mgmt_class && has_oui &&
        what.class_version == header.class_version && what.methods.has(header.method)) {
      return number;
    }
  }
  return 0;
}

bool UmadAgents::serves(std::uint32_t port, std::uint8_t mgmt_class) const {
  const auto here = servers_.find(port);
  return here != servers_.end() && std::ranges::any_of(here->second, [&](UmadAgentNumber number) {
           return agents_.at(number).what.mgmt_class == mgmt_class;
         });
}

}  // namespace ib::services
