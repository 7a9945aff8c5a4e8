// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The configuration file of a fabric (`--config FILE`, TOML; docs/cli.md has an example): where the
// driver store is, which children ports have, and extra partitions.
#pragma once

#include "base/result.h"
#include "drivers/ib_bus/ib_bus.h"

#include <cstdint>
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

struct FabricConfig {
  std::string drivers;  // folder of the driver store; empty: none
  std::vector<drivers::PortChild> children{drivers::default_port_child()};
  std::vector<PartitionConfig> partitions;
};

// Paths in it are relative to `folder`. Malformed: see `reason`, which has the place.
Result<FabricConfig> parse_fabric_config(std::string_view text, const std::string& folder,
                                         std::string& reason);
// Passive level. NotFound: no such file.
Result<FabricConfig> read_fabric_config(const std::string& path, std::string& reason);

}  // namespace ib::softib
