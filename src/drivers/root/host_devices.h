// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// HostDevices: the virtual hosts in the device tree. A host gets its devices at the start, or when
// somebody wants them (docs/design/0004).
//
// Thread rule: the executor's thread.
#pragma once

#include "drivers/root/softib_bus.h"
#include "io/device_tree.h"
#include "io/object_namespace.h"
#include "io/pnp_manager.h"

#include <cstdint>
#include <functional>
#include <set>

namespace ib::drivers {

// When a host gets its devices.
enum class DeviceMaking : std::uint8_t {
  AtStart,    // all do when the fabric comes up
  WhenWanted  // when the first program attaches there, or a tool wants them
};

class HostDevices {
 public:
  // Borrows all of them.
  HostDevices(fabric::Fabric& fabric, SoftibBus& bus, io::ObjectNamespace& names,
              io::DeviceTree& tree, io::PnpManager& pnp)
      : fabric_(fabric), bus_(bus), names_(names), tree_(tree), pnp_(pnp) {}
  HostDevices(const HostDevices&) = delete;
  HostDevices& operator=(const HostDevices&) = delete;

  // Has the bus report all hosts; before the PnP manager begins.
  void add_all();
  // Makes the devices of a host, or of all, unless they are there. `then` is called when they have
  // started or failed: at once, or after the PnP and power actions that were begun before.
  void make(fabric::Node& node, std::function<void()> then);
  void make_all(std::function<void()> then);

  // Returns nullptr if the devices of the host were not made.
  io::DeviceNode* node_of(const fabric::Node& host) const;

 private:
  void add(fabric::Node& node);

  fabric::Fabric& fabric_;
  SoftibBus& bus_;
  io::ObjectNamespace& names_;
  io::DeviceTree& tree_;
  io::PnpManager& pnp_;
  std::set<const fabric::Node*> in_the_making_;
};

}  // namespace ib::drivers
