// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Addresses of interfaces of IP over InfiniBand (fabric/addressing/ip_interfaces.h): the port and
// partition that one stands for, and the way between two of them.
//
// A destination is looked up among the interfaces of all nodes, as ARP would find it: it has to be
// in the partition of the own interface, at a port that the own one reaches. The own interface is
// that of the source, else the one in whose network the destination is.
#pragma once

#include "services/rdma_cm/addresses/places.h"

namespace ib::services::rdma_cm {

// Returns the interface of the node that has the address, or nullptr. Several may have a link-local
// address; the scope says which.
const fabric::IpInterface* interface_of(const fabric::Fabric& fabric, const fabric::Node& node,
                                        const EndpointAddress& address);

// Returns the first node that has an interface with that address, or nullptr.
const fabric::Node* interface_owner(const fabric::Fabric& fabric, const EndpointAddress& address);

// Some node has an interface with the destination, and this node one with the source, or any if
// that is a wildcard: then find_interface_way() finds the way.
bool is_between_interfaces(const fabric::Fabric& fabric, const fabric::Node& node,
                           const EndpointAddress& source, const EndpointAddress& destination);

// A request came in for the address at that port, in that partition: the interface there has it, or
// no interface of the node has it and it is an address of the node.
bool arrives_at(const fabric::Fabric& fabric, const fabric::Port& port, std::uint16_t pkey,
                const fabric::Node& node, const EndpointAddress& address);

// As find_way(). NetUnreachable: no interface of the node leads there, or none has an address of
// the family; HostUnreachable: none that the destination has is in the partition of the own
// interface and in reach of its port; NoDevice: the own port is down.
ucma::Error find_interface_way(const fabric::Fabric& fabric, const fabric::Node& node,
                               const EndpointAddress& source, const EndpointAddress& destination,
                               Way& way);

}  // namespace ib::services::rdma_cm
