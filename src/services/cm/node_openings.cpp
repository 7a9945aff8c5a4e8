// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "services/cm/node_openings.h"

#include <utility>

namespace ib::services {

void NodeOpenings::open(const fabric::Node& node, OnOpen then) {
  Opening& opening = openings_[&node];
  if (opening.is_open) return then(Status::Ok, {});
  opening.waiting.push_back(std::move(then));
  if (std::exchange(opening.is_under_way, true)) return;
  gsi_.ensure(node.name, opening.irp.start(&NodeOpenings::opened, &opening));
}

void NodeOpenings::opened(io::Irp& irp, void* context) {
  auto& opening = *static_cast<Opening*>(context);
  opening.is_under_way = false;
  opening.is_open = irp.status == Status::Ok;
  const Status status = irp.status;
  const std::string reason = irp.reason;
  for (const OnOpen& then : std::exchange(opening.waiting, {})) then(status, reason);
}

}  // namespace ib::services
