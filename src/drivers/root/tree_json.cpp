// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "drivers/root/tree_json.h"

#include <nlohmann/json.hpp>

namespace ib::drivers {
namespace {

using Json = nlohmann::ordered_json;

Json node_json(const io::DeviceNode& node) {
  const io::DeviceIds& ids = node.ids();
  Json filters = Json::array();
  for (const auto& device : node.stack()) {
    if (device->kind() == io::DeviceKind::Filter) filters.push_back(device->driver().name);
  }
  Json pids = Json::array();
  for (const io::FileObject* file : node.top().open_files()) pids.push_back(file->client().pid);
  Json json = {{"id", node.path()},
               {"description", ids.description},
               {"location", ids.location},
               {"state", io::node_state_name(node.state())},
               {"driver", nullptr},
               {"filters", std::move(filters)},
               {"power", node.device_power() == io::DevicePower::D0 ? "D0" : "D3"},
               {"system_power", io::system_power_name(node.system_power())},
               {"hardware_ids", ids.hardware},
               {"compatible_ids", ids.compatible},
               {"open_files", std::move(pids)}};
  if (const io::DeviceObject* function = node.function()) {
    json["driver"] = function->driver().name;
    if (const std::string note = function->note(); !note.empty()) json["note"] = note;
  } else if (ids.raw) {
    json["driver"] = node.physical().driver().name;
  }
  if (!node.problem().empty()) json["problem"] = node.problem();
  Json children = Json::array();
  for (const auto& child : node.children()) children.push_back(node_json(*child));
  json["children"] = std::move(children);
  return json;
}

Json drivers_json(const io::DriverRegistry& drivers) {
  Json list = Json::array();
  for (const io::DriverRegistry::Line& line : drivers.list()) {
    const io::DriverInfo& info = *line.info;
    list.push_back({{"name", info.name},
                    {"kind", info.kind == io::DriverKind::Filter ? "filter" : "function"},
                    {"state", io::driver_state_name(line.state)},
                    {"ids", info.ids},
                    {"depends", info.depends},
                    {"references", line.references},
                    {"module", info.module},
                    {"description", info.description}});
  }
  return list;
}

}  // namespace

std::string tree_json(const io::DeviceTree& tree, const io::DriverRegistry& drivers) {
  Json leaving = Json::array();
  for (const auto& top : tree.leaving()) leaving.push_back(node_json(*top));
  Json json = {{"version", 1}};
  json["tree"] = tree.root() != nullptr ? node_json(*tree.root()) : Json(nullptr);
  json["leaving"] = std::move(leaving);
  json["drivers"] = drivers_json(drivers);
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + '\n';
}

}  // namespace ib::drivers
