// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "base/result.h"
#include "drivers/trace/explain.h"
#include "verbs/gid.h"
#include "verbs/ip_trouble.h"

#include <fmt/format.h>

#include <string>

namespace ib::drivers {
namespace {

using verbs::control::IpTrouble;
using verbs::control::TraceErrorIn;

verbs::Gid gid_of(const TraceErrorIn& e) {
  verbs::Gid gid{};
  for (std::size_t i = 0; i < 8; ++i) {
    gid[i] = static_cast<std::uint8_t>(e.address >> (56 - 8 * i));
    gid[8 + i] = static_cast<std::uint8_t>(e.wr_id >> (56 - 8 * i));
  }
  return gid;
}

std::string why_of(IpTrouble trouble, std::uint32_t pkey) {
  switch (trouble) {
    case IpTrouble::PortDown: return "its port is not active: `softib status`, `softib port up`";
    case IpTrouble::PkeyMissing:
      return fmt::format(
          "its port does not have P_Key {:#06x} any more (`softib partition add {:#06x}`)", pkey,
          pkey);
    case IpTrouble::BroadcastGroupMissing:
      return "it cannot join the broadcast group of its partition; is there a subnet manager "
             "(`softib sm status`)?";
    case IpTrouble::BroadcastGroupUnfit:
      return "the broadcast group has a rate or an MTU that the port lacks";
    case IpTrouble::PathRefused: return "the subnet administrator has no path there";
    case IpTrouble::PathTimeout:
      return "the subnet administrator does not answer the query for the path";
    case IpTrouble::GroupRefused: return "the subnet administrator refuses the group";
    case IpTrouble::GroupTimeout: return "the subnet administrator does not answer the join";
    case IpTrouble::ConnectionRefused:
      return "the neighbour refuses the connection; datagrams are used";
    case IpTrouble::ConnectionLost: return "the connection was lost; it is made again";
  }
  return "";
}

}  // namespace

verbs::Gid ip_trouble_gid(const TraceErrorIn& e) {
  const bool is_one = verbs::control::is_ip_trouble(static_cast<std::uint32_t>(e.cause));
  return is_one ? gid_of(e) : verbs::Gid{};
}

std::string explain_ip_trouble(const TraceErrorIn& e, const std::string& port) {
  const auto cause = static_cast<std::uint32_t>(e.cause);
  if (!verbs::control::is_ip_trouble(cause)) return {};
  const verbs::Gid gid = gid_of(e);
  std::string text = "IP over InfiniBand";
  text += verbs::is_zero(gid) ? std::string(" has no carrier")
                              : fmt::format(" cannot reach {}", verbs::address_text(gid));
  if (!port.empty()) text += fmt::format(" ({})", port);
  text += fmt::format(": {}", why_of(static_cast<IpTrouble>(cause), e.key));
  const auto status = static_cast<std::uint32_t>(e.detail);
  if (status != 0) text += fmt::format(" ({})", status_text(static_cast<Status>(status)));
  return text;
}

}  // namespace ib::drivers
