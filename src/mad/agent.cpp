// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Access by M_Key, and the kind of an answer; attributes.cpp has its content.
#include "mad/agent.h"

#include "mad/attributes.h"

#include <fmt/format.h>

#include <bit>

namespace ib::mad {
namespace {

bool is_directed(const Smp& smp) {
  return smp.header.mgmt_class == mgmt_class::kSubnDirected;
}

bool is_smp(const MadHeader& header) {
  return header.mgmt_class == mgmt_class::kSubnLid ||
         header.mgmt_class == mgmt_class::kSubnDirected;
}

// Protection [14.2.4.1]: a port without a key is open; else Set needs the key at any level, Get
// from level 2 on. At level 1 Get works, and hides the key from those who have not sent it.
enum class Access : std::uint8_t { Full, WithoutKey, None };
Access access_of(const PortSettings& port, const Smp& smp) {
  const std::uint64_t key = smp.m_key;
  if (port.m_key == 0 || key == port.m_key) return Access::Full;
  if (smp.header.method != method::kGet) return Access::None;
  if (port.m_key_protect == 0) return Access::Full;
  return port.m_key_protect == 1 ? Access::WithoutKey : Access::None;
}

// A response is the request with other data.
Mad respond(Smp smp, std::uint16_t status, const SmpData& data) {
  smp.header.method = method::kGetResp;
  smp.header.status = static_cast<std::uint16_t>(status | (is_directed(smp) ? kDirectionBit : 0));
  smp.data = data;
  return std::bit_cast<Mad>(smp);
}

Mad respond(const Smp& smp, const Attribute& said, Access access) {
  SmpData data = said.data;
  if (access == Access::WithoutKey && smp.header.attribute == smp_attribute::kPortInfo) {
    std::fill_n(data.begin(), sizeof(PortInfo::m_key), std::uint8_t{0});
  }
  return respond(smp, said.status, data);
}

// Why the agent says nothing; empty: it does.
std::string reason_to_ignore(const Smp& smp) {
  if ((smp.header.method & method::kResponseBit) != 0) {
    return fmt::format("the MAD is a response (method {}), an agent answers requests",
                       smp.header.method);
  }
  // Hop pointer and hop count: 0 of 0, or the end of the hops [IBA1 14.2.2.2].
  const std::uint16_t hops = smp.header.class_specific;
  if (is_directed(smp) && hops != 0 && hops >> 8 != (hops & 0xff) + 1) {
    return "the directed route of the MAD has hops: it is not for this port";
  }
  return {};
}

// The M_Key of a switch is that of its port 0.
PortSettings keeper_of(const AgentView& element, std::uint8_t arrival) {
  const auto port = element.port(element.forwarding() ? 0 : arrival);
  return port ? port->settings : PortSettings{};
}

Handled set(const AgentView& element, std::uint8_t arrival, const Smp& smp, Mad& response) {
  const MadHeader& header = smp.header;
  const std::uint16_t status =
      check_set(element, arrival, header.attribute, header.modifier, smp.data);
  if (status == mad_status::kOk) return {Verdict::Set, {}};
  // Beside the refusal the attribute as it is, if there is one.
  Attribute now = get_attribute(element, arrival, header.attribute, header.modifier);
  now.status = status;
  response = respond(smp, now, Access::Full);
  return {Verdict::Answered, {}};
}

}  // namespace

Mad refuse(const Mad& request, std::uint16_t status) {
  return respond(std::bit_cast<Smp>(request), status, {});
}

Handled answer(const AgentView& element, std::uint8_t arrival, const Mad& request, Mad& response) {
  const auto smp = std::bit_cast<Smp>(request);
  const MadHeader& header = smp.header;
  if (std::string reason = reason_to_ignore(smp); !reason.empty()) {
    return {Verdict::Ignored, std::move(reason)};
  }
  const auto say = [&](const Attribute& said, Access access) {
    response = respond(smp, said, access);
    return Handled{Verdict::Answered, {}};
  };
  if (header.base_version != kBaseVersion || !is_smp(header) ||
      header.class_version != kClassVersion) {
    return say({mad_status::kBadVersion, {}}, Access::Full);
  }
  if (header.method == method::kTrapRepress) return {Verdict::Ignored, "a notice is repressed"};
  const bool is_managers =
      header.attribute == smp_attribute::kSmInfo ||
      (header.method == method::kTrap && header.attribute == smp_attribute::kNotice);
  if (is_managers) return {Verdict::Passed, {}};
  const Access access = access_of(keeper_of(element, arrival), smp);
  if (access == Access::None) {
    return {Verdict::BadKey,
            fmt::format("its M_Key {:#x} is not that of the port", std::uint64_t{smp.m_key})};
  }
  if (header.method == method::kSet) return set(element, arrival, smp, response);
  if (header.method != method::kGet) {
    return say({mad_status::kMethodNotSupported, {}}, Access::Full);
  }
  return say(get_attribute(element, arrival, header.attribute, header.modifier), access);
}

void finish_set(const AgentView& element, std::uint8_t arrival, const Mad& request, Mad& response) {
  const auto smp = std::bit_cast<Smp>(request);
  const Attribute now = get_attribute(element, arrival, smp.header.attribute, smp.header.modifier);
  response = respond(smp, now.status, now.data);
}

}  // namespace ib::mad
