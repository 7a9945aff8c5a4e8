// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "services/rdma_cm/cm_forms.h"

#include <algorithm>

namespace ib::services::rdma_cm {
namespace {

// The place of a GID in the port's table; 0 if it is not there.
std::uint8_t gid_index(const fabric::Port& port, const verbs::Gid& gid) {
  const auto at = std::find_if(port.gids.begin(), port.gids.end(),
                               [&gid](const fabric::GidEntry& one) { return one.gid == gid; });
  return at == port.gids.end() ? 0 : static_cast<std::uint8_t>(at - port.gids.begin());
}

// The place of a P_Key of the same partition; 0 if there is none.
std::uint16_t pkey_index(const fabric::Port& port, std::uint16_t pkey) {
  const auto same = [pkey](std::uint16_t one) { return one == pkey; };
  const auto shared = [pkey](std::uint16_t one) {
    return one != 0 && verbs::share_partition(one, pkey);
  };
  auto at = std::find_if(port.pkeys.begin(), port.pkeys.end(), same);
  if (at == port.pkeys.end()) at = std::find_if(port.pkeys.begin(), port.pkeys.end(), shared);
  return at == port.pkeys.end() ? 0 : static_cast<std::uint16_t>(at - port.pkeys.begin());
}

}  // namespace

cm::Path to_cm(const Path& path) {
  cm::Path out;
  out.sgid = path.sgid;
  out.dgid = path.dgid;
  if (!path.is_ethernet) {
    out.slid = path.slid;
    out.dlid = path.dlid;
  }
  out.pkey = path.pkey;
  out.port = path.port;
  out.flow_label = path.flow_label;
  out.traffic_class = path.traffic_class;
  out.hop_limit = path.hop_limit;
  out.sl = path.sl;
  out.rate = path.rate;
  out.packet_lifetime = path.packet_life_time;
  out.subnet_local = !path.is_ethernet && path.hop_limit <= 1;
  return out;
}

Path from_cm(const cm::Path& path, const fabric::Port& port, verbs::Mtu mtu) {
  Path out;
  out.sgid = path.sgid;
  out.dgid = path.dgid;
  out.is_ethernet = port.is_ethernet();
  if (!out.is_ethernet) {
    out.slid = path.slid;
    out.dlid = path.dlid;
  }
  out.pkey_index = pkey_index(port, path.pkey);
  out.pkey = port.pkeys.empty() ? path.pkey : port.pkeys[out.pkey_index];
  out.port = static_cast<std::uint8_t>(port.number);
  out.sgid_index = gid_index(port, path.sgid);
  out.flow_label = path.flow_label;
  out.traffic_class = path.traffic_class;
  out.hop_limit = path.is_global() ? std::max<std::uint8_t>(path.hop_limit, 2) : 0;
  out.sl = path.sl;
  if (path.rate != 0) out.rate = path.rate;
  out.packet_life_time = path.packet_lifetime;
  out.mtu = mtu;
  return out;
}

Path path_to(const cm::MadAddress& sender, const fabric::Port& port) {
  cm::Path path;
  path.sgid = sender.is_global ? sender.local_gid : port.gid();
  path.dgid = sender.remote_gid;
  path.slid = port.lid;
  path.dlid = sender.remote_lid;
  path.pkey = sender.pkey;
  path.sl = sender.sl;
  path.hop_limit = sender.hop_limit;
  path.traffic_class = sender.traffic_class;
  path.flow_label = sender.flow_label;
  path.subnet_local = !sender.is_global;
  return from_cm(path, port, verbs::Mtu::B4096);
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

Unanswered::Kind kind_of(cm::State state) {
  switch (state) {
    case cm::State::ReqSent:
    case cm::State::ReqSentMraReceived: return Unanswered::Kind::Req;
    case cm::State::RepSent:
    case cm::State::RepSentMraReceived: return Unanswered::Kind::Rep;
    case cm::State::DreqSent: return Unanswered::Kind::Dreq;
    case cm::State::ReqReceived:
    case cm::State::ReqReceivedMraSent:
    case cm::State::RepReceived:
    case cm::State::RepReceivedMraSent:
    case cm::State::Established:
    case cm::State::DreqReceived:
    case cm::State::TimeWait:
    case cm::State::Closed: break;
  }
  return Unanswered::Kind::None;
}

Unanswered unanswered(Unanswered::Kind kind, const cm::Waiting& waiting) {
  return {kind, waiting.times_sent, waiting.retries_left, waiting.was_delayed, Status::Ok};
}

}  // namespace ib::services::rdma_cm
