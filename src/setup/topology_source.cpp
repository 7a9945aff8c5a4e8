// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "setup/topology_source.h"

#include "fabric/topology/ibnetdiscover.h"
#include "fabric/topology/ibsim.h"
#include "fabric/topology/presets.h"
#include "setup/file_digest.h"

#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>

namespace ib::softib {
namespace {

namespace fs = std::filesystem;

std::optional<std::string> read_file(const fs::path& path, std::string& reason) {
  std::error_code error;
  const auto size = fs::file_size(path, error);
  if (!error && size > kMostTopologyBytes) {
    reason = fmt::format("{} has {} MiB; a topology file has {} at most", path.string(), size >> 20,
                         kMostTopologyBytes >> 20);
    return std::nullopt;
  }
  std::ifstream file(path, std::ios::binary);
  if (error || !file) {
    reason = fmt::format("cannot read the topology file {}: {}", path.string(),
                         error ? error.message() : "no permission");
    return std::nullopt;
  }
  return std::string(std::istreambuf_iterator<char>(file), {});
}

}  // namespace

Result<fabric::Topology> read_topology(const std::string& source, std::string& reason) {
  if (fabric::is_preset(source)) return fabric::preset_topology(source, reason);
  if (std::error_code error; !fs::exists(source, error)) {
    reason =
        fmt::format("\"{}\" is no topology: there is no file of that name, and the presets are\n{}",
                    source, fabric::kPresetHelp);
    return Status::NotFound;
  }
  const auto text = read_file(source, reason);
  if (!text) return Status::NotFound;
  const fs::path folder = fs::path(source).parent_path();
  const auto include = [&folder](std::string_view name) {
    std::string why;
    return read_file(folder / name, why);
  };
  auto topology = fabric::is_ibnetdiscover(*text) ? fabric::parse_ibnetdiscover(*text, reason)
                                                  : fabric::parse_ibsim(*text, include, reason);
  if (!topology) reason.insert(0, source + ":");
  return topology;
}

std::string absolute_topology(const std::string& source) {
  return fabric::is_preset(source) ? source : fs::absolute(source).string();
}

std::string topology_digest(const std::string& source) {
  return fabric::is_preset(source) ? source : file_digest(source);
}

}  // namespace ib::softib
