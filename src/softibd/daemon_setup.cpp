// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "softibd/daemon_setup.h"

#include "drivers/ib_bus/pkey_table.h"
#include "fabric/topology/node_names.h"
#include "services/sa/sa_service.h"
#include "setup/address_block.h"
#include "setup/driver_store.h"
#include "setup/fabric_shape.h"
#include "setup/file_digest.h"
#include "setup/node_addresses.h"
#include "setup/partitions_file.h"
#include "setup/topology_source.h"
#include "verbs/gid.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <random>
#include <utility>
#include <vector>

namespace ib::softib {
namespace {

// Puts the name of the file before a mistake in it.
Status in_config(const DaemonOptions& options, Status status, std::string& reason) {
  if (status != Status::Ok) reason.insert(0, options.config + ":");
  return status;
}

struct FoundPort {
  fabric::Hca* owner = nullptr;
  fabric::Port* port = nullptr;
};

// The last HCA of this name counts. Without a node it is one of the first.
FoundPort find_port(const PartitionConfig& wanted, fabric::Fabric& fabric) {
  FoundPort found;
  for (fabric::Node& node : fabric.nodes()) {
    const bool named =
        wanted.node.empty() ? &node == &fabric.nodes().front() : node.name == wanted.node;
    for (fabric::Hca& hca : node.hcas) {
      if (!named || hca.name != wanted.ca || wanted.port < 1 || wanted.port > hca.ports.size()) {
        continue;
      }
      found = {&hca, &hca.ports[wanted.port - 1]};
    }
  }
  return found;
}

// Gives the nodes a block of addresses that no other fabric of this network namespace has.
Status claim_addresses(const DaemonOptions& options, os::NameClaims& claims, fabric::Shape& shape,
                       std::string& reason) {
  Status failed = Status::AlreadyExists;
  const auto claim = [&](std::uint32_t first, std::uint32_t count) {
    std::vector<std::string> names;
    for (std::uint32_t unit = first; unit < first + count; ++unit) {
      names.push_back("softib/addresses/" +
                      verbs::address_text(verbs::ipv4_gid(unit_address(unit))));
    }
    const Status claimed = claims.claim(names, reason);
    if (claimed != Status::Ok && claimed != Status::AlreadyExists) failed = claimed;
    return claimed == Status::Ok;
  };
  const auto block = choose_block(::geteuid(), options.fabric, shape.nodes.size(), claim);
  if (block) {
    shape.addresses = *block;
    return Status::Ok;
  }
  reason =
      fmt::format("no addresses for {} in 127.0.0.0/8: {}", count_of(shape.nodes.size(), "node"),
                  failed == Status::AlreadyExists ? "other fabrics have them" : reason);
  return failed == Status::AlreadyExists ? Status::InsufficientResources : failed;
}

bool check_topology(const fabric::Shape& shape, std::string& reason) {
  if (shape.nodes.empty()) {
    reason = "a topology without a channel adapter: no program could run there";
    return false;
  }
  for (const fabric::TopologyElement& element : shape.topology.elements) {
    if (element.is_switch() || element.ports <= fabric::kMaxPortsPerHca) continue;
    reason = fmt::format("{} has {} ports; an HCA has at most {} here",
                         fabric::element_text(element), element.ports, fabric::kMaxPortsPerHca);
    return false;
  }
  return true;
}

// The most of all channel adapters, as the topology says.
std::uint8_t most_lmc(const fabric::Fabric& fabric) {
  std::uint8_t most = 0;
  for (std::uint32_t i = 0; i < fabric.device_port_count(); ++i) {
    most = std::max(most, fabric.device_port(i)->lmc);
  }
  return most;
}

}  // namespace

Status make_fabric(const DaemonOptions& options, FabricConfig& config, OwnFabric& fabric,
                   std::string& reason) {
  fabric::Shape shape = options.shape;
  if (!options.topology.empty()) {
    auto topology = read_topology(options.topology, reason);
    if (!topology) return topology.error();
    fabric.topology_digest = topology_digest(options.topology);
    shape.topology = *std::move(topology);
    shape.nodes = fabric::nodes_of(shape.topology);
    if (!check_topology(shape, reason)) return Status::InvalidParameter;
  }
  if (!options.config.empty()) {
    auto read = read_fabric_config(options.config, reason);
    if (!read) return read.error();
    config = *std::move(read);
    fabric.config_digest = file_digest(options.config);
    IB_CHECK(in_config(options, apply_link_layers(config, shape, reason), reason));
    shape.packet_life_time = config.packet_life_time;
  }
  if (shape.nodes.size() <= fabric::kMaxPorts)
    IB_CHECK(claim_addresses(options, fabric.addresses, shape, reason));
  fabric.names_digest = names_digest(shape.nodes);
  auto made = fabric::Fabric::create(shape);
  if (!made) {
    reason = fmt::format(
        "no fabric can have this shape: node names must be different, 1 to 63 letters, digits, "
        "'-', '_' or '.'; at most {} nodes, {} HCAs a node, {} ports an HCA",
        fabric::kMaxNodes, fabric::kMaxHcasPerNode, fabric::kMaxPortsPerHca);
    return made.error();
  }
  fabric.model.emplace(*std::move(made));
  for (const fabric::Node& node : fabric.model->nodes()) {
    fabric.ipoib_modes[node.name] = ipoib_mode_of_node(config, node.name);
  }
  IB_CHECK(in_config(options, apply_addresses(config, *fabric.model, reason), reason));
  return in_config(options, apply_cables(config, *fabric.model, reason), reason);
}

Status make_tree_options(const FabricConfig& config, DaemonLog& log,
                         drivers::FabricTreeOptions& options, std::string& reason) {
  options.children = config.children;
  options.network_namespace = network_namespace();
  options.making =
      config.drivers.empty() ? drivers::DeviceMaking::WhenWanted : drivers::DeviceMaking::AtStart;
  if (config.drivers.empty()) return Status::Ok;
  std::vector<std::string> complaints;
  auto store = read_driver_store(config.drivers, complaints, reason);
  if (!store) return store.error();
  for (const std::string& complaint : complaints) log.warn(complaint);
  options.modules = *std::move(store);
  return Status::Ok;
}

Status make_manager_options(const DaemonOptions& options, const fabric::Fabric& fabric,
                            DaemonLog& log, services::SubnetManagers::Options& managers,
                            std::string& reason) {
  managers.priority = options.managers.priority;
  managers.settings.sm_key = services::SaService::Options{}.server.sm_key;  // OpenSM's
  managers.settings.lmc = options.managers.lmc.value_or(most_lmc(fabric));
  if (const auto routing = sm::routing_of(options.managers.routing)) {
    managers.settings.routing = *routing;
  }
  managers.random = [device = std::make_shared<std::random_device>()] { return (*device)(); };
  managers.on_event = [&log](std::string_view line) { log.info(line); };
  if (options.managers.partitions.empty()) return Status::Ok;
  auto list = read_partitions(options.managers.partitions, reason);
  if (!list) return list.error();
  managers.settings.partitions = *std::move(list);
  return Status::Ok;
}

Status add_partitions(const DaemonOptions& options, const FabricConfig& config,
                      fabric::Fabric& fabric, drivers::Core& core, std::string& reason) {
  for (const PartitionConfig& wanted : config.partitions) {
    const std::string what =
        options.config + ":" + wanted.place + "[[partition]] " + wanted.name + ": ";
    const FoundPort found = find_port(wanted, fabric);
    if (found.port == nullptr) {
      reason = what + "there is no such port";
      return Status::NotFound;
    }
    const Status added =
        drivers::add_partition(core, *found.owner, *found.port, wanted.pkey, wanted.name, reason);
    if (added == Status::Ok) continue;
    reason.insert(0, what);
    return added;
  }
  return Status::Ok;
}

}  // namespace ib::softib
