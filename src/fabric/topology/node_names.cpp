// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "fabric/topology/node_names.h"

#include <algorithm>
#include <cstddef>
#include <string_view>
#include <unordered_set>

namespace ib::fabric {
namespace {

constexpr std::size_t kLongest = 63;  // control messages carry so much

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

// Of letters, digits, '-', '_' and '.', and no number.
bool is_host(std::string_view name) {
  return !name.empty() && name.size() <= kLongest && name[0] != '-' &&
         std::ranges::all_of(name,
                             [](char c) {
                               return is_letter(c) || is_digit(c) || c == '-' || c == '_' ||
                                      c == '.';
                             }) &&
         !std::ranges::all_of(name, is_digit);
}

// HCA-1, HCA1, mlx5_0, softib12: how a host names one of its adapters.
bool is_device(std::string_view name) {
  const auto last = name.find_last_not_of("0123456789");
  return last != std::string_view::npos && last + 1 < name.size() &&
         std::ranges::all_of(
             name, [](char c) { return is_letter(c) || is_digit(c) || c == '-' || c == '_'; });
}

// Empty: the description names no host.
std::string_view host_in(std::string_view description) {
  const std::size_t blank = description.find(' ');
  if (blank == std::string_view::npos) return {};
  const std::string_view host = description.substr(0, blank);
  return is_host(host) && is_device(description.substr(blank + 1)) ? host : std::string_view{};
}

}  // namespace

std::vector<std::string> node_names(const Topology& topology) {
  std::vector<std::string> names;
  std::unordered_set<std::string> taken;
  for (const TopologyElement& element : topology.elements) {
    if (element.is_switch()) continue;
    names.emplace_back(host_in(element.description));
    if (!names.back().empty()) taken.insert(names.back());
  }
  std::size_t next = 0;
  for (std::string& name : names) {
    while (name.empty()) {
      std::string candidate = "node" + std::to_string(next++);
      if (taken.insert(candidate).second) name = std::move(candidate);
    }
  }
  return names;
}

std::vector<std::string> nodes_of(const Topology& topology) {
  std::vector<std::string> nodes;
  std::unordered_set<std::string> seen;
  for (std::string& name : node_names(topology)) {
    if (seen.insert(name).second) nodes.push_back(std::move(name));
  }
  return nodes;
}

}  // namespace ib::fabric
