// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "softibd/manager_requests.h"

#include <fmt/format.h>

namespace ib::softib {
namespace {

using Json = nlohmann::ordered_json;
using verbs::control::SmAction;

constexpr std::uint32_t kMostPriority = 15;  // four bits of SMInfo

Json place_json(const fabric::Fabric& fabric, const fabric::Port& port) {
  const fabric::Hca* hca = fabric.hca_of(port);
  return {{"node", fabric.node_of(*hca).name},
          {"hca", hca->name},
          {"port", port.number},
          {"lid", port.lid},
          {"port_guid", fmt::format("{:#018x}", port.guid)}};
}

Json manager_json(const fabric::Fabric& fabric, const services::SmService& service) {
  const sm::Manager& manager = service.manager();
  std::size_t nodes = 0;
  for (const sm::Node& node : manager.subnet().nodes()) nodes += node.is_there ? 1 : 0;
  const std::size_t switches = manager.subnet().switch_count();
  Json json = place_json(fabric, *fabric.graph().port(service.port()));
  json["state"] = state_name(manager.state());
  json["settled"] = manager.is_settled();
  json["sweeps"] = manager.generation();
  json["routing"] = manager.routing();
  json["switches"] = switches;
  json["adapters"] = nodes - switches;
  json["problems"] = Json::array();
  for (const sm::Problem& problem : manager.problems().all()) {
    json["problems"].push_back(problem.text);
  }
  json["problems_left_out"] = manager.problems().left_out();
  return json;
}

}  // namespace

Status carry_out(const verbs::control::SmIn& in, services::SubnetManagers& managers,
                 std::string& reason) {
  switch (in.action) {
    case SmAction::Show: return Status::Ok;
    case SmAction::LightSweep: managers.request_sweep(false); return Status::Ok;
    case SmAction::FullSweep: managers.request_sweep(true); return Status::Ok;
    case SmAction::GiveWay: managers.set_priority(std::nullopt); return Status::Ok;
    case SmAction::SetPriority:
      if (in.priority > kMostPriority) {
        reason = fmt::format("priority {}: 0 to {} are possible", in.priority, kMostPriority);
        return Status::InvalidParameter;
      }
      managers.set_priority(static_cast<std::uint8_t>(in.priority));
      return Status::Ok;
  }
  reason = fmt::format("action {} is unknown", static_cast<std::uint32_t>(in.action));
  return Status::InvalidParameter;
}

Json managers_json(const fabric::Fabric& fabric, const services::SubnetManagers& managers) {
  Json json = {{"priority", nullptr}, {"managers", Json::array()}, {"programs", Json::array()}};
  if (managers.priority()) json["priority"] = *managers.priority();
  for (const auto& service : managers.all()) {
    json["managers"].push_back(manager_json(fabric, *service));
  }
  for (const std::uint32_t port : fabric.manager_ports()) {
    if (!managers.is_own(port))
      json["programs"].push_back(place_json(fabric, *fabric.graph().port(port)));
  }
  return json;
}

}  // namespace ib::softib
