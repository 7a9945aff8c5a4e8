// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A request is checked as a whole, then entered into the fabric's table of interfaces; a node whose
// programs run in that network has the addresses for its own.
#include "drivers/root/interface_requests.h"

#include "drivers/root/address_requests.h"
#include "drivers/soft_hca/handlers.h"
#include "drivers/soft_hca/objects/connection_paths.h"
#include "fabric/addressing/ip_interfaces.h"
#include "verbs/gid.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ib::drivers {
namespace {

using fabric::IpInterface;

constexpr std::uint16_t kPartition = 0x7fff;

// Link-local ones count here: an interface is named by their scope.
bool is_address(const verbs::Gid& ip, std::uint32_t bits) {
  constexpr std::uint32_t kIpv4Bits = 32;
  constexpr std::uint32_t kIpv6Bits = 128;
  return !verbs::is_zero(ip) && !verbs::is_multicast(ip) &&
         bits <= (verbs::is_ipv4(ip) ? kIpv4Bits : kIpv6Bits);
}

Result<IpInterface> read_interface(const control::SetIpInterfaceIn& in, std::string& reason) {
  IpInterface interface;
  interface.name = text_in(in.name);
  interface.index = in.index;
  interface.pkey = in.pkey;
  interface.connected_mode = in.connected_mode != 0;
  interface.hardware_address = in.hardware_address;
  if ((in.pkey & kPartition) == 0) {
    reason = fmt::format("{:#06x} is no P_Key", in.pkey);
    return Status::InvalidParameter;
  }
  if (in.count > in.addresses.size()) {
    reason = fmt::format("{} addresses; one request has at most {}", in.count, in.addresses.size());
    return Status::InvalidParameter;
  }
  for (std::size_t i = 0; i < in.count; ++i) {
    const control::PrefixedAddress& given = in.addresses[i];
    if (!is_address(given.ip, given.bits)) {
      reason = fmt::format("address {}, {}/{}, is no unicast address of a network interface", i,
                           verbs::address_text(given.ip), given.bits);
      return Status::InvalidParameter;
    }
    if (!interface.has(given.ip)) interface.addresses.push_back({given.ip, given.bits});
  }
  return interface;
}

// The node has the addresses of the network namespace in which its programs run (SetAddresses). If
// that is the one of this interface, they follow it.
void follow(Core& core, fabric::Node& node, std::string_view name,
            const std::vector<IpInterface::Address>& now) {
  std::vector<fabric::Address> all;
  std::uint32_t port = 0;
  for (const fabric::Address& old : node.addresses) {
    const bool stays = old.interface != name || std::any_of(now.begin(), now.end(), [&](auto& one) {
                         return one.ip == old.ip;
                       });
    if (old.interface == name) port = old.port;
    if (stays) all.push_back(old);
  }
  for (const IpInterface::Address& one : now) {
    const bool known = std::any_of(all.begin(), all.end(),
                                   [&one](const fabric::Address& old) { return old.ip == one.ip; });
    if (known || verbs::is_link_local(one.ip)) continue;
    all.push_back({one.ip, std::string(name), port});
  }
  all = core.fabric.available_addresses(node, all);
  if (all == node.addresses) return;
  const Status set =
      core.fabric.set_addresses(node, std::move(all), fabric::AddressSource::Interfaces);
  IB_ASSERT(set == Status::Ok);  // they are available
  resolve_flows(core, Resolve::All);
}

}  // namespace

void set_ip_interface(Core& core, Session& session, const control::SetIpInterfaceIn& in,
                      io::IrpRef irp) {
  if (session.node == nullptr) {
    return fail(core, std::move(irp), Status::InvalidState,
                "the interface of a node needs Attach first");
  }
  const auto number = static_cast<std::uint32_t>(session.node - core.fabric.nodes().data());
  const std::string name(text_in(in.name));
  if (!is_interface_name(name)) {
    return fail(core, std::move(irp), Status::InvalidParameter,
                fmt::format("\"{}\" is no name of a network interface", name));
  }
  fabric::Node& node = core.fabric.nodes()[number];
  const bool is_of_programs = node.address_source == fabric::AddressSource::Interfaces &&
                              node.address_namespace == in.network_namespace;
  if (in.port == 0) {
    core.fabric.ip_interfaces().remove(number, name, session.id);
    if (is_of_programs) follow(core, node, name, {});
    return succeed(std::move(irp));
  }
  const fabric::Hca* hca = core.fabric.find_hca_by_guid(node, in.node_guid);
  if (hca == nullptr || in.port > hca->ports.size()) {
    return fail(core, std::move(irp), Status::NotFound,
                fmt::format("{} has no port {} of an HCA with the GUID {:016x}", node.name, in.port,
                            in.node_guid));
  }
  std::string reason;
  auto interface = read_interface(in, reason);
  if (!interface) return fail(core, std::move(irp), interface.error(), std::move(reason));
  interface->owner = session.id;
  interface->port = &hca->ports[in.port - 1];
  const std::vector<IpInterface::Address> addresses = interface->addresses;
  const Status set = core.fabric.ip_interfaces().set(number, *std::move(interface));
  if (set != Status::Ok) {
    return fail(
        core, std::move(irp), set,
        fmt::format("{} has {} interfaces already", node.name, fabric::IpInterfaces::kMostOfNode));
  }
  if (is_of_programs) follow(core, node, name, addresses);
  succeed(std::move(irp));
}

}  // namespace ib::drivers
