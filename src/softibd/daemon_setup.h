// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The parts of softibd, as its options and its configuration file describe them. Reasons
// name the file before a mistake in it.
#pragma once

#include "drivers/root/fabric_tree.h"
#include "drivers/soft_hca/soft_hca.h"
#include "fabric/model.h"
#include "linux/server/name_claims.h"
#include "services/sm/subnet_managers.h"
#include "setup/fabric_config.h"
#include "softibd/daemon_log.h"
#include "softibd/daemon_options.h"

#include <map>
#include <optional>
#include <string>

namespace ib::softib {

// A fabric, and what it has claimed among all fabrics of the machine.
struct OwnFabric {
  os::NameClaims addresses;
  std::optional<fabric::Fabric> model;
  std::string names_digest;  // of the nodes (setup/fabric_shape.h)
  std::string topology_digest;
  std::string config_digest;                     // of the configuration file (setup/file_digest.h)
  std::map<std::string, IpoibMode> ipoib_modes;  // by node
};

// Reads the configuration file, if there is one, and makes the fabric of it. Passive level.
Status make_fabric(const DaemonOptions& options, FabricConfig& config, OwnFabric& fabric,
                   std::string& reason);
// The device tree: its drivers, as the driver store has them.
Status make_tree_options(const FabricConfig& config, DaemonLog& log,
                         drivers::FabricTreeOptions& options, std::string& reason);
// softib's subnet managers. Errors: the file of partitions cannot be read, or is wrong.
Status make_manager_options(const DaemonOptions& options, const fabric::Fabric& fabric,
                            DaemonLog& log, services::SubnetManagers::Options& managers,
                            std::string& reason);
// The partitions that ports belong to from the start.
Status add_partitions(const DaemonOptions& options, const FabricConfig& config,
                      fabric::Fabric& fabric, drivers::Core& core, std::string& reason);

}  // namespace ib::softib
