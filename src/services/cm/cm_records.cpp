// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "services/cm/cm_records.h"

#include "cm/same_fields.h"
#include "services/cm/gsi_forms.h"

#include <algorithm>

namespace ib::services {
namespace {

namespace mask = verbs::qp_attr;
using verbs::QpState;
using verbs::QpType;

constexpr std::uint8_t kMinRnrTimer = 12;  // 0.64 ms

verbs::AddressVector address_vector(const cm::Path& path, const fabric::Port& port) {
  verbs::AddressVector av;
  av.port = path.port;
  av.dlid = path.has_lids() ? path.dlid : 0;
  av.sl = path.sl;
  if (!path.is_global() && !port.is_ethernet()) return av;
  av.is_global = 1;
  av.dgid = path.dgid;
  av.sgid_index = gid_index(port, path.sgid);
  av.hop_limit = std::max<std::uint8_t>(path.hop_limit, 2);
  av.traffic_class = path.traffic_class;
  av.flow_label = path.flow_label;
  return av;
}

void put_alternate(const cm::ConnectionInfo& info, const fabric::Hca& hca, al::CmQueryOut& out) {
  const fabric::Port& port = hca.ports[info.alternate->port - 1u];
  out.mask |= mask::kAltPath;
  out.attr.alt_av = address_vector(*info.alternate, port);
  out.attr.alt_port = info.alternate->port;
  out.attr.alt_pkey_index = pkey_index(port, info.alternate->pkey);
  out.attr.alt_timeout = info.alternate_ack_timeout;
}

void put_rtr(const cm::ConnectionInfo& info, const fabric::Port& port, al::CmQueryOut& out) {
  out.mask |= mask::kAv | mask::kPathMtu | mask::kDestQpn | mask::kRqPsn;
  out.attr.av = address_vector(info.primary, port);
  out.attr.path_mtu = info.path_mtu;
  out.attr.dest_qpn = info.remote_qpn;
  out.attr.rq_psn = info.receive_psn;
  if (info.transport == cm::Transport::Uc) return;
  out.mask |= mask::kMaxDestRdAtomic | mask::kMinRnrTimer;
  out.attr.max_dest_rd_atomic = info.responder_resources;
  out.attr.min_rnr_timer = kMinRnrTimer;
}

void put_rts(const cm::ConnectionInfo& info, al::CmQueryOut& out) {
  out.mask |= mask::kSqPsn;
  out.attr.sq_psn = info.send_psn;
  if (info.transport == cm::Transport::Uc) return;
  out.mask |= mask::kTimeout | mask::kRetryCnt | mask::kRnrRetry | mask::kMaxQpRdAtomic;
  out.attr.timeout = info.ack_timeout;
  out.attr.retry_cnt = info.retry_count;
  out.attr.rnr_retry = info.rnr_retry_count;
  out.attr.max_rd_atomic = info.initiator_depth;
}

}  // namespace

cm::Path to_cm(const al::CmPath& path) {
  cm::Path out;
  cm::copy_route(path, out);
  if (path.dlid != 0) {
    out.slid = path.slid;
    out.dlid = path.dlid;
  }
  out.rate = path.rate;
  out.packet_lifetime = path.packet_lifetime;
  out.subnet_local = path.dlid != 0 && path.hop_limit <= 1;
  return out;
}

al::CmPath from_cm(const cm::Path& path) {
  al::CmPath out;
  cm::copy_route(path, out);
  if (path.has_lids()) {
    out.slid = path.slid;
    out.dlid = path.dlid;
  }
  out.hop_limit = hop_limit_of(path);
  if (path.rate != 0) out.rate = path.rate;
  out.packet_lifetime = path.packet_lifetime;
  return out;
}

al::CmData data_of(std::span<const std::uint8_t> bytes) {
  al::CmData data;
  data.put(bytes);
  return data;
}

cm::ConnectRequest to_cm(const al::CmConnectIn& in) {
  cm::ConnectRequest out;
  cm::copy_request_terms(in, out);
  out.primary = to_cm(in.path);
  if (in.has_alternate) out.alternate = to_cm(in.alternate);
  out.transport = transport_of(in.type);
  out.qpn = in.qpn;
  out.qkey = in.qkey;
  out.path_mtu = in.path_mtu;
  out.remote_cm_response_timeout = in.remote_response_timeout;
  out.local_cm_response_timeout = in.local_response_timeout;
  out.max_cm_retries = in.max_retries;
  out.peer_to_peer = in.peer_to_peer;
  out.private_data = in.data.view();
  return out;
}

cm::Reply to_cm(const al::CmAcceptIn& in) {
  cm::Reply out;
  cm::copy_terms(in, out);
  out.qpn = in.qpn;
  out.qkey = in.qkey;
  out.failover = static_cast<cm::Failover>(in.failover);
  out.private_data = in.data.view();
  return out;
}

al::CmRequest request_of(const cm::RequestReceived& event) {
  al::CmRequest out;
  cm::copy_request_terms(event, out);
  out.remote_ca_guid = event.remote_ca_guid;
  out.remote_qpn = event.remote_qpn;
  out.remote_qkey = event.remote_qkey;
  out.type = qp_type_of(event.transport);
  out.path_mtu = event.path_mtu;
  out.path = from_cm(event.primary);
  out.has_alternate = event.alternate.has_value();
  if (event.alternate) out.alternate = from_cm(*event.alternate);
  out.data = data_of(event.private_data.view());
  return out;
}

al::CmRequest request_of(const cm::SidrRequested& event, const fabric::Port& port) {
  al::CmRequest out;
  out.is_datagram = true;
  out.service_id = event.service_id;
  out.type = QpType::Ud;
  out.path.sgid = event.source.is_global ? event.source.local_gid : port.gid();
  out.path.dgid = event.source.remote_gid;
  out.path.slid = port.lid;
  out.path.dlid = port.is_ethernet() ? 0 : event.source.remote_lid;
  out.path.pkey = event.pkey;
  out.path.port = event.source.port;
  out.path.sl = event.source.sl;
  out.path.traffic_class = event.source.traffic_class;
  out.path.flow_label = event.source.flow_label;
  out.path.hop_limit =
      event.source.is_global ? std::max<std::uint8_t>(event.source.hop_limit, 2) : std::uint8_t{0};
  out.data = data_of(event.private_data.view());
  return out;
}

al::CmReply reply_of(const cm::ReplyReceived& event) {
  al::CmReply out;
  cm::copy_terms(event, out);
  out.failover = static_cast<std::uint8_t>(event.failover);
  out.remote_qpn = event.remote_qpn;
  out.remote_qkey = event.remote_qkey;
  out.data = data_of(event.private_data.view());
  return out;
}

Status attributes_of(const cm::ConnectionInfo& info, const fabric::Hca& hca, QpState state,
                     bool is_reload, al::CmQueryOut& out) {
  const std::size_t ports = hca.ports.size();
  const auto is_here = [ports](const cm::Path& path) {
    return path.port >= 1 && path.port <= ports;
  };
  if (!is_here(info.primary)) return Status::InvalidState;
  const bool has_alternate = info.alternate && is_here(*info.alternate);
  const fabric::Port& port = hca.ports[info.primary.port - 1u];
  out.attr.state = state;
  out.mask = mask::kState;
  switch (state) {
    case QpState::Init:
      out.mask |= mask::kPort | mask::kPkeyIndex | mask::kAccessFlags;
      out.attr.port = info.primary.port;
      out.attr.pkey_index = pkey_index(port, info.primary.pkey);
      return Status::Ok;
    case QpState::Rtr:
      if (info.remote_qpn == 0) return Status::InvalidState;
      put_rtr(info, port, out);
      if (has_alternate) put_alternate(info, hca, out);
      return Status::Ok;
    case QpState::Rts:
      if (info.remote_qpn == 0) return Status::InvalidState;
      if (is_reload && has_alternate) {
        put_alternate(info, hca, out);
      } else {
        put_rts(info, out);
      }
      if (!has_alternate) return Status::Ok;
      out.mask |= mask::kPathMigState;
      out.attr.mig_state = verbs::MigState::Rearm;
      return Status::Ok;
    case QpState::Reset:
    case QpState::Sqd:
    case QpState::Sqe:
    case QpState::Error: break;
  }
  return Status::InvalidParameter;
}

}  // namespace ib::services
