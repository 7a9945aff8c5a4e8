// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// SharedPorts: the ports of programs that listeners of kernel clients have taken. Several listeners
// of a node may have one together.
#pragma once

#include "fabric/model.h"

#include <cstdint>
#include <map>
#include <utility>

namespace ib::services {

// The ports of the programs of a node, which the service IDs of the RDMA IP service [IBA1 annex
// A11] stand for.
class CmPorts {
 public:
  virtual ~CmPorts() = default;
  // Returns false if a program has the port. True also for a service ID that has no port there.
  virtual bool take(const fabric::Node& node, std::uint64_t service_id) = 0;
  virtual void give_back(const fabric::Node& node, std::uint64_t service_id) = 0;
};

class SharedPorts {
 public:
  // May be null: there are no programs.
  void set_ports(CmPorts* ports) { ports_ = ports; }
  // Returns false if a program has it.
  bool take(const fabric::Node& node, std::uint64_t service_id);
  void give_back(const fabric::Node& node, std::uint64_t service_id);

 private:
  CmPorts* ports_ = nullptr;
  std::map<std::pair<const fabric::Node*, std::uint64_t>, unsigned> taken_;  // listeners
};

}  // namespace ib::services
