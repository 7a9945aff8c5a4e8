// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "drivers/root/address_requests.h"

#include "drivers/root/tree_requests.h"
#include "drivers/soft_hca/events.h"
#include "drivers/soft_hca/handlers.h"
#include "drivers/soft_hca/hca_device.h"
#include "drivers/soft_hca/objects/connection_paths.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <vector>

namespace ib::drivers {
namespace {

using fabric::Address;

// Of the request, whose buffer may hold anything. Interfaces belong to the Ethernet ports of the
// node in their order; the last port has those that are left.
Result<std::vector<Address>> read_addresses(const control::SetAddressesIn& in, std::size_t ports,
                                            std::string& reason) {
  if (in.count > in.addresses.size()) {
    reason = fmt::format("{} addresses; one request has at most {}", in.count, in.addresses.size());
    return Status::InvalidParameter;
  }
  std::vector<Address> addresses;
  std::vector<std::string> interfaces;
  for (std::size_t i = 0; i < in.count; ++i) {
    const control::InterfaceAddress& given = in.addresses[i];
    const std::string_view name = text_in(given.interface);
    if (!verbs::is_host_address(given.ip) || !is_interface_name(name)) {
      reason = fmt::format("address {}, {}, is no unicast address of a network interface", i,
                           verbs::address_text(given.ip));
      return Status::InvalidParameter;
    }
    auto known = std::find(interfaces.begin(), interfaces.end(), name);
    if (known == interfaces.end()) known = interfaces.emplace(known, name);
    const auto place = static_cast<std::size_t>(known - interfaces.begin());
    const std::size_t port = std::min(place, std::max<std::size_t>(ports, 1) - 1);
    addresses.push_back({given.ip, std::string(name), static_cast<std::uint32_t>(port)});
  }
  return addresses;
}

// Those that follow the HCAs of the node as they come and go, its drivers and that of its network,
// have no address of it.
std::string users_of(const Core& core, const fabric::Node& node) {
  std::string users;
  for (const Session* session : core.by_slot) {
    if (session == nullptr || session->ending || session->node != &node) continue;
    if (session->wants_ca_events) continue;
    users = list(users, describe(*session));
  }
  return users;
}

std::string text_of(const std::vector<Address>& addresses) {
  std::string text;
  for (const Address& address : addresses) text = list(text, verbs::address_text(address.ip));
  return text;
}

// The Ethernet ports whose GIDs have changed raise events; connections find their peers again.
void publish_addresses(Core& core, fabric::Node& node,
                       const std::vector<std::vector<fabric::GidEntry>>& before) {
  resolve_flows(core, Resolve::All);
  for (const fabric::Hca& hca : node.hcas) publish_ports(core, hca);
  const std::vector<fabric::Port*> ports = fabric::ethernet_ports(node);
  for (std::size_t i = 0; i < ports.size(); ++i) {
    if (ports[i]->gids == before[i]) continue;
    raise_port(core, *core.fabric.hca_of(*ports[i]), ports[i]->number, verbs::EventType::GidChange);
  }
}

}  // namespace

bool is_interface_name(std::string_view name) {
  return !name.empty() && name != "." && name != ".." &&
         std::all_of(name.begin(), name.end(),
                     [](char c) { return c > ' ' && c <= '~' && c != '/' && c != ':'; });
}

void set_addresses(FabricTree& tree, const control::SetAddressesIn& in, io::IrpRef irp) {
  Core& core = tree.core();
  fabric::Node* node = core.fabric.find_node(text_in(in.node));
  if (node == nullptr) {
    return fail(core, std::move(irp), Status::NotFound, no_node(text_in(in.node)));
  }
  const std::vector<fabric::Port*> ports = fabric::ethernet_ports(*node);
  std::string reason;
  auto given = read_addresses(in, ports.size(), reason);
  if (!given) return fail(core, std::move(irp), given.error(), std::move(reason));
  if (node->address_source == fabric::AddressSource::Configured) return succeed(std::move(irp));

  auto source = fabric::AddressSource::Interfaces;
  std::vector<Address> addresses;
  const std::uint64_t own = tree.network_namespace();
  if (own != 0 && in.network_namespace != own) {
    addresses = core.fabric.available_addresses(*node, *given);
  }
  if (addresses.empty()) {
    source = fabric::AddressSource::Default;
    addresses = core.fabric.available_addresses(*node, core.fabric.default_addresses(*node));
  }
  const bool of_interfaces = source == fabric::AddressSource::Interfaces;
  const std::uint64_t network = of_interfaces ? in.network_namespace : 0;
  if (addresses == node->addresses) {
    if (source == node->address_source) node->address_namespace = network;
    return succeed(std::move(irp));
  }
  const bool all_stay =
      std::all_of(node->addresses.begin(), node->addresses.end(), [&](const Address& old) {
        return std::find(addresses.begin(), addresses.end(), old) != addresses.end();
      });
  if (const std::string users = all_stay ? "" : users_of(core, *node); !users.empty()) {
    return fail(core, std::move(irp), Status::DeviceBusy,
                fmt::format("{} keeps the address {}, which {} uses in another network namespace",
                            node->name, text_of(node->addresses), users));
  }
  std::vector<std::vector<fabric::GidEntry>> before;
  before.reserve(ports.size());
  for (const fabric::Port* port : ports) before.push_back(port->gids);
  const Status set = core.fabric.set_addresses(*node, std::move(addresses), source);
  IB_ASSERT(set == Status::Ok);  // they are available
  node->address_namespace = network;
  core.trace.add(fmt::format("{} has the address {} now", node->name, text_of(node->addresses)));
  publish_addresses(core, *node, before);
  succeed(std::move(irp));
}

}  // namespace ib::drivers
