// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// SoftibBus: the bus driver at the root of the tree. Reports one raw device per virtual host, and
// on each host its HCAs that are present.
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
  // Borrows the fabric; its HCAs that are present are plugged in.
  explicit SoftibBus(fabric::Fabric& fabric);
  SoftibBus(const SoftibBus&) = delete;
  SoftibBus& operator=(const SoftibBus&) = delete;

  std::shared_ptr<io::DeviceObject> root() const { return root_; }
  const io::DeviceObject& host(const fabric::Node& node) const { return *hosts_.at(&node); }
  // Returns nullptr if the HCA is not plugged in.
  const io::DeviceObject* physical(const fabric::Hca& hca) const;

  // Changes the children that the host's bus reports; the caller has the PnP manager query it
  // again.
  void plug(fabric::Node& node, fabric::Hca& hca);
  void unplug(fabric::Node& node, fabric::Hca& hca);

 private:
  struct HcaDevice final : BusDevice {
    HcaDevice(io::DriverObject& driver, io::DeviceIds device_ids, HcaPlace where)
        : BusDevice(driver, std::move(device_ids)), place(where) {
      set_extension(&place);
    }
    HcaPlace place;
  };

  io::DriverObject driver_{"softib_bus"};  // first: the devices name it
  std::shared_ptr<BusDevice> root_;
  std::map<const fabric::Node*, std::shared_ptr<BusDevice>> hosts_;
  std::map<std::uint32_t, std::shared_ptr<HcaDevice>> hcas_;  // by index
};

}  // namespace ib::drivers
