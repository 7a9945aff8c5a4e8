// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "services/streams/stream_names.h"

#include "verbs/gid.h"

namespace ib::services {

using platform::TcpName;
using verbs::control::StreamAddress;

namespace {

// All of 127.0.0.0/8, of which nodes have addresses, too.
bool is_loopback_network(const TcpName& name) {
  constexpr std::size_t kFirst = 12;  // byte of an IPv4 address
  return verbs::is_ipv4(name.address) && name.address[kFirst] == 127;
}

}  // namespace

TcpName name_of(const StreamAddress& address) {
  return {address.address, address.port, address.scope};
}

StreamAddress address_of(const TcpName& name) {
  StreamAddress address;
  address.address = name.address;
  address.port = name.port;
  address.scope = name.scope;
  return address;
}

rdma_cm::EndpointAddress endpoint_of(const TcpName& name) {
  rdma_cm::EndpointAddress address;
  address.family = verbs::is_ipv4(name.address) ? rdma_cm::Family::Ipv4 : rdma_cm::Family::Ipv6;
  address.ip = name.address;
  address.port = name.port;
  address.scope = name.scope;
  return address;
}

std::string text_of(const TcpName& name) {
  return rdma_cm::text_of(endpoint_of(name));
}

const fabric::Node* node_of(const fabric::Fabric& fabric, const fabric::Node& node,
                            const TcpName& name) {
  const rdma_cm::EndpointAddress address = endpoint_of(name);
  if (rdma_cm::is_any(address) || rdma_cm::is_loopback(address)) return &node;
  if (const fabric::Node* found = fabric.find_node_by_address(name.address)) return found;
  if (is_loopback_network(name)) return &node;
  const fabric::Port* port = fabric.graph().find_port(name.address);  // a link-local GID
  if (port == nullptr || !port->is_ethernet()) return nullptr;
  return &fabric.node_of(*fabric.hca_of(*port));
}

rdma_cm::EndpointAddress destination_of(const fabric::Node& node, const fabric::Node& peer,
                                        const TcpName& name) {
  const rdma_cm::EndpointAddress address = endpoint_of(name);
  const bool is_own = &node == &peer && is_loopback_network(name);
  return is_own ? rdma_cm::any_address(address.family, name.port) : address;
}

}  // namespace ib::services
