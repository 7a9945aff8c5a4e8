// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "setup/fabric_shape.h"

#include "fabric/model.h"
#include "hca/layout/tables.h"
#include "setup/cli_error.h"
#include "setup/file_digest.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <set>
#include <string_view>

namespace ib::softib {
namespace {

bool is_number(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

std::optional<std::uint32_t> to_number(std::string_view text) {
  std::uint32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

bool is_node_name(std::string_view name) {
  const bool clean = std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-' || c == '.';
  });
  // A name of digits looks like a number; the control messages carry 63 characters.
  return clean && !name.empty() && name.size() <= 63 && name[0] != '-' && !is_number(name);
}

}  // namespace

std::vector<std::string> FabricShape::node_names() const {
  return nodes.empty() ? std::vector<std::string>{"node0"} : nodes;
}

std::vector<std::string> parse_nodes(const std::string& text) {
  std::vector<std::string> names;
  if (is_number(text)) {
    const std::optional<std::uint32_t> count = to_number(text);
    if (!count || *count == 0 || *count > fabric::kMaxNodes) {
      throw CliError(Exit::Usage, fmt::format("--nodes {}: a fabric has 1 to {} nodes", text,
                                              fabric::kMaxNodes));
    }
    for (std::uint32_t i = 0; i < *count; ++i) names.push_back(fmt::format("node{}", i));
    return names;
  }
  std::set<std::string> seen;
  std::size_t start = 0;
  while (start <= text.size()) {
    const std::size_t end = std::min(text.find(',', start), text.size());
    std::string name = text.substr(start, end - start);
    start = end + 1;
    if (!is_node_name(name)) {
      throw CliError(
          Exit::Usage,
          fmt::format("--nodes \"{}\": \"{}\" is no node name; use a number of nodes, or "
                      "names of letters, digits, '_', '-', '.' separated by commas",
                      text, name));
    }
    if (!seen.insert(name).second) {
      throw CliError(Exit::Usage, fmt::format("--nodes {}: \"{}\" is there twice", text, name));
    }
    names.push_back(std::move(name));
  }
  if (names.size() > fabric::kMaxNodes) {
    throw CliError(Exit::Usage, fmt::format("--nodes: {} names; a fabric has 1 to {} nodes",
                                            names.size(), fabric::kMaxNodes));
  }
  return names;
}

std::uint64_t parse_memory_size(const std::string& text) {
  const auto wrong = [&text](const char* what) {
    return CliError(Exit::Usage,
                    fmt::format("--max-memory: \"{}\" {}; say 512M or 4G, from {}M to {}G", text,
                                what, kLeastMemory >> 20, hca::kArenaSpace >> 30));
  };
  std::uint64_t value = 0;
  const char* const last = text.data() + text.size();
  const auto [end, error] = std::from_chars(text.data(), last, value);
  if (end == text.data()) throw wrong("is no size");
  std::string unit(end, last);
  std::transform(unit.begin(), unit.end(), unit.begin(), [](char c) {
    return static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  });
  constexpr std::string_view kLetters = "kmgt";
  unsigned shift = 0;
  if (const std::size_t at = unit.empty() ? std::string::npos : kLetters.find(unit.front());
      at != std::string::npos) {
    shift = 10 * (static_cast<unsigned>(at) + 1);
    unit.erase(0, 1);
  }
  if (!unit.empty() && unit != "b" && !(shift != 0 && unit == "ib")) throw wrong("is no size");
  if (error != std::errc{} || value > (hca::kArenaSpace >> shift)) throw wrong("is too much");
  if ((value << shift) < kLeastMemory) throw wrong("is too little");
  return value << shift;
}

std::string names_digest(const std::vector<std::string>& names) {
  std::uint64_t digest = digest_of({});
  for (const std::string& name : names) digest = digest_of(name + '\n', digest);
  return fmt::format("{:016x}", digest);
}

std::optional<std::uint32_t> node_number(const std::string& wanted) {
  return is_number(wanted) ? to_number(wanted) : std::nullopt;
}

std::string find_node(const std::vector<std::string>& nodes, const std::string& wanted,
                      const std::string& fabric) {
  if (wanted.empty() && !nodes.empty()) return nodes.front();
  if (std::find(nodes.begin(), nodes.end(), wanted) != nodes.end()) return wanted;
  const std::optional<std::uint32_t> number = node_number(wanted);
  if (number && *number < nodes.size()) return nodes[*number];
  constexpr std::size_t kShown = 16;
  const std::size_t shown = std::min(kShown, nodes.size());
  const std::vector<std::string> first(nodes.begin(),
                                       nodes.begin() + static_cast<std::ptrdiff_t>(shown));
  throw CliError(Exit::NotFound,
                 fmt::format("fabric \"{}\" has no node \"{}\"; it has {}: {}{} (numbers 0 to {})",
                             fabric, wanted, nodes.size(), fmt::join(first, ", "),
                             shown < nodes.size() ? ", ..." : "", nodes.size() - 1));
}

}  // namespace ib::softib
