// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "services/rdma_cm/addresses/kernel_ports.h"

#include "services/rdma_cm/addresses/places.h"

namespace ib::services::rdma_cm {

// For all addresses of both families.
bool KernelPorts::take(const fabric::Node& node, std::uint64_t service_id) {
  const auto service = service_of(service_id);
  if (!service || service->port == 0) return true;  // no program can have it
  PortOwner owner;
  owner.id = PortOwner::kDriver;
  owner.address.family = Family::Ipv6;
  owner.address.port = service->port;
  return ports_.bind(index_of(fabric_, node), service->space, owner) == Error::None;
}

void KernelPorts::give_back(const fabric::Node& node, std::uint64_t service_id) {
  const auto service = service_of(service_id);
  if (!service) return;
  ports_.release(index_of(fabric_, node), service->space, service->port, PortOwner::kDriver);
}

}  // namespace ib::services::rdma_cm
