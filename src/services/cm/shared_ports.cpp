// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "services/cm/shared_ports.h"

#include "base/assert.h"

namespace ib::services {

bool SharedPorts::take(const fabric::Node& node, std::uint64_t service_id) {
  unsigned& listeners = taken_[{&node, service_id}];
  if (listeners == 0 && ports_ != nullptr && !ports_->take(node, service_id)) {
    taken_.erase({&node, service_id});
    return false;
  }
  ++listeners;
  return true;
}

void SharedPorts::give_back(const fabric::Node& node, std::uint64_t service_id) {
  const auto taken = taken_.find({&node, service_id});
  IB_ASSERT(taken != taken_.end());
  if (--taken->second > 0) return;
  taken_.erase(taken);
  if (ports_ != nullptr) ports_->give_back(node, service_id);
}

}  // namespace ib::services
