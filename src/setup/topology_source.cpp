// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "setup/topology_source.h"

#include "fabric/topology/ibnetdiscover.h"
#include "fabric/topology/ibsim.h"
#include "fabric/topology/presets.h"
#include "fabric/topology/subnet_list.h"
#include "fabric/topology/system_topology.h"
#include "setup/file_digest.h"
#include "setup/toml_topology.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <vector>

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

// The products that a topology file of ibutils is made of: the IBNL files of $IBDM_IBNL_PATH, as
// ibutils has it, or else those beside the file.
Result<fabric::SystemLibrary> read_library(const fs::path& folder, std::string& reason) {
  const char* path = std::getenv("IBDM_IBNL_PATH");
  const fs::path where = path != nullptr && *path != '\0' ? fs::path(path) : folder;
  std::vector<fs::path> files;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(where, error)) {
    if (entry.path().extension() == ".ibnl") files.push_back(entry.path());
  }
  std::ranges::sort(files);  // the same one counts on each machine if two have a product
  fabric::SystemLibrary library;
  for (const fs::path& file : files) {
    const auto text = read_file(file, reason);
    if (!text) return Status::NotFound;
    IB_CHECK(library.add(*text, file.string(), reason));
  }
  return library;
}

// By what is in it, as far as that tells: the topology files of ibutils, and those in TOML, are
// known by their names.
Result<fabric::Topology> parse_topology(const fs::path& path, const std::string& text,
                                        std::string& reason) {
  const fs::path folder = path.parent_path().empty() ? fs::path(".") : path.parent_path();
  if (path.extension() == ".topo" && !fabric::is_ibnetdiscover(text)) {
    auto library = read_library(folder, reason);
    if (!library) return library.error();
    return fabric::parse_system_topology(text, *library, reason);
  }
  if (path.extension() == ".toml") return parse_toml_topology(text, reason);
  if (fabric::is_subnet_list(text)) return fabric::parse_subnet_list(text, reason);
  if (fabric::is_ibnetdiscover(text)) return fabric::parse_ibnetdiscover(text, reason);
  const auto include = [&folder](std::string_view name) {
    std::string why;
    return read_file(folder / name, why);
  };
  return fabric::parse_ibsim(text, include, reason);
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
  auto topology = parse_topology(source, *text, reason);
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
