// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "setup/driver_store.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <system_error>

namespace ib::softib {
namespace {

using Json = nlohmann::json;

bool read_list(const Json& json, const char* key, std::vector<std::string>& list) {
  if (!json.contains(key)) return true;
  const Json& value = json[key];
  const bool texts =
      value.is_array() &&
      std::all_of(value.begin(), value.end(), [](const Json& item) { return item.is_string(); });
  if (texts) list = value.get<std::vector<std::string>>();
  return texts;
}

bool read_text(const Json& json, const char* key, bool required, std::string& text) {
  if (!json.contains(key)) return !required;
  if (!json[key].is_string()) return false;
  text = json[key].get<std::string>();
  return !required || !text.empty();
}

}  // namespace

Result<io::DriverInfo> parse_manifest(const std::string& text, const std::string& folder,
                                      std::string& reason) {
  const Json json = Json::parse(text, nullptr, false);
  const auto malformed = [&reason](const char* what) {
    reason = what;
    return Status::Malformed;
  };
  if (!json.is_object()) return malformed("it is no JSON object");
  io::DriverInfo info;
  std::string kind;
  std::string module;
  if (!read_text(json, "name", true, info.name)) return malformed("\"name\" must be a text");
  if (!read_text(json, "kind", true, kind) || (kind != "function" && kind != "filter")) {
    return malformed("\"kind\" must be \"function\" or \"filter\"");
  }
  if (!read_list(json, "hardware_ids", info.ids) || info.ids.empty()) {
    return malformed("\"hardware_ids\" must be a list of texts that is not empty");
  }
  if (!read_list(json, "depends", info.depends)) {
    return malformed("\"depends\" must be a list of names");
  }
  if (!read_text(json, "description", false, info.description)) {
    return malformed("\"description\" must be a text");
  }
  if (!read_text(json, "module", true, module)) {
    return malformed("\"module\" must be the name of a shared object");
  }
  info.kind = kind == "filter" ? io::DriverKind::Filter : io::DriverKind::Function;
  info.module = (std::filesystem::path(folder) / module).string();
  return info;
}

Result<std::vector<io::DriverInfo>> read_driver_store(const std::string& folder,
                                                      std::vector<std::string>& complaints,
                                                      std::string& reason) {
  std::error_code error;
  std::vector<std::filesystem::path> manifests;
  for (std::filesystem::directory_iterator it(folder, error), end; !error && it != end;
       it.increment(error)) {
    if (it->path().extension() == ".json") manifests.push_back(it->path());
  }
  if (error) {
    reason = "driver store " + folder + ": " + error.message();
    return error == std::errc::no_such_file_or_directory ? Status::NotFound : Status::IoError;
  }
  std::sort(manifests.begin(), manifests.end());  // the same order on every start
  std::vector<io::DriverInfo> drivers;
  for (const std::filesystem::path& path : manifests) {
    std::ifstream file(path);
    const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
    std::string wrong = "cannot be read";
    if (file.good()) {
      auto info = parse_manifest(text, folder, wrong);
      if (info) {
        drivers.push_back(*std::move(info));
        continue;
      }
    }
    complaints.push_back("driver manifest " + path.string() + ": " + wrong);
  }
  return drivers;
}

}  // namespace ib::softib
