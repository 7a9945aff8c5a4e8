// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The devices of softibd: the HCAs' driver, the device tree, the device of file 0, and the services
// over them, in the order of their dependencies.
//
// Thread rule: the loop's thread.
#pragma once

#include "al/system.h"
#include "drivers/root/fabric_root.h"
#include "drivers/root/fabric_tree.h"
#include "drivers/soft_hca/soft_hca.h"
#include "io/device.h"
#include "linux/server/module_host.h"
#include "services/cm/cm_device.h"
#include "services/cm/cm_service.h"
#include "services/gsi/element_agents.h"
#include "services/gsi/gsi.h"
#include "services/rdma_cm/addresses/sa_routes.h"
#include "services/rdma_cm/connector/cm_connector.h"
#include "services/rdma_cm/device/rdma_cm_device.h"
#include "services/sa/gsi_sa_client.h"
#include "services/sa/sa_device.h"
#include "services/sa/sa_service.h"
#include "services/sm/subnet_managers.h"
#include "services/smi/smi_service.h"
#include "services/streams/stream_service.h"
#include "services/umad/umad_device.h"
#include "services/umad/umad_service.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>

namespace ib::softib {

// classes: allow(members) the devices of a softibd, one each
class DaemonDevices {
 public:
  // Borrows the first four until destroyed. Nothing is started yet: tree().begin().
  // The tree gets a loader of its own for modules.
  static Result<std::unique_ptr<DaemonDevices>> create(
      platform::Executor& executor, fabric::Fabric& fabric, platform::DeviceMemoryHost& memory,
      platform::StreamHost& stream_host, drivers::SoftHcaOptions hca_options,
      drivers::FabricTreeOptions tree_options, std::string& reason);
  // Subnets with cables get managers of softib's own.
  void add_subnet_managers(services::SubnetManagers::Options options);
  DaemonDevices(const DaemonDevices&) = delete;
  DaemonDevices& operator=(const DaemonDevices&) = delete;
  ~DaemonDevices();

  drivers::FabricRoot& root() { return *root_; }
  drivers::FabricTree& tree() { return *tree_; }
  al::System& access_layer() { return *access_layer_; }
  // Opens nothing until it is told to; closed before tree().shut_down().
  services::Gsi& gsi() { return *gsi_; }
  services::CmService& cm() { return *cm_; }
  services::SaService& sa_service() { return *sa_service_; }
  services::SaClient& sa() { return *sa_; }
  services::SubnetManagers* subnet_managers() { return managers_.get(); }  // null: none
  services::UmadService& umad_service() { return *umad_service_; }
  services::UmadDevice& umad_device() { return *umad_device_; }
  services::rdma_cm::RdmaCmDevice& rdma_cm_device() { return *rdma_cm_device_; }
  services::StreamService& streams() { return *streams_; }
  // The process of a session is over; its queue pairs are gone, or are going.
  void set_on_process_ended(std::function<void(std::uint64_t session)> call) {
    on_process_ended_ = std::move(call);
  }

 private:
  DaemonDevices(platform::Executor& executor, fabric::Fabric& fabric)
      : executor_(executor), fabric_(fabric), modules_(executor) {}
  void follow_changes();
  void make_rdma_cm();
  void make_streams(platform::StreamHost& host);

  platform::Executor& executor_;
  fabric::Fabric& fabric_;
  os::DlopenHost modules_;
  std::unique_ptr<drivers::SoftHca> hcas_;
  std::unique_ptr<drivers::FabricTree> tree_;
  std::unique_ptr<drivers::FabricRoot> root_;
  std::unique_ptr<al::System> access_layer_;
  std::unique_ptr<services::Gsi> gsi_;
  std::unique_ptr<services::ElementAgents> element_agents_;
  std::unique_ptr<services::CmService> cm_;
  std::unique_ptr<services::CmDevice> cm_device_;
  std::unique_ptr<services::SaService> sa_service_;
  std::unique_ptr<services::SaClient> sa_;
  std::unique_ptr<services::SaDevice> sa_device_;
  std::unique_ptr<services::UmadService> umad_service_;
  std::unique_ptr<services::SmiService> smi_;
  std::unique_ptr<services::UmadDevice> umad_device_;
  std::unique_ptr<services::SubnetManagers> managers_;
  std::unique_ptr<services::rdma_cm::CmConnector> connector_;
  std::unique_ptr<services::rdma_cm::SaRoutes> routes_;
  std::unique_ptr<services::rdma_cm::RdmaCmDevice> rdma_cm_device_;
  std::unique_ptr<services::rdma_cm::CmConnector> stream_connector_;
  std::unique_ptr<services::StreamService> streams_;
  std::function<void(std::uint64_t session)> on_process_ended_;
};

// A number that no other softibd has.
std::uint64_t make_seed();

}  // namespace ib::softib
