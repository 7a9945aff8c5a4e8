// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Each node has the number in a network that its default address has in the block of the fabric;
// `softib run --net` sends the plan to softib-net, whose node process carries it out.
#include "softib/launch/net_plan.h"

#include "fabric/model.h"
#include "linux/net/ip_prefix.h"
#include "setup/address_block.h"
#include "setup/cli_error.h"
#include "setup/node_addresses.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

namespace ib::softib {
namespace {

using os::net::IpPrefix;
using verbs::Gid;

// Every port that a node can come to have.
constexpr std::uint32_t kMostPorts = fabric::kMaxHcasPerNode * fabric::kMaxPortsPerHca;
constexpr std::uint32_t kPrivateNetwork = 10u << 24;
constexpr std::uint32_t kConfiguredIpv4Bits = 24;
constexpr std::uint32_t kIpv6Bits = 64;

bool is_loopback(const Gid& ip) {
  return verbs::is_ipv4(ip) && ip[verbs::kIpv4InGid] == 127;
}

std::uint32_t outside(std::uint32_t loopback) {
  return (loopback & 0xffffff) | kPrivateNetwork;
}

// fd69:62PP:AABB:CCDD::N, with AABB:CCDD the first address of the block.
Gid ipv6_of(std::uint32_t block, std::uint32_t port, std::uint32_t number) {
  const std::uint64_t prefix = 0xfd696200ull << 32 | std::uint64_t{port} << 32 | outside(block);
  return verbs::make_gid(prefix, number);
}

[[noreturn]] void lacks(const char* what) {
  throw CliError(Exit::Daemon, fmt::format("softibd does not say {}: is it of the same version as "
                                           "softib? `softib down` ends it",
                                           what));
}

Gid address_in(const Json& object, const char* key) {
  const auto ip = parse_address(text_of(object, key));
  if (!ip || !verbs::is_ipv4(*ip)) lacks(key);
  return *ip;
}

// Those that a network interface can have.
std::vector<Gid> configured_addresses(const Json& node) {
  std::vector<Gid> result;
  if (text_of(node, "address_source") != "configured") return result;
  for (const Json& one : list_of(node, "addresses")) {
    const auto ip = parse_address(text_of(one, "ip"));
    if (ip && !is_loopback(*ip)) result.push_back(*ip);
  }
  return result;
}

IpPrefix in_usual_network(const Gid& ip) {
  return {ip, verbs::is_ipv4(ip) ? kConfiguredIpv4Bits : kIpv6Bits};
}

class Plan {
 public:
  void add(PlanKind kind, const IpPrefix& prefix, std::uint32_t port) {
    const PlanEntry entry{prefix.ip, static_cast<std::uint8_t>(prefix.bits), kind,
                          static_cast<std::uint16_t>(port)};
    const bool is_there = std::ranges::any_of(entries_, [&](const PlanEntry& one) {
      return one.ip == entry.ip && one.bits == entry.bits && one.kind == kind && one.port == port;
    });
    if (!is_there && entries_.size() < kMostPlanEntries) entries_.push_back(entry);
  }
  // A network that an address has already needs no route.
  void add_route(const IpPrefix& network, std::uint32_t port) {
    const bool is_there = std::ranges::any_of(entries_, [&](const PlanEntry& one) {
      return one.port == port && one.kind == PlanKind::Address &&
             os::net::network_of({one.ip, one.bits}) == network;
    });
    if (!is_there) add(PlanKind::OnLink, network, port);
  }
  std::vector<PlanEntry> take() { return std::move(entries_); }

 private:
  std::vector<PlanEntry> entries_;
};

std::uint32_t bits_of(const fabric::AddressBlock& block) {
  return 32 - static_cast<std::uint32_t>(std::countr_zero(block.stride));
}

void add_default(Plan& plan, const fabric::AddressBlock& block, std::uint32_t number,
                 std::uint32_t port) {
  const std::uint32_t ipv4 = outside(block.first) + port * block.stride + number;
  plan.add(PlanKind::Address, {verbs::ipv4_gid(ipv4), bits_of(block)}, port);
  plan.add(PlanKind::Address, {ipv6_of(block.first, port, number), kIpv6Bits}, port);
}

const Json& find_node_state(const Json& state, const std::string& name) {
  for (const Json& node : list_of(state, "nodes")) {
    if (text_of(node, "name") == name) return node;
  }
  lacks("where the node is");
}

bool has_infiniband_port(const Json& node) {
  for (const Json& hca : list_of(node, "hcas")) {
    for (const Json& port : list_of(hca, "ports")) {
      if (text_of(port, "link_layer") == "infiniband") return true;
    }
  }
  // An HCA may come later.
  return list_of(node, "hcas").empty();
}

}  // namespace

bool needs_all_nodes(const Json& state) {
  return state.contains("config");
}

std::vector<PlanEntry> plan_network(const Json& state, const std::string& name) {
  const Json& node = find_node_state(state, name);
  if (!has_infiniband_port(node)) {
    throw CliError(Exit::NotFound,
                   fmt::format("{} has no InfiniBand port, which IP over InfiniBand needs: its "
                               "ports are Ethernet (--link-layer)",
                               name));
  }
  const std::uint32_t own = verbs::ipv4_of(address_in(node, "default_address"));
  const fabric::AddressBlock block = block_of(own, node_count(state));
  const std::uint32_t number = own - block.first;
  Plan plan;
  // Else a name of a node that has no network would lead to this node itself.
  const std::uint32_t all_bits =
      bits_of(block) - static_cast<std::uint32_t>(std::countr_zero(kMostPorts));
  plan.add(PlanKind::Unreachable, {verbs::ipv4_gid(block.first), all_bits}, 0);
  const std::vector<Gid> configured = configured_addresses(node);
  for (const Gid& ip : configured) plan.add(PlanKind::Address, in_usual_network(ip), 0);
  if (configured.empty()) add_default(plan, block, number, 0);
  for (std::uint32_t port = 1; port < kMostPorts; ++port) add_default(plan, block, number, port);
  for (const Json& other : list_of(state, "nodes")) {
    const std::vector<Gid> theirs = configured_addresses(other);
    for (const Gid& ip : theirs) plan.add_route(network_of(in_usual_network(ip)), 0);
    if (!theirs.empty()) continue;
    plan.add_route({verbs::ipv4_gid(outside(block.first)), bits_of(block)}, 0);
    plan.add_route({ipv6_of(block.first, 0, 0), kIpv6Bits}, 0);
  }
  return plan.take();
}

IpoibMode configured_mode(const Json& state, const std::string& node) {
  const auto mode = ipoib_mode_of(text_of(find_node_state(state, node), "ipoib_mode"));
  if (!mode) lacks("the mode of IP over InfiniBand");
  return *mode;
}

ParsedNetRequest network_request(NetCode code, const Json& state, const std::string& node,
                                 const std::string& socket, std::string_view mode) {
  const auto wanted = ipoib_mode_of(mode);
  return {code,
          node,
          socket,
          plan_network(state, node),
          wanted ? *wanted : configured_mode(state, node),
          wanted.has_value()};
}

}  // namespace ib::softib
