// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The shape of a fabric on the command line: the numbers of nodes, HCAs and ports.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace ib::softib {

// One program with a queue pair or two fits into it.
inline constexpr std::uint64_t kLeastMemory = std::uint64_t{16} << 20;

struct FabricShape {
  std::vector<std::string> nodes;  // names; empty: not given
  std::optional<std::uint32_t> hcas;
  std::optional<std::uint32_t> ports;
  std::string link_layer;  // "infiniband", "ethernet"; empty: not given
  std::optional<std::uint64_t> max_memory;
  std::string topology;    // preset or absolute path (setup/topology_source.h); empty: none
  std::string management;  // "softib", "direct", "none", "opensm"; empty: not given
  std::string opensm;      // the program, of "opensm"
  std::optional<std::uint32_t> sm_priority;
  std::optional<std::uint32_t> lmc;
  std::string routing;     // of softib's subnet manager; empty: not given
  std::string partitions;  // absolute path of its file; empty: none
  std::string config;      // path of the configuration file; empty: none
  std::string verify;      // "on", "faults"; empty: not given
  std::uint64_t verify_seed = 1;

  // The nodes of a new fabric: node0 if none was given.
  std::vector<std::string> node_names() const;
};

// "4" or "alice,bob". Throws CliError(Usage).
std::vector<std::string> parse_nodes(const std::string& text);

// "512M", "4G", "4GiB" or a number of bytes, in bytes; from kLeastMemory to the address space of
// device memory. Throws CliError(Usage).
std::uint64_t parse_memory_size(const std::string& text);

// Whether a running fabric has nodes of the same names in the same order, without these.
std::string names_digest(const std::vector<std::string>& names);

// The number that a word means if no node has it as its name; nothing: it is no number.
std::optional<std::uint32_t> node_number(const std::string& wanted);
// The node that --node means, by number (from 0) or name; empty means the first.
// Throws CliError(NotFound) that lists the nodes.
std::string find_node(const std::vector<std::string>& nodes, const std::string& wanted,
                      const std::string& fabric);

}  // namespace ib::softib
