// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The configuration file of a fabric (`--config FILE`, TOML; docs/cli.md has an example): where the
// driver store is, which children ports have, extra partitions, link layers, addresses, modes of IP
// over InfiniBand, and cables.
#pragma once

#include "base/result.h"
#include "drivers/ib_bus/ib_bus.h"
#include "fabric/model.h"
#include "setup/ipoib_mode.h"

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ib::softib {

struct PartitionConfig {
  std::string node;
  std::string ca = "softib0";
  std::uint32_t port = 1;
  std::uint16_t pkey = 0;
  std::string name;
  std::string place;  // "7:1: " of the file
};

// The link layer of an HCA.
struct HcaConfig {
  std::string node;  // empty: of each node
  std::string name = "softib0";
  verbs::LinkLayer link_layer = verbs::LinkLayer::InfiniBand;
  std::string place;
};

// The addresses of a node, which its first Ethernet port has as GIDs, and the mode of its
// interfaces; each as far as the file has it.
struct NodeConfig {
  std::string name;
  std::optional<std::vector<verbs::Gid>> addresses;
  std::optional<IpoibMode> ipoib_mode;
  std::string place;
};

// A cable between two ports.
struct LinkConfig {
  struct End {
    std::string text;  // "node0/softib0/1": the three below
    std::string node;
    std::string hca;
    std::uint32_t port = 0;
  };
  std::array<End, 2> ends;
  std::string place;
};

struct FabricConfig {
  std::string drivers;  // folder of the driver store; empty: none
  std::uint8_t packet_life_time = fabric::kDefaultPacketLifeTime;
  IpoibMode ipoib_mode = IpoibMode::Datagram;  // of nodes that have none of their own
  std::vector<drivers::PortChild> children{drivers::default_port_child()};
  std::vector<PartitionConfig> partitions;
  std::vector<HcaConfig> hcas;
  std::vector<NodeConfig> nodes;
  std::vector<LinkConfig> links;
};

// Paths in it are relative to `folder`. Malformed: see `reason`, which has the place.
Result<FabricConfig> parse_fabric_config(std::string_view text, const std::string& folder,
                                         std::string& reason);
// Passive level. NotFound: no such file.
Result<FabricConfig> read_fabric_config(const std::string& path, std::string& reason);

// The last [[node]] of that name wins.
IpoibMode ipoib_mode_of_node(const FabricConfig& config, std::string_view node);

// Gives the HCAs of `shape` the link layers of the file. NotFound: it names a node or an HCA that
// the shape has not; `reason` has the place in the file.
Status apply_link_layers(const FabricConfig& config, fabric::Shape& shape, std::string& reason);
// Gives the nodes the addresses of the file, each with the interface that has it now. NotFound,
// AlreadyExists, LimitExceeded: as above. Passive level.
Status apply_addresses(const FabricConfig& config, fabric::Fabric& fabric, std::string& reason);
// Joins the ports of the file by cables. NotFound, as above; AlreadyExists, InvalidParameter: as
// fabric::Graph::connect().
Status apply_cables(const FabricConfig& config, fabric::Fabric& fabric, std::string& reason);

}  // namespace ib::softib
