// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "services/rdma_cm/service/arrival.h"

#include "base/big_endian.h"
#include "services/rdma_cm/addresses/interface_places.h"

namespace ib::services::rdma_cm {

bool read_arrival(const fabric::Fabric& fabric, const fabric::Port& port, std::uint64_t service_id,
                  const Path& path, const Bytes& private_data, Arrival& arrival) {
  const auto service = service_of(service_id);
  const auto header = read_ip_header(private_data);
  const fabric::Hca* hca = fabric.hca_of(port);
  if (!service || hca == nullptr) return false;
  arrival.node = &fabric.node_of(*hca);
  arrival.space = service->space;
  arrival.at = ib_address(port.gid(), path.pkey, service_id);
  arrival.at.flow_info = Be32(path.flow_label);
  arrival.from = ib_address(path.dgid, path.pkey, 0);
  arrival.from.flow_info = arrival.at.flow_info;
  if (!header) return true;
  arrival.wanted = any_address(header->family, service->port);
  arrival.wanted.ip = header->destination;
  arrival.peer = any_address(header->family, header->port);
  arrival.peer.ip = header->source;
  arrival.is_ip = arrives_at(fabric, port, path.pkey, *arrival.node, arrival.wanted);
  return true;
}

}  // namespace ib::services::rdma_cm
