// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Where IP addresses are in a fabric: the port of a node that stands for one of its addresses, and
// the way from one address to another.
//
// On Ethernet an address is a GID of a port. On InfiniBand it belongs to the first usable port of
// its node, as if that had the node's IPoIB interface. A pair of nodes with both kinds of ports
// communicates over Ethernet.
#pragma once

#include "fabric/model.h"
#include "services/rdma_cm/endpoint_address.h"
#include "services/rdma_cm/path.h"

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

struct Way {
  const fabric::Port* from = nullptr;
  const fabric::Port* to = nullptr;  // nullptr: the destination is a multicast group
  EndpointAddress source;            // with the port of the given one
  EndpointAddress destination;       // as given; of the node itself instead of a wildcard
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
