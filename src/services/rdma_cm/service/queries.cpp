// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "services/rdma_cm/service/queries.h"

#include "base/big_endian.h"
#include "services/rdma_cm/addresses/places.h"
#include "verbs/limits.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace ib::services::rdma_cm {
namespace {

using ucma::Error;
using Stage = Connection::Stage;
namespace mask = verbs::qp_attr;

// librdmacm finds the HCA by its GUID then.
constexpr std::uint32_t kNoIndex = 0xffffffff;

std::array<std::uint8_t, 8> guid_of(const fabric::Fabric& fabric, const fabric::Port& port) {
  return std::bit_cast<std::array<std::uint8_t, 8>>(Be64(fabric.hca_of(port)->node_guid));
}

std::array<std::uint8_t, 2> be16(std::uint16_t value) {
  return std::bit_cast<std::array<std::uint8_t, 2>>(Be16(value));
}

ucma::PathRec record_of(const Path& path) {
  constexpr std::uint8_t kExactly = 2;
  ucma::PathRec record;
  record.dgid = path.dgid;
  record.sgid = path.sgid;
  record.dlid = be16(path.dlid);
  record.slid = be16(path.slid);
  record.flow_label = std::bit_cast<std::array<std::uint8_t, 4>>(Be32(path.flow_label));
  record.reversible = 1;
  record.mtu = static_cast<std::uint32_t>(path.mtu);
  record.pkey = be16(path.pkey);
  record.hop_limit = path.hop_limit;
  record.traffic_class = path.traffic_class;
  record.sl = path.sl;
  record.mtu_selector = record.rate_selector = record.packet_life_time_selector = kExactly;
  record.rate = path.rate;
  record.packet_life_time = path.packet_life_time;
  return record;
}

// The partition of an id with an AF_IB address is part of it, and that of an address of an
// interface the interface's; else it is the port's first.
std::uint16_t pkey_of(const Id& id) {
  if (id.source.family == Family::Ib && id.source.pkey != 0) return id.source.pkey;
  if (id.pkey != 0) return id.pkey;
  return id.port->pkeys.empty() ? 0 : id.port->pkeys.front();
}

// Before the route is resolved: the ends, as far as they are known.
ucma::PathRec ends_of(const Id& id) {
  ucma::PathRec record;
  record.sgid = id.port->gids[gid_index_of(*id.port, id.source)].gid;
  if (id.peer_port != nullptr) {
    record.dgid = id.peer_port->gids[gid_index_of(*id.peer_port, id.destination)].gid;
  }
  record.pkey = be16(pkey_of(id));
  return record;
}

// As the SA sends a PathRecord [IBA1 15.2.5.16].
std::array<std::uint8_t, 64> wire_record(const Path& path) {
  constexpr std::uint8_t kExactly = 2 << 6;
  std::array<std::uint8_t, 64> wire{};
  const auto put = [&wire](std::size_t at, std::span<const std::uint8_t> bytes) {
    std::copy(bytes.begin(), bytes.end(), wire.begin() + static_cast<std::ptrdiff_t>(at));
  };
  put(8, path.dgid);
  put(24, path.sgid);
  put(40, be16(path.dlid));
  put(42, be16(path.slid));
  put(44, std::bit_cast<std::array<std::uint8_t, 4>>(
              Be32((path.flow_label & 0xfffff) << 8 | path.hop_limit)));
  wire[48] = path.traffic_class;
  wire[49] = 0x81;  // reversible, one path
  put(50, be16(path.pkey));
  put(52, be16(path.sl & 0xf));
  wire[54] = static_cast<std::uint8_t>(kExactly | static_cast<std::uint8_t>(path.mtu));
  wire[55] = kExactly | path.rate;
  wire[56] = kExactly | path.packet_life_time;
  return wire;
}

bool has_request(Stage stage) {
  return stage != Stage::None && stage != Stage::Over;
}
bool has_peer(Stage stage) {
  return has_request(stage) && stage != Stage::ReqSent;
}

// Before there is a connection, and of datagrams.
Error first_attributes(const Id& id, ucma::QpAttrOut& out) {
  const auto& pkeys = id.port->pkeys;
  const std::uint16_t pkey = id.path ? id.path->pkey : pkey_of(id);
  const auto at = std::find_if(pkeys.begin(), pkeys.end(), [pkey](std::uint16_t one) {
    return (one & 0x7fff) == (pkey & 0x7fff);
  });
  if (at == pkeys.end() || pkey == 0) return Error::Invalid;
  out.pkey_index = static_cast<std::uint16_t>(at - pkeys.begin());
  out.port_num = static_cast<std::uint8_t>(id.port->number);
  out.qp_attr_mask = mask::kState | mask::kPkeyIndex | mask::kPort;
  if (id.qp_type == verbs::QpType::Ud) {
    out.qkey = id.qkey != 0 ? id.qkey : kUdpQkey;
    out.qp_attr_mask |= mask::kQkey;
  } else {
    out.qp_attr_mask |= mask::kAccessFlags;
  }
  return Error::None;
}

Error to_init(const Id& id, ucma::QpAttrOut& out) {
  if (!has_request(id.connection.stage)) return Error::Invalid;
  out.qp_attr_mask = mask::kState | mask::kAccessFlags | mask::kPkeyIndex | mask::kPort;
  out.qp_access_flags = verbs::access::kRemoteWrite;
  if (id.connection.responder_resources != 0) {
    out.qp_access_flags |= verbs::access::kRemoteRead | verbs::access::kRemoteAtomic;
  }
  out.pkey_index = id.path->pkey_index;
  out.port_num = id.path->port;
  return Error::None;
}

Error to_rtr(const Id& id, ucma::QpAttrOut& out) {
  if (!has_peer(id.connection.stage)) return Error::Invalid;
  out.qp_attr_mask = mask::kState | mask::kAv | mask::kPathMtu | mask::kDestQpn | mask::kRqPsn;
  out.ah_attr = ah_attr_of(address_vector(*id.path));
  out.path_mtu = static_cast<std::uint32_t>(id.path->mtu);
  out.dest_qp_num = id.connection.remote_qpn;
  out.rq_psn = id.psn;
  if (id.qp_type == verbs::QpType::Rc || id.qp_type == verbs::QpType::XrcRecv) {
    out.qp_attr_mask |= mask::kMaxDestRdAtomic | mask::kMinRnrTimer;
    out.max_dest_rd_atomic = id.connection.responder_resources;
  }
  return Error::None;
}

Error to_rts(const Id& id, ucma::QpAttrOut& out) {
  if (!has_peer(id.connection.stage)) return Error::Invalid;
  out.qp_attr_mask = mask::kState | mask::kSqPsn;
  out.sq_psn = id.connection.send_psn;
  const bool requests = id.qp_type == verbs::QpType::Rc || id.qp_type == verbs::QpType::XrcSend;
  if (requests) {
    out.qp_attr_mask |= mask::kRetryCnt | mask::kRnrRetry | mask::kMaxQpRdAtomic;
    out.retry_cnt = id.connection.retry_count;
    out.rnr_retry = id.connection.rnr_retry_count;
    out.max_rd_atomic = id.connection.initiator_depth;
  }
  if (requests || id.qp_type == verbs::QpType::XrcRecv) {
    out.qp_attr_mask |= mask::kTimeout;
    out.timeout = id.ack_timeout.value_or(
        ack_timeout(id.path->packet_life_time, verbs::limits::kLocalAckDelay));
  }
  return Error::None;
}

void put_addresses(const Id& id, std::span<std::uint8_t> source,
                   std::span<std::uint8_t> destination) {
  write_address(id.source, source);
  write_address(id.destination, destination);
}

// QueryOption::Gid has these instead of IP addresses. An AF_IB address is what the program gave.
EndpointAddress gid_address(const EndpointAddress& address, const verbs::Gid& gid,
                            std::uint16_t pkey, PortSpace space) {
  if (address.family == Family::Ib) return address;
  return ib_address(gid, pkey, service_id(space, address.port));
}

}  // namespace

