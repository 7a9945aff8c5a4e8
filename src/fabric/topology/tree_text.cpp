// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Rows, and the walk from the switches that are farthest from hosts down to these.
#include "fabric/topology/tree_text.h"

#include "fabric/topology/link_names.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <numeric>
#include <span>
#include <string_view>

namespace ib::fabric {
namespace {

constexpr std::size_t kDeepest = 16;  // levels; what is below begins a tree of its own

std::string display_name(const TopologyElement& element) {
  return element.description.empty() ? fmt::format("{:#018x}", element.node_guid)
                                     : element.description;
}

// A cable as one of its two ends sees it.
struct Branch {
  std::uint32_t port = 0;
  TopologyEnd peer;
  std::uint32_t cable = 0;
};

class TreeWriter {
 public:
  explicit TreeWriter(const Topology& topology) : topology_(topology) {
    const std::size_t count = topology.elements.size();
    first_.resize(count + 1);
    for (const TopologyCable& cable : topology.cables) {
      ++first_[cable.a.element + 1];
      ++first_[cable.b.element + 1];
    }
    std::partial_sum(first_.begin(), first_.end(), first_.begin());
    branches_.resize(first_.back());
    std::vector<std::size_t> next(first_.begin(), first_.end() - 1);
    for (std::uint32_t i = 0; i < topology.cables.size(); ++i) {
      const TopologyCable& cable = topology.cables[i];
      branches_[next[cable.a.element]++] = {cable.a.port, cable.b, i};
      branches_[next[cable.b.element]++] = {cable.b.port, cable.a, i};
    }
    for (std::uint32_t i = 0; i < count; ++i) {
      const std::span<Branch> own(branches_.data() + first_[i], first_[i + 1] - first_[i]);
      std::sort(own.begin(), own.end(),
                [](const Branch& a, const Branch& b) { return a.port < b.port; });
    }
    shown_.resize(count);
    drawn_.resize(topology.cables.size());
    rank();
  }

  std::string write() {
    std::vector<std::uint32_t> order(topology_.elements.size());
    std::iota(order.begin(), order.end(), 0u);
    std::stable_sort(order.begin(), order.end(),
                     [&](std::uint32_t a, std::uint32_t b) { return ranks_[a] > ranks_[b]; });
    for (const std::uint32_t root : order) {
      if (shown_[root]) continue;
      const TopologyElement& element = topology_.elements[root];
      fmt::format_to(std::back_inserter(out_), "{}, {} port{}\n", display_name(element),
                     element.ports, element.ports == 1 ? "" : "s");
      walk(root);
    }
    return std::move(out_);
  }

 private:
  struct Step {
    std::uint32_t element;
    std::size_t next;  // its next branch
  };

  std::span<const Branch> branches_of(std::uint32_t element) const {
    return {branches_.data() + first_[element], first_[element + 1] - first_[element]};
  }

  // How many cables each element is away from the nearest channel adapter.
  void rank() {
    ranks_.assign(topology_.elements.size(), kNoIndex);
    std::vector<std::uint32_t> queue;
    for (std::uint32_t i = 0; i < topology_.elements.size(); ++i) {
      if (topology_.elements[i].is_switch()) continue;
      ranks_[i] = 0;
      queue.push_back(i);
    }
    for (std::size_t i = 0; i < queue.size(); ++i) {
      for (const Branch& branch : branches_of(queue[i])) {
        std::uint32_t& other = ranks_[branch.peer.element];
        if (other != kNoIndex) continue;
        other = ranks_[queue[i]] + 1;
        queue.push_back(branch.peer.element);
      }
    }
  }

  void walk(std::uint32_t root) {
    shown_[root] = true;
    std::vector<Step> path{{root, 0}};
    while (!path.empty()) {
      Step& step = path.back();
      const auto branches = branches_of(step.element);
      if (step.next == branches.size()) {
        write_others(step.element, path.size());
        path.pop_back();
        continue;
      }
      const Branch& branch = branches[step.next++];
      const std::uint32_t child = branch.peer.element;
      if (shown_[child] || ranks_[child] >= ranks_[step.element] || path.size() > kDeepest) {
        continue;
      }
      shown_[child] = true;
      drawn_[branch.cable] = true;
      fmt::format_to(std::back_inserter(out_), "{:{}}{}\n", "", 2 * path.size(), text(branch));
      path.push_back({child, 0});
    }
  }

