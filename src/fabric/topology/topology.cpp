// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The rules that make a topology a subnet that can exist, and the order of a sorted one.
#include "fabric/topology/topology.h"

#include "fabric/topology/link_names.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <tuple>
#include <utility>

namespace ib::fabric {
namespace {

const char* kind_name(const TopologyElement& element) {
  if (element.is_switch()) return "switch";
  return element.is_router ? "router" : "channel adapter";
}

bool is_control(char c) {
  return static_cast<unsigned char>(c) < ' ' || c == 0x7f;
}

Status check_ports(const TopologyElement& element, std::string& reason) {
  const std::uint32_t most = element.is_switch() ? kMaxSwitchPorts : kMaxAdapterPorts;
  if (element.ports >= 1 && element.ports <= most) return Status::Ok;
  reason = fmt::format("{} has {} ports; a {} has 1 to {}", element_text(element), element.ports,
                       kind_name(element), most);
  return Status::InvalidParameter;
}

Status check_description(const TopologyElement& element, std::string& reason) {
  const std::string& text = element.description;
  if (text.size() > kMaxDescription) {
    reason = fmt::format("the description of {} has {} bytes; it may have {}",
                         element_text(element), text.size(), kMaxDescription);
    return Status::InvalidParameter;
  }
  if (std::none_of(text.begin(), text.end(), is_control)) return Status::Ok;
  reason = fmt::format("the description of {} has control characters; use letters that can be seen",
                       element_text(element));
  return Status::InvalidParameter;
}

Status check_values(const TopologyElement& element, std::string& reason) {
  IB_CHECK(check_ports(element, reason));
  IB_CHECK(check_description(element, reason));
  if (element.vendor > 0xffffff || element.device > 0xffff) {
    reason = fmt::format(
        "{} has the vendor ID {:#x} and the device ID {:#x}; these have 24 and 16 "
        "bits",
        element_text(element), element.vendor, element.device);
    return Status::InvalidParameter;
  }
  const auto has_all = [&](std::size_t given) {
    return given == 0 || given == element.end_ports();
  };
  if (!has_all(element.port_guids.size()) || !has_all(element.lids.size())) {
    reason = fmt::format(
        "{} has {} port GUIDs and {} LIDs; it has {} ports with GUIDs, and needs "
        "one each or none",
        element_text(element), element.port_guids.size(), element.lids.size(), element.end_ports());
    return Status::InvalidParameter;
  }
  for (const std::uint16_t lid : element.lids) {
    if (lid <= kLastUnicastLid) continue;
    reason = fmt::format("{} has the LID {:#x}; LIDs of ports are 1 to {:#x}",
                         element_text(element), lid, kLastUnicastLid);
    return Status::InvalidParameter;
  }
  if (element.lmc > 7) {
    reason = fmt::format("{} has the LMC {}; it is 0 to 7", element_text(element), element.lmc);
    return Status::InvalidParameter;
  }
  return Status::Ok;
}

Status check_size(const Topology& topology, std::string& reason) {
  if (topology.elements.empty()) {
    reason = "the topology has no element; it needs one channel adapter or switch at least";
    return Status::InvalidParameter;
  }
  std::size_t lids = 0;
  std::size_t ports = 0;
  for (const TopologyElement& element : topology.elements) {
    lids += element.end_ports();
    ports += element.ports;
  }
  if (lids > kMaxTopologyLids) {
    reason = fmt::format(
        "the topology has {} switches and ports of channel adapters, each of which "
        "needs a LID; a subnet has {} LIDs",
        lids, kMaxTopologyLids);
    return Status::LimitExceeded;
  }
  if (ports > kMaxTopologyPorts) {
    reason =
        fmt::format("the topology has {} ports; softib has room for {}", ports, kMaxTopologyPorts);
    return Status::LimitExceeded;
  }
  return Status::Ok;
}

struct OwnedNumber {
  std::uint64_t number;
  std::uint32_t element;
};

// Each number must be there once, and not be zero.
Status check_unique(const Topology& topology, std::vector<OwnedNumber> numbers, const char* what,
                    std::string& reason) {
  std::stable_sort(numbers.begin(), numbers.end(),
                   [](const OwnedNumber& a, const OwnedNumber& b) { return a.number < b.number; });
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const TopologyElement& element = topology.elements[numbers[i].element];
    if (numbers[i].number == 0) {
      reason = fmt::format("{} has the {} 0; use one that is not 0 and that no other has",
                           element_text(element), what);
      return Status::InvalidParameter;
    }
    if (i == 0 || numbers[i - 1].number != numbers[i].number) continue;
    reason = fmt::format("{} and {} have the same {}, {:#x}; each needs its own",
                         element_text(topology.elements[numbers[i - 1].element]),
                         element_text(element), what, numbers[i].number);
    return Status::InvalidParameter;
  }
  return Status::Ok;
}

Status check_addresses(const Topology& topology, std::string& reason) {
  std::vector<OwnedNumber> nodes;
  std::vector<OwnedNumber> ports;
  std::vector<OwnedNumber> lids;
  nodes.reserve(topology.elements.size());
  ports.reserve(topology.elements.size());
  for (std::uint32_t i = 0; i < topology.elements.size(); ++i) {
    const TopologyElement& element = topology.elements[i];
    nodes.push_back({element.node_guid, i});
    for (std::uint32_t n = 0; n < element.end_ports(); ++n) {
      ports.push_back({end_port_guid(element, n), i});
    }
    for (const std::uint16_t lid : element.lids) {
      if (lid != 0) lids.push_back({lid, i});
    }
  }
  IB_CHECK(check_unique(topology, std::move(nodes), "node GUID", reason));
  IB_CHECK(check_unique(topology, std::move(ports), "port GUID", reason));
  return check_unique(topology, std::move(lids), "LID", reason);
}

// Which cable is in which port: all ports of all elements in a row.
class PortTable {
 public:
  explicit PortTable(const Topology& topology) : topology_(topology) {
    std::size_t ports = 0;
    first_.reserve(topology.elements.size());
    for (const TopologyElement& element : topology.elements) {
      first_.push_back(ports);
      ports += element.ports;
    }
    cable_.resize(ports, kNoIndex);
  }

