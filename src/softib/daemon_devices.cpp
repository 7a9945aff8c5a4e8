// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "softib/daemon_devices.h"

namespace ib::softib {

Result<std::unique_ptr<DaemonDevices>> DaemonDevices::create(platform::Executor& executor,
                                                             fabric::Fabric& fabric,
                                                             platform::DeviceMemoryHost& memory,
                                                             drivers::SoftHcaOptions options,
                                                             std::string& reason) {
  std::unique_ptr<DaemonDevices> self(new DaemonDevices);
  auto hcas = drivers::SoftHca::create(executor, fabric, memory, std::move(options), reason);
  if (!hcas) return hcas.error();
  self->hcas_ = *std::move(hcas);
  self->root_ = std::make_unique<drivers::FabricRoot>(*self->hcas_);
  IB_CHECK(self->build(fabric, reason));
  return self;
}

Status DaemonDevices::build(const fabric::Fabric& fabric, std::string& reason) {
  for (const fabric::Node& node : fabric.nodes()) {
    for (const fabric::Hca& hca : node.hcas) {
      io::DeviceObject* function = hcas_->device(hca.index);
      IB_ASSERT(function != nullptr);  // soft_hca makes one for each HCA of the fabric
      auto bus = std::make_unique<io::DeviceObject>(ib_bus_, node.name + "/" + hca.name,
                                                    io::DeviceKind::Filter);
      if (const Status status = bus->attach(*function); status != Status::Ok) {
        reason = "the device stack of " + bus->name() + " is too deep";
        return status;
      }
      if (const Status status = names_.add_hca(node.name, hca.node_guid, *bus);
          status != Status::Ok) {
        reason = "two HCAs of " + node.name + " have the same GUID";
        return status;
      }
      buses_.push_back(std::move(bus));
    }
  }
  return Status::Ok;
}

}  // namespace ib::softib
