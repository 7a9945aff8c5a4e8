// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Path: the way from a port to a peer's, as a PathRecord has it [IBA1 15.2.5.16]; and how one leads
// to an address vector.
#pragma once

#include "verbs/types.h"

#include <cstdint>

namespace ib::services::rdma_cm {

struct Path {
  verbs::Gid sgid{};
  verbs::Gid dgid{};
  std::uint16_t slid = 0;
  std::uint16_t dlid = 0;
  std::uint16_t pkey = 0xffff;
  std::uint16_t pkey_index = 0;  // in the table of the own port
  std::uint8_t port = 1;         // the own port
  std::uint8_t sgid_index = 0;
  std::uint8_t sl = 0;
  std::uint8_t rate = 16;             // 100 Gb/s [IBA1 15.2.5.16]
  std::uint8_t packet_life_time = 0;  // 4.096 us * 2^n
  std::uint8_t hop_limit = 0;
  std::uint8_t traffic_class = 0;
  std::uint32_t flow_label = 0;
  verbs::Mtu mtu = verbs::Mtu::B4096;
  bool is_ethernet = false;
};

// Ethernet has no LIDs: the peer is named by its GID.
inline verbs::AddressVector address_vector(const Path& path) {
  verbs::AddressVector av;
  av.dgid = path.dgid;
  av.dlid = path.is_ethernet ? 0 : path.dlid;
  av.sl = path.sl;
  av.port = path.port;
  av.is_global = path.is_ethernet || path.hop_limit > 1 ? 1 : 0;
  if (av.is_global == 0) {
    av.dgid = {};
    return av;
  }
  av.sgid_index = path.sgid_index;
  av.hop_limit = path.hop_limit;
  av.traffic_class = path.traffic_class;
  av.flow_label = path.flow_label;
  return av;
}

// The local ACK timeout of a connection over the path [IBA1 12.7.34]: once there and back, and the
// delay of the peer, each as an exponent.
constexpr std::uint8_t ack_timeout(std::uint8_t packet_life_time, std::uint8_t ack_delay) {
  const int way = packet_life_time + 1;
  const int timeout = way >= ack_delay ? way + (ack_delay >= way - 1 ? 1 : 0)
                                       : ack_delay + (way >= ack_delay - 1 ? 1 : 0);
  return static_cast<std::uint8_t>(timeout < 31 ? timeout : 31);
}

}  // namespace ib::services::rdma_cm
