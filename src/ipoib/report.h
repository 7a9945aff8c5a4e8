// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The state of a node's interfaces as JSON, for `softib ipoib` (docs/status_json.md lists the
// keys).
#pragma once

#include "ulp/ipoib/snapshot.h"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace ib::ipoib::driver {

class Adapter;

// The rest of an interface's row, beside its snapshot.
struct InterfaceIdentity {
  std::string name;
  std::string hca;
  std::uint32_t port = 0;
  std::uint16_t pkey = 0;
  bool connected_mode = false;
  std::uint32_t mtu = 0;
};

std::string report_of(const std::vector<std::unique_ptr<Adapter>>& adapters);
// One interface of it.
std::string interface_report(const InterfaceIdentity& identity, const Snapshot& snapshot);
// As `ip link` shows it: 20 bytes, "80:00:04:2b:fe:80:..."
std::string text_of(const HardwareAddress& address);

}  // namespace ib::ipoib::driver
