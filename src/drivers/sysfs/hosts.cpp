// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "drivers/sysfs/hosts.h"

#include "verbs/control.h"

namespace ib::drivers {

std::optional<std::string> host_file(const fabric::Fabric& fabric, std::string_view path) {
  if (!path.starts_with(verbs::control::kHostsFolder)) return std::nullopt;
  const std::string_view name = path.substr(verbs::control::kHostsFolder.size());
  const fabric::Node* node = name.empty() ? nullptr : fabric.find_node(name);
  if (node == nullptr) return std::nullopt;
  std::string text;
  for (const fabric::Address& address : node->addresses) {
    text += verbs::address_text(address.ip) + "\n";
  }
  return text;
}

}  // namespace ib::drivers