ucma::AhAttr ah_attr_of(const verbs::AddressVector& av) {
  ucma::AhAttr ah;
  ah.dgid = av.dgid;
  ah.flow_label = av.flow_label;
  ah.sgid_index = av.sgid_index;
  ah.hop_limit = av.hop_limit;
  ah.traffic_class = av.traffic_class;
  ah.dlid = av.dlid;
  ah.sl = av.sl;
  ah.src_path_bits = av.src_path_bits;
  ah.static_rate = av.static_rate;
  ah.is_global = av.is_global;
  ah.port_num = av.port;
  return ah;
}

ucma::QueryRouteOut query_route(const fabric::Fabric& fabric, const Id& id) {
  ucma::QueryRouteOut out;
  put_addresses(id, out.src_addr, out.dst_addr);
  if (id.port == nullptr) return out;
  out.node_guid = guid_of(fabric, *id.port);
  out.ibdev_index = kNoIndex;
  out.port_num = static_cast<std::uint8_t>(id.port->number);
  out.num_paths = id.path ? 1 : 0;
  out.ib_route[0] = id.path ? record_of(*id.path) : ends_of(id);
  return out;
}

ucma::QueryAddrOut query_address(const fabric::Fabric& fabric, const Id& id,
                                 ucma::QueryOption option) {
  ucma::QueryAddrOut out;
  if (id.port != nullptr) {
    out.node_guid = guid_of(fabric, *id.port);
    out.ibdev_index = kNoIndex;
    out.port_num = static_cast<std::uint8_t>(id.port->number);
    out.pkey = std::bit_cast<std::uint16_t>(be16(pkey_of(id)));
  }
  if (option == ucma::QueryOption::Addr) {
    put_addresses(id, out.src_addr, out.dst_addr);
    out.src_size = static_cast<std::uint16_t>(size_of(id.source.family));
    out.dst_size = static_cast<std::uint16_t>(size_of(id.destination.family));
    return out;
  }
  out.src_size = out.dst_size = static_cast<std::uint16_t>(size_of(Family::Ib));
  const ucma::PathRec ends = id.path              ? record_of(*id.path)
                             : id.port != nullptr ? ends_of(id)
                                                  : ucma::PathRec{};
  const std::uint16_t pkey = id.port != nullptr ? pkey_of(id) : 0;
  write_address(gid_address(id.source, ends.sgid, pkey, id.space), out.src_addr);
  write_address(gid_address(id.destination, ends.dgid, pkey, id.space), out.dst_addr);
  return out;
}