  void write_others(std::uint32_t element, std::size_t depth) {
    std::string_view lead = "also ";
    for (const Branch& branch : branches_of(element)) {
      if (drawn_[branch.cable]) continue;
      fmt::format_to(std::back_inserter(out_), "{:{}}{}{}", "",
                     lead == "also " ? 2 * depth : std::size_t{0}, lead, text(branch));
      lead = ", ";
    }
    if (lead == ", ") out_ += '\n';
  }

  std::string text(const Branch& branch) const {
    const TopologyCable& cable = topology_.cables[branch.cable];
    return fmt::format("[{}] {}[{}] {}{}{}", branch.port,
                       display_name(topology_.elements[branch.peer.element]), branch.peer.port,
                       width_name(cable.width), speed_name(cable.speed),
                       cable.is_up ? "" : " down");
  }

  const Topology& topology_;
  std::vector<Branch> branches_;    // of all elements
  std::vector<std::size_t> first_;  // by element, and one more
  std::vector<std::uint32_t> ranks_;
  std::vector<bool> shown_;  // elements
  std::vector<bool> drawn_;  // cables between an element and the one above it
  std::string out_;
};

std::string plural(std::size_t count, std::string_view one, std::string_view many) {
  return fmt::format("{} {}", count, count == 1 ? one : many);
}

std::string lids_text(const TopologyElement& element) {
  std::string text;
  for (const std::uint16_t lid : element.lids) {
    fmt::format_to(std::back_inserter(text), "{}{}", text.empty() ? "" : ",", lid);
  }
  return text.empty() ? "-" : text;
}

const char* kind_text(const TopologyElement& element) {
  if (element.is_switch()) return "switch";
  return element.is_router ? "router" : "HCA";
}

}  // namespace

std::string topology_summary(const Topology& topology) {
  std::size_t switches = 0;
  std::size_t routers = 0;
  for (const TopologyElement& element : topology.elements) {
    if (element.is_switch()) ++switches;
    if (element.is_router) ++routers;
  }
  const auto down = std::count_if(topology.cables.begin(), topology.cables.end(),
                                  [](const TopologyCable& cable) { return !cable.is_up; });
  const std::size_t hcas = topology.elements.size() - switches - routers;
  std::string text =
      fmt::format("{}, {}", plural(hcas, "HCA", "HCAs"), plural(switches, "switch", "switches"));
  if (routers != 0) text += ", " + plural(routers, "router", "routers");
  text += ", " + plural(topology.cables.size(), "cable", "cables");
  if (down != 0) text += fmt::format(", {} of them down", down);
  return text;
}

std::string topology_table(const Topology& topology) {
  std::vector<std::uint32_t> cables(topology.elements.size());
  for (const TopologyCable& cable : topology.cables) {
    ++cables[cable.a.element];
    ++cables[cable.b.element];
  }
  std::size_t widest = 4;
  for (const TopologyElement& element : topology.elements) {
    widest = std::max(widest, display_name(element).size());
  }
  std::string out =
      fmt::format("{:{}}  KIND    {:18}  PORTS  CABLES  LID\n", "NAME", widest, "NODE GUID");
  for (std::size_t i = 0; i < topology.elements.size(); ++i) {
    const TopologyElement& element = topology.elements[i];
    fmt::format_to(std::back_inserter(out), "{:{}}  {:6}  {:#018x}  {:5}  {:6}  {}\n",
                   display_name(element), widest, kind_text(element), element.node_guid,
                   element.ports, cables[i], lids_text(element));
  }
  return out;
}

std::string topology_tree(const Topology& topology) {
  return TreeWriter(topology).write();
}

}  // namespace ib::fabric
