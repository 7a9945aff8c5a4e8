// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// ib_bus: the access layer's filter above every HCA. Gives the HCA its names, reports the children
// of its ports, and keeps requests while the HCA is powered down (docs/design/0004).
//
// Thread rule: the executor's thread; requests are parked and sent down there too.
#pragma once

#include "drivers/soft_hca/core.h"
#include "io/driver_registry.h"
#include "io/object_namespace.h"

#include <cstdint>
#include <string>
#include <vector>

namespace ib::drivers {

// A child that every InfiniBand port gets, as the old stack's StaticChild.
struct PortChild {
  std::string name;  // at most 16 characters, no '-'
  std::string device_id;
  std::vector<std::string> hardware_ids;
  std::vector<std::string> compatible_ids;
  std::string description;
  std::uint16_t pkey = 0xffff;
};
// The one that is there without configuration: IP over InfiniBand.
PortChild default_port_child();
// The child of an extra P_Key; by its name it is for IPoIB ("i...") or EoIB ("e...").
PortChild partition_child(const fabric::Partition& partition);
// Whether a partition or child may be called so; if not, the reason.
bool is_child_name(std::string_view name, std::string& reason);

class IbBus {
 public:
  IbBus(Core& core, io::ObjectNamespace& names, std::vector<PortChild> children)
      : core_(core), names_(names), children_(std::move(children)) {}

  io::DriverRegistry::Entry entry();  // of the driver ib_bus

  Core& core() { return core_; }
  io::ObjectNamespace& names() { return names_; }
  const std::vector<PortChild>& children() const { return children_; }

 private:
  Core& core_;
  io::ObjectNamespace& names_;
  std::vector<PortChild> children_;
};

}  // namespace ib::drivers