  Status plug(std::uint32_t cable, TopologyEnd end, std::string& reason) {
    if (end.element >= topology_.elements.size()) {
      reason = fmt::format("cable {} leads to element {}; the topology has elements 0 to {}", cable,
                           end.element, topology_.elements.size() - 1);
      return Status::InvalidParameter;
    }
    const TopologyElement& element = topology_.elements[end.element];
    if (end.port == 0 || end.port > element.ports) {
      reason = fmt::format("a cable leads to {}, which has ports 1 to {}", end_text(topology_, end),
                           element.ports);
      return Status::InvalidParameter;
    }
    std::uint32_t& here = cable_[first_[end.element] + end.port - 1];
    if (here != kNoIndex) {
      reason = fmt::format("two cables lead to {}: from {} and from {}; a port takes one",
                           end_text(topology_, end), from(here, end), from(cable, end));
      return Status::InvalidParameter;
    }
    here = cable;
    return Status::Ok;
  }

 private:
  // The other end of a cable that leads here.
  std::string from(std::uint32_t cable, TopologyEnd here) const {
    const TopologyCable& it = topology_.cables[cable];
    return end_text(topology_, it.a == here ? it.b : it.a);
  }

  const Topology& topology_;
  std::vector<std::size_t> first_;
  std::vector<std::uint32_t> cable_;
};

Status check_cables(const Topology& topology, std::string& reason) {
  PortTable ports(topology);
  for (std::uint32_t i = 0; i < topology.cables.size(); ++i) {
    const TopologyCable& cable = topology.cables[i];
    if (cable.a == cable.b && cable.a.element < topology.elements.size()) {
      reason = fmt::format("a cable leads from {} to the same port; it needs two ports",
                           end_text(topology, cable.a));
      return Status::InvalidParameter;
    }
    IB_CHECK(ports.plug(i, cable.a, reason));
    IB_CHECK(ports.plug(i, cable.b, reason));
    if (width_name(cable.width).empty() || speed_name(cable.speed).empty()) {
      reason = fmt::format(
          "the cable from {} to {} has the codes {} for its width and {} for its "
          "speed; each is a power of two, the width 1 to 16, the speed 1 to 128",
          end_text(topology, cable.a), end_text(topology, cable.b), cable.width, cable.speed);
      return Status::InvalidParameter;
    }
  }
  return Status::Ok;
}

}  // namespace

std::uint64_t end_port_guid(const TopologyElement& element, std::uint32_t index) {
  if (index < element.port_guids.size()) return element.port_guids[index];
  return element.is_switch() ? element.node_guid : element.node_guid + index + 1;
}

// A description may come from anybody, and may be wrong in every way.
std::string element_text(const TopologyElement& element) {
  std::string description = element.description.substr(0, kMaxDescription);
  std::replace_if(description.begin(), description.end(), is_control, '?');
  return fmt::format("{} \"{}\" ({:#018x})", kind_name(element), description, element.node_guid);
}

std::string end_text(const Topology& topology, TopologyEnd end) {
  return fmt::format("port {} of {}", end.port, element_text(topology.elements[end.element]));
}

Status check(const Topology& topology, std::string& reason) {
  for (const TopologyElement& element : topology.elements) {
    IB_CHECK(check_values(element, reason));
  }
  IB_CHECK(check_size(topology, reason));
  IB_CHECK(check_addresses(topology, reason));
  return check_cables(topology, reason);
}

Topology sorted(Topology topology) {
  std::vector<std::uint32_t> order(topology.elements.size());
  std::iota(order.begin(), order.end(), 0u);
  std::sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
    const TopologyElement& one = topology.elements[a];
    const TopologyElement& other = topology.elements[b];
    return std::tuple(!one.is_switch(), one.node_guid, a) <
           std::tuple(!other.is_switch(), other.node_guid, b);
  });
  std::vector<std::uint32_t> place(order.size());
  Topology result;
  result.elements.reserve(order.size());
  for (std::uint32_t i = 0; i < order.size(); ++i) {
    place[order[i]] = i;
    result.elements.push_back(std::move(topology.elements[order[i]]));
  }
  result.cables = std::move(topology.cables);
  for (TopologyCable& cable : result.cables) {
    for (TopologyEnd* end : {&cable.a, &cable.b}) {
      if (end->element < place.size()) end->element = place[end->element];
    }
    if (cable.b < cable.a) std::swap(cable.a, cable.b);
  }
  std::sort(result.cables.begin(), result.cables.end());
  return result;
}

}  // namespace ib::fabric
