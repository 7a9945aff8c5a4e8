// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Resolver: the way from an id to its destination: addresses, then the route, which the subnet
// administrator answers or the program brings.
#pragma once

#include "services/rdma_cm/addresses/routes.h"
#include "services/rdma_cm/service/address_binder.h"
#include "services/rdma_cm/service/failure_trace.h"
#include "services/rdma_cm/service/id_table.h"

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace ib::services::rdma_cm {

class Resolver {
 public:
  Resolver(const fabric::Fabric& fabric, Routes& routes, const IdTable& ids, AddressBinder& binder,
           const FailureTrace& trace)
      : fabric_(fabric), routes_(routes), ids_(ids), binder_(binder), trace_(trace) {}

  // Binds an idle id first. The result is an event, AddrResolved or AddrError.
  Error resolve_address(Id& id, const std::optional<EndpointAddress>& source,
                        EndpointAddress destination);
  // The result is an event, RouteResolved or RouteError. `timeout_ms` is that of Routes::find_path.
  Error resolve_route(Id& id, std::uint32_t timeout_ms);
  // The program brings the path (RDMA_OPTION_IB_PATH): the first record that leads both ways.
  Error set_path(Id& id, std::span<const std::uint8_t> value);

 private:
  void on_route(std::uint32_t number, Error error, std::string_view reason, const Path& path);

  const fabric::Fabric& fabric_;
  Routes& routes_;
  const IdTable& ids_;
  AddressBinder& binder_;
  const FailureTrace& trace_;
};

}  // namespace ib::services::rdma_cm
