// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// AddressBinder: the own address and port of an id, and listening on them.
#pragma once

#include "services/rdma_cm/addresses/port_table.h"
#include "services/rdma_cm/service/failure_trace.h"
#include "services/rdma_cm/service/ids.h"

#include <cstdint>

namespace ib::services::rdma_cm {

class AddressBinder {
 public:
  static constexpr std::uint32_t kMaxBacklog = 1024;

  AddressBinder(const fabric::Fabric& fabric, PortTable& ports, const FailureTrace& trace)
      : fabric_(fabric), ports_(ports), trace_(trace) {}

  Error bind(Id& id, EndpointAddress address);
  // Binds an idle id to any address. `backlog` 0: the most.
  Error listen(Id& id, std::uint32_t backlog);
  // RDMA_OPTION_ID_REUSEADDR.
  void set_reuse(Id& id, bool reuse);
  // The id ends: its port is free.
  void release(const Id& id);

 private:
  const fabric::Fabric& fabric_;
  PortTable& ports_;
  const FailureTrace& trace_;
};

}  // namespace ib::services::rdma_cm
