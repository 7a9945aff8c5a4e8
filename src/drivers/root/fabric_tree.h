// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// FabricTree: the device tree of softibd (docs/design/0004): its drivers, the PnP and power
// managers, the names; and the requests of tools.
//
// Thread rule: the executor's thread. `done` of a call is called later, on the executor.
#pragma once

#include "drivers/ib_bus/ib_bus.h"
#include "drivers/root/host_devices.h"
#include "drivers/root/softib_bus.h"
#include "drivers/soft_hca/soft_hca.h"
#include "io/driver_registry.h"
#include "io/object_namespace.h"
#include "io/pnp_manager.h"
#include "io/power_manager.h"
#include "platform/module_host.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace ib::drivers {

struct FabricTreeOptions {
  std::vector<PortChild> children{default_port_child()};
  std::vector<io::DriverInfo> modules;     // of the driver store
  platform::ModuleHost* loader = nullptr;  // null: no modules can be loaded
  std::uint64_t network_namespace = 0;     // in which this process runs; 0: not known
  // Of WhenWanted nobody can tell the difference as long as there are no modules: softib's own
  // drivers only answer. Modules may do more, at each of their devices.
  DeviceMaking making = DeviceMaking::AtStart;
};

class FabricTree {
 public:
  using Done = io::PnpManager::Done;

  // Borrows the HCAs' driver. AlreadyExists: two drivers of one name.
  static Result<std::unique_ptr<FabricTree>> create(SoftHca& hcas, FabricTreeOptions options,
                                                    std::string& reason);
  ~FabricTree();  // no file is open, shut_down() is done or begin() was not called

  // Sets DriverObject::services of the drivers that are loaded from now on.
  void set_services(io::TypedPointer services) { drivers_.set_services(services); }

  // Called before the query-remove of an HCA, when its children have agreed; `go` goes on with it.
  // And when the removal has ended, in whatever way. softibd's own services keep the HCA closed in
  // between.
  struct RemovalHooks {
    std::function<void(const fabric::Hca& hca, std::function<void()> go)> before{};
    std::function<void(const fabric::Hca& hca)> after{};
  };
  void set_removal_hooks(RemovalHooks hooks) { removal_hooks_ = std::move(hooks); }

  // Gives the device of file 0 its name; borrowed for as long as the tree lives.
  Status name_root(io::DeviceObject& device);
  // Starts everything that is there.
  void begin(std::function<void()> ready);
  // Of hosts whose devices were not made there is nothing in the tree.
  HostDevices& hosts() { return hosts_; }
  // Devices with files that are open, by id; empty: none.
  std::string open_devices() const;
  // Powers all down, despite objections; nothing is under way afterwards.
  void shut_down(std::function<void()> done);

  // The top of the stack that this name opens on a host.
  Result<io::DeviceObject*> resolve(std::string_view host, std::string_view path,
                                    std::string& reason) const {
    return names_.open(host, path, reason);
  }
  const io::ObjectNamespace& names() const { return names_; }
  io::DeviceNode* node_of(const fabric::Hca& hca) const;  // nullptr: it is not there
  // For the verifier: references of drivers that are left although all is shut down, in words.
  std::vector<std::string> kept_references() const;
  std::string devices_json() const;  // docs/status_json.md has the keys

  // The next ones are for hosts whose devices were made.

  // Plugs an HCA in: the one that is named and out, any that is out, or a new one. NotFound,
  // AlreadyExists, LimitExceeded, InvalidState (the host sleeps).
  Result<fabric::Hca*> add_hca(fabric::Node& node, std::string_view name, std::string& reason,
                               Done done);
  void remove_hca(fabric::Node& node, fabric::Hca& hca, Done done);
  void eject_hca(fabric::Node& node, fabric::Hca& hca, Done done);

  void add_partition(fabric::Hca& hca, fabric::Port& port, std::uint16_t pkey,
                     std::string_view name, Done done);
  void remove_partition(fabric::Hca& hca, fabric::Port& port, std::uint16_t pkey, const Done& done);

  // Of one host, or of all (nullptr), whose devices were made.
  void set_power(const fabric::Node* node, io::SystemPower state, Done done);

  void load_driver(std::string_view name, Done done);
  // Removes its devices first; after a veto nothing has changed. Its devices are without a driver
  // then, or get another one.
  void unload_driver(std::string_view name, Done done);

  Core& core() { return hcas_.core(); }
  SoftHca& hcas() { return hcas_; }
  // The one in which softibd runs; 0: not known.
  std::uint64_t network_namespace() const { return network_namespace_; }

 private:
  FabricTree(SoftHca& hcas, FabricTreeOptions options);
  Status build(std::vector<io::DriverInfo> modules, std::string& reason);
  bool is_awake(std::string& reason) const;
  void ask_host(const fabric::Node& node, Done done);
  void ask_if_started(const io::DeviceNode& bus, Done done);
  void remove_users(const std::string& name, std::vector<std::uint64_t> removed, Done done);
  void finish_unload(const std::string& name, const std::vector<std::uint64_t>& removed,
                     const Done& done);

  SoftHca& hcas_;
  std::uint64_t network_namespace_;
  DeviceMaking making_;
  io::ObjectNamespace names_;
  SoftibBus bus_;
  IbBus ib_bus_;
  io::DriverRegistry drivers_;
  io::DeviceTree tree_;
  io::PnpManager pnp_;
  io::PowerManager power_;
  HostDevices hosts_;
  RemovalHooks removal_hooks_;
};

}  // namespace ib::drivers
