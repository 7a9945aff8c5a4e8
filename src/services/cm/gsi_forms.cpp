// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "services/cm/gsi_forms.h"

#include <algorithm>

namespace ib::services {

std::uint8_t gid_index(const fabric::Port& port, const verbs::Gid& gid) {
  const auto at = std::find_if(port.gids.begin(), port.gids.end(),
                               [&gid](const fabric::GidEntry& one) { return one.gid == gid; });
  return at == port.gids.end() ? 0 : static_cast<std::uint8_t>(at - port.gids.begin());
}

std::uint16_t pkey_index(const fabric::Port& port, std::uint16_t pkey) {
  const auto same = [pkey](std::uint16_t one) { return one == pkey; };
  const auto shared = [pkey](std::uint16_t one) {
    return one != 0 && verbs::share_partition(one, pkey);
  };
  auto at = std::find_if(port.pkeys.begin(), port.pkeys.end(), same);
  if (at == port.pkeys.end()) at = std::find_if(port.pkeys.begin(), port.pkeys.end(), shared);
  return at == port.pkeys.end() ? 0 : static_cast<std::uint16_t>(at - port.pkeys.begin());
}

GsiAddress to_gsi(const cm::MadAddress& address, const fabric::Port& port, std::uint32_t index) {
  GsiAddress out;
  out.port = index;
  out.remote.lid = port.is_ethernet() ? 0 : address.remote_lid;
  out.remote.sl = address.sl;
  out.remote.qpn = address.remote_qpn;
  out.remote.pkey_index = pkey_index(port, address.pkey);
  if (address.is_global || port.is_ethernet()) {
    al::MadRoute route;
    route.gid = address.remote_gid;
    route.sgid_index = gid_index(port, address.local_gid);
    if (address.hop_limit > 1) route.hop_limit = address.hop_limit;
    route.traffic_class = address.traffic_class;
    route.flow_label = address.flow_label;
    out.remote.route = route;
  }
  return out;
}

cm::MadAddress from_gsi(const GsiAddress& address, const fabric::Port& port) {
  cm::MadAddress out;
  const al::MadAddress& remote = address.remote;
  out.local_lid = port.lid;
  out.remote_lid = remote.lid;
  out.port = static_cast<std::uint8_t>(port.number);
  out.sl = remote.sl;
  out.remote_qpn = remote.qpn;
  if (remote.pkey_index < port.pkeys.size()) out.pkey = port.pkeys[remote.pkey_index];
  if (remote.route) {
    out.is_global = true;
    out.remote_gid = remote.route->gid;
    if (remote.route->sgid_index < port.gids.size()) {
      out.local_gid = port.gids[remote.route->sgid_index].gid;
    }
    out.hop_limit = remote.route->hop_limit;
    out.traffic_class = remote.route->traffic_class;
    out.flow_label = remote.route->flow_label;
  }
  return out;
}

cm::Transport transport_of(verbs::QpType type) {
  if (type == verbs::QpType::Uc) return cm::Transport::Uc;
  const bool xrc = type == verbs::QpType::XrcSend || type == verbs::QpType::XrcRecv;
  return xrc ? cm::Transport::Xrc : cm::Transport::Rc;
}

verbs::QpType qp_type_of(cm::Transport transport) {
  switch (transport) {
    case cm::Transport::Rc: break;
    case cm::Transport::Uc: return verbs::QpType::Uc;
    case cm::Transport::Xrc: return verbs::QpType::XrcRecv;
  }
  return verbs::QpType::Rc;
}

std::uint8_t hop_limit_of(const cm::Path& path) {
  return path.is_global() ? std::max<std::uint8_t>(path.hop_limit, 2) : std::uint8_t{0};
}

}  // namespace ib::services
