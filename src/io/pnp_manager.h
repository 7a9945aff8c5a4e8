// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// PnpManager: finds devices, builds their stacks, takes them away (docs/design/0004).
//
// Every call queues an action; its `done` runs later, on the executor, when the action has ended.
// Nodes are named by id, since they may be gone when the action's turn comes (NotFound).
//
// Thread rule: the executor's thread, dispatch level.
#pragma once

#include "io/device_tree.h"
#include "io/driver_registry.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace ib::io {

class PnpManager {
 public:
  using Done = std::function<void(Status status, const std::string& reason)>;

  PnpManager(DeviceTree& tree, DriverRegistry& drivers) : tree_(tree), drivers_(drivers) {}
  PnpManager(const PnpManager&) = delete;
  PnpManager& operator=(const PnpManager&) = delete;
  ~PnpManager();

  // The root of the tree, by its physical device; then everything below it. Once.
  void begin(std::shared_ptr<DeviceObject> root, Done done);

  // The children of a bus have changed ("invalidate device relations"): queries it, starts the new
  // ones with all below them, and surprise-removes those that are not in its report. Succeeds even
  // if a child did not start: its node shows that. InvalidState: the bus itself is not started. A
  // child whose bus sleeps stays Present and starts after that woke up.
  void enumerate(std::uint64_t bus, Done done);

  // A removal that may be refused: queries all of `tops` and the nodes below them, then removes
  // them, or none after a veto. DeviceBusy: the reason names the objector and its words. They stay
  // in the tree as Removed while their bus reports them; the nodes below them are gone. `before` is
  // called before the query of each of `tops`, when all below it have agreed; `go` goes on.
  class Removal;
  using Before = std::function<void(std::function<void()> go)>;
  std::shared_ptr<Removal> remove(std::vector<std::uint64_t> tops, Done done, Before before = {});
  // Withdraws it if nothing was removed yet: it ends with Cancelled.
  void cancel(Removal& removal);

  // The hardware is gone. Ends when all drivers have handled that; the nodes vanish after their
  // last user.
  void surprise_remove(std::uint64_t top, Done done);

  // Tries again: nodes that are Removed, Failed, without a driver, or Present below a sleeping
  // node. Below a node that sleeps they continue to wait.
  void start(std::vector<std::uint64_t> nodes, Done done);
  // All nodes without a driver: there is a new one.
  void start_driverless(Done done);

 private:
  class Bringing;

  // pnp_removal.cpp
  void query(const std::shared_ptr<Removal>& removal);
  void withdraw(const std::shared_ptr<Removal>& removal);
  void carry_out(const std::shared_ptr<Removal>& removal);
  void finish(const std::shared_ptr<Removal>& removal, Status status, const std::string& reason);
  // Sends SurpriseRemoval to a subtree and moves it aside; children first.
  void surprise(DeviceNode& top, const std::string& why, std::function<void()> then);
  // Sends Remove if drivers are there, then destroys stack and children.
  void take_down(DeviceNode& node, std::function<void()> then);
  void when_idle(std::uint64_t id, std::function<void()> then);
  void watch_leaving();
  void reap();

  DeviceTree& tree_;
  DriverRegistry& drivers_;
  std::unique_ptr<platform::Timer> idle_watch_;
  std::unique_ptr<platform::Timer> watch_;
  Duration watch_delay_{};
};

}  // namespace ib::io
