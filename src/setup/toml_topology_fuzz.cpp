// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Topologies in TOML of any content: either a sentence, or a subnet that can exist and comes back
// when it is written.
#include "base/assert.h"
#include "fabric/topology_toml.h"
#include "setup/toml_topology.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace ib;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  std::string reason;
  const auto topology = softib::parse_toml_topology(text, reason);
  IB_ASSERT(topology.has_value() == reason.empty());
  if (!topology) return 0;
  const std::string written = fabric::write_toml_topology(*topology);
  const auto again = softib::parse_toml_topology(written, reason);
  IB_ASSERT(again && fabric::sorted(*again).cables == fabric::sorted(*topology).cables);
  IB_ASSERT(fabric::write_toml_topology(*again) == written);
  return 0;
}
