// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Where softib's subnet managers are. Each change of links or capabilities of the fabric makes it
// look at all subnets once more; what a manager then does is sm/manager.cpp's.
#include "services/sm/subnet_managers.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

namespace ib::services {

std::vector<sm::MulticastGroup> multicast_groups(const sa::Groups& groups) {
  std::map<std::uint16_t, sm::MulticastGroup> by_lid;
  groups.for_each_member(
      [&](std::uint16_t lid, const verbs::Gid& port_gid, std::uint8_t join_state) {
        namespace bit = sa::join_state;
        sm::MulticastGroup& group = by_lid[lid];
        group.lid = lid;
        const bool receives = (join_state & (bit::kFullMember | bit::kNonMember)) != 0;
        (receives ? group.members : group.senders).push_back(verbs::interface_of(port_gid));
      });
  std::vector<sm::MulticastGroup> all;
  for (auto& [lid, group] : by_lid) all.push_back(std::move(group));
  return all;
}

// A part of the fabric whose ports reach each other, as it is now.
struct SubnetManagers::Place {
  std::optional<std::uint32_t> first_port;   // that can have a manager
  std::uint32_t foreign = fabric::kNoIndex;  // port of a program's manager
  const SmService* manager = nullptr;        // softib's
};

SubnetManagers::SubnetManagers(fabric::Smi& smi, fabric::Fabric& fabric,
                               platform::Executor& executor, SmService::SetIsSm set_is_sm,
                               Options options)
    : smi_(smi),
      fabric_(fabric),
      executor_(executor),
      set_is_sm_(std::move(set_is_sm)),
      options_(std::move(options)) {
  place_soon();
}

bool SubnetManagers::on_smp(std::uint32_t port, const fabric::PacketLids& lids,
                            const mad::Mad& mad) {
  return std::ranges::any_of(managers_,
                             [&](const auto& manager) { return manager->on_smp(port, lids, mad); });
}

// Traps tell a master as well, and later, or get lost.
void SubnetManagers::on_changes(const fabric::PortChanges& changes) {
  namespace change = fabric::change;
  bool looks_everywhere = false;
  bool has_link = false;
  std::vector<std::uint64_t> switches;
  for (const fabric::PortChange& each : changes) {
    if ((each.what & (change::kCapabilities | change::kSegment)) != 0) looks_everywhere = true;
    const fabric::Port& port = *fabric_.graph().port(each.port);
    const bool is_link =
        (each.what & change::kState) != 0 &&
        (port.state == verbs::PortState::Down || each.before == verbs::PortState::Down);
    if (!is_link) continue;
    has_link = true;
    const fabric::Element& element = fabric_.graph().element_of(port);
    if (element.is_switch()) switches.push_back(element.node_guid);
  }
  if (!looks_everywhere && !has_link) return;
  place_soon();
  if (looks_everywhere || switches.empty()) return request_sweep(false);
  for (const auto& manager : managers_) {
    for (const std::uint64_t guid : switches) manager->look_at(guid);
  }
}

void SubnetManagers::place_soon() {
  if (placing_ != nullptr) return;
  placing_ = executor_.at(executor_.now(), [this] {
    const std::unique_ptr<platform::Timer> done = std::move(placing_);
    place();
  });
}

bool SubnetManagers::is_own(std::uint32_t port) const {
  return std::ranges::any_of(managers_,
                             [&](const auto& manager) { return manager->port() == port; });
}

bool SubnetManagers::can_be_at(const fabric::Port& port) const {
  const fabric::Hca* hca = std::as_const(fabric_).hca_of(port);
  return hca != nullptr && hca->present && !hca->asleep && !port.is_ethernet() &&
         fabric_.graph().peer_of(port) != nullptr && port.physical_state == fabric::kLinkUp;
}

const SmService* SubnetManagers::manager_of(const fabric::Port& port) const {
  const fabric::Graph& graph = fabric_.graph();
  const auto found = std::ranges::find_if(managers_, [&](const auto& manager) {
    return graph.reaches(*graph.port(manager->port()), port);
  });
  return found != managers_.end() ? found->get() : nullptr;
}

std::uint8_t SubnetManagers::service_level(const fabric::Port& from, const fabric::Port& to) const {
  const SmService* const service = manager_of(from);
  if (service == nullptr || !service->manager().has_service_levels()) return 0;
  const sm::Manager& manager = service->manager();
  const std::uint32_t here = manager.subnet().find_port(from.guid);
  const std::uint32_t there = manager.subnet().find_port(to.guid);
  if (here == sm::kNone || there == sm::kNone) return 0;
  return manager.service_level(here, there);
}

std::vector<sa::SmInfoRecord> SubnetManagers::managers(const fabric::Port& port) const {
  std::vector<sa::SmInfoRecord> records;
  const auto add = [&](std::uint16_t lid, const sm::SmInfo& info) {
    records.push_back({lid, info.guid, info.sm_key, info.activity,
                       static_cast<std::uint8_t>(info.priority()),
                       static_cast<std::uint8_t>(info.state())});
  };
  const SmService* const service = manager_of(port);
  if (service == nullptr) return records;
  const sm::Manager& manager = service->manager();
  add(fabric_.graph().port(service->port())->lid, manager.info());
  for (const sm::Rival& rival : manager.rivals()) {
    add(manager.subnet().port(rival.port).lid, rival.info);
  }
  return records;
}

void SubnetManagers::place() {
  const fabric::Graph& graph = fabric_.graph();
  std::map<std::uint32_t, Place> places;  // by segment
  for (const std::uint32_t port : fabric_.manager_ports()) {
    if (!is_own(port)) places[graph.segment_of(*graph.port(port))].foreign = port;
  }
  for (std::uint32_t i = 0; i < fabric_.device_port_count(); ++i) {
    const fabric::Port& port = *fabric_.device_port(i);
    if (!can_be_at(port)) continue;
    Place& place = places[graph.segment_of(port)];
    const std::uint32_t index = graph.index_of(port);
    if (!place.first_port && place.foreign != index) place.first_port = index;
  }
  std::vector<std::pair<const SmService*, std::string_view>> leaving;
  for (const auto& manager : managers_) {
    const fabric::Port& port = *graph.port(manager->port());
    Place& place = places[graph.segment_of(port)];
    if (!can_be_at(port)) {
      leaving.emplace_back(manager.get(), "its link is down");
    } else if (place.foreign != fabric::kNoIndex && !options_.priority) {
      leaving.emplace_back(manager.get(), "a program's manager has come");
    } else if (place.manager != nullptr) {
      leaving.emplace_back(manager.get(), "its subnet has another one");
    } else {
      place.manager = manager.get();
    }
  }
  for (const auto& [manager, why] : leaving) leave(*manager, why);
  for (const auto& [segment, place] : places) {
    const bool is_wanted = place.foreign == fabric::kNoIndex || options_.priority;
    if (place.manager == nullptr && place.first_port && is_wanted) begin_at(*place.first_port);
  }
}

void SubnetManagers::leave(const SmService& manager, std::string_view why) {
  const auto at = std::ranges::find(managers_, &manager, &std::unique_ptr<SmService>::get);
  const std::unique_ptr<SmService> leaving = std::move(*at);
  managers_.erase(at);
  if (options_.on_event) {
    options_.on_event(fmt::format("the subnet manager at {} ends: {}",
                                  port_text(fabric_, *fabric_.graph().port(leaving->port())), why));
  }
}

void SubnetManagers::begin_at(std::uint32_t port) {
  SmService::Options options;
  options.port = port;
  options.settings = options_.settings;
  options.settings.priority = options_.priority.value_or(0);
  options.random = options_.random();
  managers_.push_back(std::make_unique<SmService>(smi_, fabric_, executor_, set_is_sm_, options));
  managers_.back()->set_groups(groups_);
  if (options_.on_event) {
    options_.on_event(fmt::format("a subnet manager begins at {}",
                                  port_text(fabric_, *fabric_.graph().port(port))));
  }
}

void SubnetManagers::make_room_at(const fabric::Port& port) {
  for (const auto& manager : managers_) {
    if (manager->port() != fabric_.graph().index_of(port)) continue;
    return leave(*manager, "a program's manager comes to its port");
  }
}

void SubnetManagers::set_groups(std::vector<sm::MulticastGroup> groups) {
  groups_ = std::move(groups);
  for (const auto& manager : managers_) manager->set_groups(groups_);
}

void SubnetManagers::request_sweep(bool is_full) {
  for (const auto& manager : managers_) manager->request_sweep(is_full);
}

bool SubnetManagers::is_settled() const {
  return placing_ == nullptr && std::ranges::all_of(managers_, [](const auto& service) {
           return service->manager().is_settled() ||
                  service->manager().state() == sm::SmState::Standby;
         });
}

void SubnetManagers::set_priority(std::optional<std::uint8_t> priority) {
  options_.priority = priority;
  for (const auto& manager : managers_) manager->set_priority(priority.value_or(0));
  place_soon();
}

}  // namespace ib::services
