// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// SubnetManagers: softib's own subnet managers, one in each subnet that has cables, each at the
// first port of a channel adapter whose link is up; a part that is cut off gets its own. They
// follow the fabric: where cables join two subnets one manager stays, and one whose port goes down
// is begun again at another port.
//
// Without a priority they give way to managers that programs run: theirs leaves a subnet as soon as
// a program's is there, and comes back when that has gone. With one they stay and take part in the
// election [IBA1 14.4.1].
//
// Thread rule: the executor's thread, dispatch level.
#pragma once

#include "sa/server/groups.h"
#include "services/sa/fabric_topology.h"
#include "services/sm/sm_service.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ib::services {

// The groups of the subnet administrator, for the managers that write multicast tables.
std::vector<sm::MulticastGroup> multicast_groups(const sa::Groups& groups);

class SubnetManagers final : public LocalManager, public ManagerView {
 public:
  struct Options {
    sm::Settings settings{};                         // but for the priority
    std::optional<std::uint8_t> priority{};          // 0 to 15
    std::function<std::uint32_t()> random;           // a seed for each manager
    std::function<void(std::string_view)> on_event;  // a line for the log
  };
  SubnetManagers(fabric::Smi& smi, fabric::Fabric& fabric, platform::Executor& executor,
                 SmService::SetIsSm set_is_sm, Options options);
  SubnetManagers(const SubnetManagers&) = delete;
  SubnetManagers& operator=(const SubnetManagers&) = delete;
  ~SubnetManagers() override = default;

  // LocalManager
  bool on_smp(std::uint32_t port, const fabric::PacketLids& lids, const mad::Mad& mad) override;

  // ManagerView
  std::uint8_t service_level(const fabric::Port& from, const fabric::Port& to) const override;
  std::vector<sa::SmInfoRecord> managers(const fabric::Port& port) const override;

  // Ports have changed. Managers come and go soon after, not in the call.
  void on_changes(const fabric::PortChanges& changes);
  // A program is about to set IsSM of this port, where there can be one manager only.
  void make_room_at(const fabric::Port& port);

  // Multicast groups as they are to be from now on. Settled managers have written them then.
  void set_groups(std::vector<sm::MulticastGroup> groups);
  void request_sweep(bool is_full);
  void set_priority(std::optional<std::uint8_t> priority);
  std::optional<std::uint8_t> priority() const { return options_.priority; }

  const std::vector<std::unique_ptr<SmService>>& all() const { return managers_; }
  bool is_own(std::uint32_t port) const;  // one of them is at this port of the graph
  // Whether each of them that is a master has set up all that it has found.
  bool is_settled() const;

 private:
  struct Place;

  void place_soon();
  void place();
  void leave(const SmService& manager, std::string_view why);
  void begin_at(std::uint32_t port);
  bool can_be_at(const fabric::Port& port) const;
  // The one in the part of the fabric that the port is in.
  const SmService* manager_of(const fabric::Port& port) const;

  fabric::Smi& smi_;
  fabric::Fabric& fabric_;
  platform::Executor& executor_;
  SmService::SetIsSm set_is_sm_;
  Options options_;
  std::vector<sm::MulticastGroup> groups_;
  std::vector<std::unique_ptr<SmService>> managers_;
  std::unique_ptr<platform::Timer> placing_;
};

}  // namespace ib::services
