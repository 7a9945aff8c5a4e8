// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "mad/mgmt_class.h"
#include "services/gsi/messages_internal.h"
#include "verbs/gid.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace ib::services {

std::string text_of(const al::MadAddress& address) {
  const bool by_gid = address.route && address.lid == 0;
  return by_gid ? verbs::address_text(address.route->gid) : fmt::format("LID {}", address.lid);
}

mad::Peer peer_of(std::uint32_t port, const al::MadAddress& remote) {
  return {port, remote.lid, remote.qpn, remote.route ? remote.route->gid : verbs::Gid{}};
}

mad::Mad first_packet(std::span<const std::byte> message) {
  mad::Mad mad{};
  std::copy_n(message.begin(), std::min(message.size(), mad.size()), mad.begin());
  return mad;
}

bool needs_rmpp(std::span<const std::byte> message) {
  if (message.size() > mad::kMadSize) return true;
  return message.size() >= mad::kRmppDataOffset && mad::is_rmpp(message);
}

}  // namespace ib::services
