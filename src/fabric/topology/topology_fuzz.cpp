// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Topology files and names of presets of any content: either a sentence, or a subnet that can
// exist, comes back when it is written, and can be shown.
#include "base/assert.h"
#include "fabric/topology/ibnetdiscover.h"
#include "fabric/topology/ibsim.h"
#include "fabric/topology/presets.h"
#include "fabric/topology/subnet_list.h"
#include "fabric/topology/system_topology.h"
#include "fabric/topology/tree_text.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace {

using namespace ib;
using namespace ib::fabric;

constexpr std::size_t kLargest = 2000;  // elements that are shown and written

// A read that fails says why.
void use(const Result<Topology>& topology, const std::string& reason) {
  IB_ASSERT(topology.has_value() == reason.empty());
  if (!topology || topology->elements.size() > kLargest) return;
  std::string complaint;
  IB_ASSERT(check(*topology, complaint) == Status::Ok);
  static_cast<void>(topology_summary(*topology));
  static_cast<void>(topology_table(*topology));
  static_cast<void>(topology_tree(*topology));
  const auto again = parse_ibsim(write_ibsim(*topology), {}, complaint);
  IB_ASSERT(again && sorted(*again).cables == sorted(*topology).cables);
  const auto discovered = parse_ibnetdiscover(write_ibnetdiscover(*topology), complaint);
  IB_ASSERT(discovered && sorted(*discovered).cables == sorted(*topology).cables);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  std::string reason;
  use(preset_topology(text, reason), reason);
  reason.clear();
  use(parse_ibnetdiscover(text, reason), reason);
  reason.clear();
  const ReadIncluded included = [&](std::string_view name) -> std::optional<std::string> {
    if (name.empty()) return std::nullopt;
    return std::string(text.substr(text.size() / 2));
  };
  use(parse_ibsim(text, included, reason), reason);
  reason.clear();
  use(parse_subnet_list(text, reason), reason);
  reason.clear();
  // The products of the first half, joined by the second.
  SystemLibrary library;
  const std::size_t half = text.find("\n\n\n");
  if (library.add(text.substr(0, half), "file", reason) == Status::Ok) {
    use(parse_system_topology(half < size ? text.substr(half) : "", library, reason), reason);
  }
  static_cast<void>(is_ibnetdiscover(text));
  static_cast<void>(is_subnet_list(text));
  return 0;
}
