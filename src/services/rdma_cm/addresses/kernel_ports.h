// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// KernelPorts: ports of the rdma_cm service that kernel clients listen on, in the table in which
// the programs of the node have theirs: each port belongs to one or the other.
#pragma once

#include "services/cm/cm_service.h"
#include "services/rdma_cm/addresses/port_table.h"

#include <cstdint>

namespace ib::services::rdma_cm {

class KernelPorts final : public CmPorts {
 public:
  KernelPorts(const fabric::Fabric& fabric, PortTable& ports) : fabric_(fabric), ports_(ports) {}

  bool take(const fabric::Node& node, std::uint64_t service_id) override;
  void give_back(const fabric::Node& node, std::uint64_t service_id) override;

 private:
  const fabric::Fabric& fabric_;
  PortTable& ports_;
};

}  // namespace ib::services::rdma_cm
