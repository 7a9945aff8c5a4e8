// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// SoftibBus: the bus driver at the root of the tree. Reports a raw device for each virtual host
// that was added, and on each of these its HCAs that are present.
//
// Thread rule: the executor's thread.
#pragma once

#include "drivers/ib_bus/bus_device.h"
#include "drivers/soft_hca/hca_place.h"
#include "fabric/model.h"

#include <cstdint>
#include <map>
#include <memory>

namespace ib::drivers {

class SoftibBus {
 public:
  SoftibBus();
  SoftibBus(const SoftibBus&) = delete;
  SoftibBus& operator=(const SoftibBus&) = delete;

  std::shared_ptr<io::DeviceObject> root() const { return root_; }
  // Reports this host from now on, with its HCAs that are present; the caller has the PnP manager
  // query the root. Once for each host, which is borrowed.
  void add_host(fabric::Node& node);
  // Returns nullptr if the host was not added.
  const io::DeviceObject* host(const fabric::Node& node) const;
  // Returns nullptr if the HCA is not plugged in.
  const io::DeviceObject* physical(const fabric::Hca& hca) const;

  // Changes the children that a host which was added reports; the caller has the PnP manager query
  // it again.
  void plug(fabric::Node& node, fabric::Hca& hca);
  void unplug(fabric::Node& node, fabric::Hca& hca);

 private:
  struct HostDevice final : BusDevice {
    HostDevice(io::DriverObject& driver, io::DeviceIds device_ids, const fabric::Node& of)
        : BusDevice(driver, std::move(device_ids)), node(of) {}
    const fabric::Node& node;
  };
  struct HcaDevice final : BusDevice {
    HcaDevice(io::DriverObject& driver, io::DeviceIds device_ids, HcaPlace where)
        : BusDevice(driver, std::move(device_ids)), place(where) {
      set_extension(&place);
    }
    HcaPlace place;
  };

  io::DriverObject driver_{"softib_bus"};  // first: the devices name it
  std::shared_ptr<BusDevice> root_;
  std::map<const fabric::Node*, std::shared_ptr<HostDevice>> hosts_;
  std::map<std::uint32_t, std::shared_ptr<HcaDevice>> hcas_;  // by index
};

}  // namespace ib::drivers
