// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The subnet management agent of a port [IBA1 14.3]: turns an SMP into its answer.
//
// It answers Get of the attributes of a port. Set belongs to a subnet manager and is refused in the
// answer's status. Classes of other agents (performance, ...) get the status "class not supported".
#pragma once

#include "base/result.h"
#include "mad/header.h"
#include "verbs/types.h"

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace ib::mad {

enum class NodeType : std::uint8_t { ChannelAdapter = 1, Switch = 2 };  // [14.2.5.3]

// The element that the port is one of, as answers describe it.
struct NodeFacts {
  std::string_view description;
  NodeType type = NodeType::ChannelAdapter;
  std::uint8_t ports = 1;  // without port 0 of a switch
  std::uint64_t system_image_guid = 0;
  std::uint64_t guid = 0;
  std::uint16_t partition_cap = 1;  // P_Keys of the largest table
  std::uint32_t vendor_id = 0;
  std::uint16_t device_id = 0;
  std::uint32_t revision = 0;
};

// The state of a port, of an HCA or of a switch, that answers are made from.
struct PortFacts {
  std::uint8_t number = 1;
  std::uint64_t guid = 0;  // of a switch: the same for all its ports
  std::uint64_t subnet_prefix = 0;
  std::uint16_t lid = 0;
  std::uint8_t lmc = 0;
  std::uint16_t sm_lid = 0;
  std::uint8_t sm_sl = 0;
  verbs::PortState state = verbs::PortState::Down;
  std::uint8_t physical_state = 0;
  std::uint8_t width = 0;  // as verbs number them
  std::uint8_t speed = 0;
  verbs::Mtu active_mtu = verbs::Mtu::B4096;
  verbs::Mtu max_mtu = verbs::Mtu::B4096;
  std::uint8_t virtual_lanes = 1;
  std::uint8_t subnet_timeout = 0;
  std::uint8_t gids = 0;  // entries of its GID table
  std::uint32_t capability_mask = 0;
  std::span<const std::uint16_t> pkeys;
};

// Returns InvalidParameter and the reason if it is no request to an agent of this port (a response;
// a directed route with hops left) and gets no answer.
Status answer(const NodeFacts& node, const PortFacts& port, const Mad& request, Mad& response,
              std::string& reason);

}  // namespace ib::mad