ucma::QueryPathOut query_path(const Id& id) {
  constexpr std::uint32_t kBothWays = 1u << 3 | 1u << 5;  // IB_PATH_BIDIRECTIONAL
  ucma::QueryPathOut out;
  if (!id.path) return out;
  out.num_paths = 1;
  out.path_data[0].flags = 1u | 1u << 1 | kBothWays;  // IB_PATH_GMP, IB_PATH_PRIMARY
  out.path_data[0].path_rec = wire_record(*id.path);
  return out;
}

Error init_qp_attributes(const fabric::Fabric&, const Id& id, std::uint32_t state,
                         ucma::QpAttrOut& out) {
  if (id.port == nullptr) return Error::Invalid;
  out.qp_state = state;
  const bool is_first = id.endpoint == 0 || id.qp_type == verbs::QpType::Ud;
  if (is_first) return first_attributes(id, out);
  switch (static_cast<verbs::QpState>(state)) {
    case verbs::QpState::Init: return to_init(id, out);
    case verbs::QpState::Rtr: return to_rtr(id, out);
    case verbs::QpState::Rts: return to_rts(id, out);
    case verbs::QpState::Reset:
    case verbs::QpState::Sqd:
    case verbs::QpState::Sqe:
    case verbs::QpState::Error: break;
  }
  return Error::Invalid;
}

}  // namespace ib::services::rdma_cm
