// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "ipoib/interface_report.h"

#include "base/buffers.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

namespace ib::ipoib::driver {
namespace {

using verbs::control::SetIpInterfaceIn;

SetIpInterfaceIn request_of(const Adapter& adapter, const PortInterface& interface,
                            const AddressesByInterface& addresses) {
  SetIpInterfaceIn in;
  interface.name().copy(in.name.data(), in.name.size() - 1);
  in.node_guid = adapter.guid();
  in.port = interface.station().port;
  in.index = static_cast<std::uint32_t>(interface.index());
  in.pkey = static_cast<std::uint16_t>(interface.station().pkey);
  in.connected_mode = interface.connected_mode() ? 1 : 0;
  in.hardware_address =
      std::bit_cast<std::array<std::uint8_t, sizeof in.hardware_address>>(interface.address());
  const auto found = addresses.find(interface.name());
  if (found == addresses.end()) return in;
  in.count = static_cast<std::uint32_t>(std::min(found->second.size(), in.addresses.size()));
  std::copy_n(found->second.begin(), in.count, in.addresses.begin());
  return in;
}

std::string ask(user::Process& process, const SetIpInterfaceIn& in) {
  const auto answer = process.connection().call(verbs::control::Code::SetIpInterface, 0, in);
  if (answer) return {};
  return user::last_reason().empty() ? status_text(answer.error()) : user::last_reason();
}

}  // namespace

Status InterfaceReport::open() {
  network_ = own_network_number();
  return watch_.open();
}

std::string InterfaceReport::tell(user::Process& process,
                                  const std::vector<std::unique_ptr<Adapter>>& adapters) {
  if (!std::exchange(is_due_, false)) return {};
  std::string refusal;
  const auto send = [&](const SetIpInterfaceIn& in) {
    std::string reason = ask(process, in);
    if (refusal.empty()) refusal = std::move(reason);
  };
  const AddressesByInterface addresses = addresses_by_interface();
  Told now;
  for (const auto& adapter : adapters) {
    for (const auto& interface : adapter->interfaces()) {
      SetIpInterfaceIn in = request_of(*adapter, *interface, addresses);
      in.network_namespace = network_;
      const auto bytes = bytes_of(in);
      std::vector<std::byte>& kept = now[interface->name()];
      kept.assign(bytes.begin(), bytes.end());
      const auto before = told_.find(interface->name());
      if (before == told_.end() || before->second != kept) send(in);
    }
  }
  for (const auto& [name, bytes] : told_) {
    if (now.contains(name)) continue;
    SetIpInterfaceIn gone;
    name.copy(gone.name.data(), gone.name.size() - 1);
    gone.network_namespace = network_;
    send(gone);
  }
  told_ = std::move(now);
  return refusal;
}

}  // namespace ib::ipoib::driver
