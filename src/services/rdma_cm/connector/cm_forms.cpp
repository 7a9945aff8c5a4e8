// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "services/rdma_cm/connector/cm_forms.h"

#include "cm/same_fields.h"
#include "services/cm/gsi_forms.h"

namespace ib::services::rdma_cm {

cm::Path to_cm(const Path& path) {
  cm::Path out;
  cm::copy_route(path, out);
  if (!path.is_ethernet) {
    out.slid = path.slid;
    out.dlid = path.dlid;
  }
  out.rate = path.rate;
  out.packet_lifetime = path.packet_life_time;
  out.subnet_local = !path.is_ethernet && path.hop_limit <= 1;
  return out;
}

Path from_cm(const cm::Path& path, const fabric::Port& port, verbs::Mtu mtu) {
  Path out;
  cm::copy_route(path, out);
  out.is_ethernet = port.is_ethernet();
  if (!out.is_ethernet) {
    out.slid = path.slid;
    out.dlid = path.dlid;
  }
  out.pkey_index = pkey_index(port, path.pkey);
  out.pkey = port.pkeys.empty() ? path.pkey : port.pkeys[out.pkey_index];
  out.port = static_cast<std::uint8_t>(port.number);
  out.sgid_index = gid_index(port, path.sgid);
  out.hop_limit = hop_limit_of(path);
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
