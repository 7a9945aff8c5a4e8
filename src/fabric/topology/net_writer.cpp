// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Lines of elements as ibnetdiscover prints them, and the cables of each element.
#include "fabric/topology/net_writer_internal.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

namespace ib::fabric {
namespace {

// How the three kinds of elements are called.
struct KindWords {
  char letter;
  const char* block;
  const char* guid;
};
KindWords words(const TopologyElement& element) {
  if (element.is_switch()) return {'S', "Switch", "switch"};
  return element.is_router ? KindWords{'R', "Rt", "rt"} : KindWords{'H', "Ca", "ca"};
}

}  // namespace

std::string net_name(const TopologyElement& element) {
  return fmt::format("{}-{:016x}", words(element).letter, element.node_guid);
}

void append_element_ids(std::string& out, const TopologyElement& element) {
  auto to = std::back_inserter(out);
  fmt::format_to(to, "vendid={:#x}\ndevid={:#x}\n", element.vendor, element.device);
  if (element.system_image_guid != 0) {
    fmt::format_to(to, "sysimgguid={:#x}\n", element.system_image_guid);
  }
  fmt::format_to(to, "{}guid={:#x}", words(element).guid, element.node_guid);
  if (element.is_switch()) fmt::format_to(to, "({:x})", end_port_guid(element, 0));
  out += '\n';
}

void append_element_line(std::string& out, const TopologyElement& element) {
  auto to = std::back_inserter(out);
  fmt::format_to(to, "{}\t{} \"{}\"\t\t# \"{}\"", words(element).block, element.ports,
                 net_name(element), element.description);
  if (!element.is_switch()) return;
  fmt::format_to(to, " {} port 0 lid {} lmc {}", element.enhanced_port0 ? "enhanced" : "base",
                 lid_of(element, 0), element.lmc);
}

std::uint32_t lid_of(const TopologyElement& element, std::uint32_t port) {
  const std::uint32_t index = element.is_switch() ? 0 : port - 1;
  return index < element.lids.size() ? element.lids[index] : 0;
}

CablesOf::CablesOf(const Topology& topology) : first_(topology.elements.size() + 1) {
  for (const TopologyCable& cable : topology.cables) {
    if (!cable.is_up) continue;
    ++first_[cable.a.element + 1];
    ++first_[cable.b.element + 1];
  }
  for (std::size_t i = 1; i < first_.size(); ++i) first_[i] += first_[i - 1];
  plugs_.resize(first_.back());
  std::vector<std::size_t> next(first_.begin(), first_.end() - 1);
  for (std::uint32_t i = 0; i < topology.cables.size(); ++i) {
    const TopologyCable& cable = topology.cables[i];
    if (!cable.is_up) continue;
    plugs_[next[cable.a.element]++] = {cable.a.port, cable.b, i};
    plugs_[next[cable.b.element]++] = {cable.b.port, cable.a, i};
  }
  for (std::size_t i = 0; i + 1 < first_.size(); ++i) {
    std::sort(plugs_.begin() + static_cast<std::ptrdiff_t>(first_[i]),
              plugs_.begin() + static_cast<std::ptrdiff_t>(first_[i + 1]),
              [](const Plug& a, const Plug& b) { return a.port < b.port; });
  }
}

}  // namespace ib::fabric
