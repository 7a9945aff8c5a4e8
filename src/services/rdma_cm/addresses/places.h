// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Where addresses are in a fabric: the port of a node that stands for one of its addresses, and the
// way from one address to another.
//
// On Ethernet an IP address is a GID of a port. On InfiniBand it belongs to the first usable port
// of its node, as if that had the node's IPoIB interface, or to the first that reaches the peer. A
// pair of nodes with both kinds of ports communicates over Ethernet. AF_IB addresses are GIDs of
// InfiniBand ports.
#pragma once

#include "fabric/model.h"
#include "services/rdma_cm/addresses/path.h"
#include "services/rdma_cm/command/endpoint_address.h"

#include <cstdint>
#include <optional>

namespace ib::services::rdma_cm {

// Its HCA is there and awake, and the port is active.
bool is_usable(const fabric::Fabric& fabric, const fabric::Port& port);
std::uint32_t index_of(const fabric::Fabric& fabric, const fabric::Node& node);
// Loopback and wildcard addresses are those of the node itself.
bool has_address(const fabric::Fabric& fabric, const fabric::Node& node,
                 const EndpointAddress& address);

// Returns the port for an address of the node, or nullptr if the node has no usable port for it.
const fabric::Port* port_of(const fabric::Fabric& fabric, const fabric::Node& node,
                            const EndpointAddress& address);

// The address, which was at that port of the node, is at another one now, or nowhere.
bool has_moved(const fabric::Fabric& fabric, const fabric::Node& node,
               const EndpointAddress& address, const fabric::Port& port);

struct Way {
  const fabric::Port* from = nullptr;
  const fabric::Port* to = nullptr;   // nullptr: a multicast group, or a GID that no port has
  EndpointAddress source;             // with the port of the given one
  EndpointAddress destination;        // as given; of the node itself instead of a wildcard
  std::uint16_t pkey = 0;             // that the path shall have; 0: any that the ports share
  std::uint8_t packet_life_time = 0;  // of the fabric's paths
};
// From `node`, whose id is bound to `source` (perhaps a wildcard), to the owner of `destination`.
// Error::NetUnreachable: the node has no address of that family, or nobody has the destination;
// HostUnreachable: its owner has no usable port of the kind; NoDevice: this node has none.
ucma::Error find_way(const fabric::Fabric& fabric, const fabric::Node& node,
                     const EndpointAddress& source, const EndpointAddress& destination, Way& way);

// The path along a way, from what the fabric is. Returns nothing if the ports share no partition.
std::optional<Path> find_path(const Way& way, std::uint8_t traffic_class);
// The place of the address in the GID table of the port; 0 on InfiniBand.
std::uint8_t gid_index_of(const fabric::Port& port, const EndpointAddress& address);

}  // namespace ib::services::rdma_cm
