// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The texts of the emulated files, in the words of the kernel's drivers/infiniband/core/sysfs.c.
// Only for sysfs.cpp, which has their places in the tree.
#pragma once

#include "drivers/sysfs/sysfs.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace ib::drivers::sysfs {

// Where in the tree we are. `port`, `index`: only below a port or one of its tables.
struct Place {
  const DeviceStatus& devices;
  const fabric::Node& node;
  const fabric::Hca& hca;
  std::size_t number;  // of the HCA in its node: softib<number>, uverbs<number>
  unsigned cpus;
  const fabric::Port* port = nullptr;
  std::uint32_t index = 0;
  std::span<const fabric::IpInterface> interfaces{};  // of the node
  const fabric::IpInterface* interface = nullptr;
  verbs::control::CaAttr ca() const { return devices.ca(hca); }
  verbs::control::PortAttr port_attr() const { return devices.port(hca, *port); }
};

using Text = std::string (*)(const Place&);
struct Attribute {
  std::string_view name;
  Text text;
};
// Returns nothing if the file is there, but a read of it fails.
using EntryText = std::optional<std::string> (*)(const Place&);

std::span<const Attribute> ip_interface_files();
std::span<const Attribute> hca_files();
std::span<const Attribute> device_files();
std::span<const Attribute> port_files();
std::span<const Attribute> counter_files();
std::span<const Attribute> driver_counter_files();
std::span<const Attribute> uverbs_files();
std::span<const Attribute> interface_files();

// Entry `place.index` of a table of the port. Free entries are zero, and have neither type nor
// network interface.
std::optional<std::string> gid_line(const Place& place);
std::optional<std::string> gid_type_line(const Place& place);
std::optional<std::string> gid_interface_line(const Place& place);
std::optional<std::string> pkey_line(const Place& place);

}  // namespace ib::drivers::sysfs
