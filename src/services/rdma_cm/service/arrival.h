// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A request for a connection that came in: its ends, as this side has them.
#pragma once

#include "fabric/model.h"
#include "services/rdma_cm/addresses/ip_cm.h"
#include "services/rdma_cm/command/endpoint_address.h"
#include "services/rdma_cm/connector/connector.h"

#include <cstdint>

namespace ib::services::rdma_cm {

struct Arrival {
  const fabric::Node* node = nullptr;
  PortSpace space = PortSpace::Tcp;
  EndpointAddress at;  // AF_IB addresses of the port and of the peer's
  EndpointAddress from;
  cm::Peer sender;
  bool is_ip = false;  // it has the header of the IP CM for an address of this node:
  EndpointAddress wanted;
  EndpointAddress peer;

  const EndpointAddress& target() const { return is_ip ? wanted : at; }
  const EndpointAddress& origin() const { return is_ip ? peer : from; }
};
// Without the header of the IP CM, or with one that is not for this node, a request may still be
// for a program that listens with an AF_IB address. Returns false if the service id is not of this
// service, or if its HCA is gone. Sets all but `sender`.
bool read_arrival(const fabric::Fabric& fabric, const fabric::Port& port, std::uint64_t service_id,
                  const Path& path, const Bytes& private_data, Arrival& arrival);

}  // namespace ib::services::rdma_cm
