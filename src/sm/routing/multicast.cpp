// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "sm/routing/multicast.h"

#include "sm/routing/levels.h"
#include "sm/subnet/subnet.h"

#include <algorithm>

namespace ib::sm {
namespace {

struct Above {
  std::uint32_t at = kNone;  // the switch above in the tree
  std::uint8_t port = 0;     // of this switch, that leads up
  std::uint8_t its_port = 0;
};

// One of the uppermost switches that a member is joined to, so that ways lead up, then down. Groups
// have different ones.
std::uint32_t root_for(const Graph& graph, std::uint32_t member, std::uint32_t seed) {
  std::vector<bool> is_joined(graph.size());
  std::vector<std::uint32_t> queue{member};
  is_joined[member] = true;
  for (std::size_t i = 0; i < queue.size(); ++i) {
    for (const Neighbor& neighbor : graph.switches[queue[i]].neighbors) {
      if (is_joined[neighbor.to]) continue;
      is_joined[neighbor.to] = true;
      queue.push_back(neighbor.to);
    }
  }
  const std::vector<std::uint32_t> levels = levels_of(graph);
  std::uint32_t top = 0;
  for (const std::uint32_t i : queue) top = std::max(top, levels[i]);
  std::erase_if(queue, [&](std::uint32_t i) { return levels[i] != top; });
  std::ranges::sort(queue);
  return queue[seed % queue.size()];
}

std::vector<Above> span_from(const Graph& graph, std::uint32_t root) {
  std::vector<Above> above(graph.size());
  above[root].at = root;
  std::vector<std::uint32_t> queue{root};
  for (std::size_t i = 0; i < queue.size(); ++i) {
    const GraphSwitch& at = graph.switches[queue[i]];
    for (const Neighbor& neighbor : at.neighbors) {
      if (above[neighbor.to].at != kNone) continue;
      const Link& link = at.links[neighbor.first];
      above[neighbor.to] = {queue[i], link.to_port, link.port};
      queue.push_back(neighbor.to);
    }
  }
  return above;
}

bool is_empty(const PortSet& set) {
  return set == PortSet{};
}

// Where no member is above or beside, the tree need not reach up to its root.
void cut_top(std::map<std::uint32_t, PortSet>& tree, const std::vector<Above>& above,
             std::uint32_t root, const std::vector<bool>& has_member) {
  std::uint32_t at = root;
  while (tree.contains(at) && !has_member[at]) {
    std::vector<std::uint32_t> below;
    for (const auto& [each, ports] : tree) {
      if (each != at && above[each].at == at) below.push_back(each);
    }
    if (below.size() != 1) return;
    tree.erase(at);
    at = below[0];
    take_port(tree[at], above[at].port);
  }
}

}  // namespace

std::map<std::uint32_t, PortSet> make_tree(const Graph& graph, std::span<const Member> members,
                                           std::uint32_t seed) {
  std::map<std::uint32_t, PortSet> tree;
  if (members.empty()) return tree;
  const std::uint32_t root = root_for(graph, members[0].at, seed);
  const std::vector<Above> above = span_from(graph, root);
  std::vector<bool> has_member(graph.size());
  for (const Member& member : members) {
    if (above[member.at].at == kNone) continue;
    PortSet& own = tree[member.at];
    if (member.receives) put_port(own, member.port);
    has_member[member.at] = true;
    for (std::uint32_t at = member.at; at != root; at = above[at].at) {
      PortSet& upper = tree[above[at].at];
      const PortSet before = upper;
      put_port(upper, above[at].its_port);
      put_port(tree[at], above[at].port);
      if (before == upper && !is_empty(before)) break;
    }
  }
  cut_top(tree, above, root, has_member);
  return tree;
}

}  // namespace ib::sm
