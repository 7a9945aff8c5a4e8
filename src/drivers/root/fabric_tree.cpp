// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "drivers/root/fabric_tree.h"

#include "drivers/ib_bus/pkey_table.h"
#include "drivers/root/tree_json.h"
#include "drivers/soft_hca/hca_device.h"
#include "drivers/soft_hca/objects/traffic.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace ib::drivers {
namespace {

std::string host_sleeps(const fabric::Node& node) {
  return fmt::format("host {} sleeps; `softib power resume` first", node.name);
}

}  // namespace

FabricTree::FabricTree(SoftHca& hcas, FabricTreeOptions options)
    : hcas_(hcas),
      network_namespace_(options.network_namespace),
      making_(options.making),
      ib_bus_(hcas.core(), names_, std::move(options.children)),
      drivers_(hcas.core().executor, options.loader),
      tree_(hcas.core().executor,
            [&core = hcas.core()](const std::string& line) {
              const bool is_step = line.find(" -> ") != std::string::npos;
              core.trace.add("pnp: " + line, is_step ? TraceKind::Device : TraceKind::Change);
            }),
      pnp_(tree_, drivers_),
      power_(tree_, pnp_),
      hosts_(hcas.core().fabric, bus_, names_, tree_, pnp_) {}

FabricTree::~FabricTree() = default;

Result<std::unique_ptr<FabricTree>> FabricTree::create(SoftHca& hcas, FabricTreeOptions options,
                                                       std::string& reason) {
  std::vector<io::DriverInfo> modules = std::move(options.modules);
  std::unique_ptr<FabricTree> self(new FabricTree(hcas, std::move(options)));
  IB_CHECK(self->build(std::move(modules), reason));
  return self;
}

Status FabricTree::build(std::vector<io::DriverInfo> modules, std::string& reason) {
  IB_CHECK(names_.add_directory("", "\\Device"));
  IB_CHECK(names_.add_link("", "\\??", "\\Device"));
  const std::vector<std::string> hca_ids{"SOFTIB\\HCA"};
  IB_CHECK(drivers_.add({"soft_hca", io::DriverKind::Function, hca_ids, {}, "software HCA", {}},
                        hcas_.entry(), reason));
  IB_CHECK(drivers_.add(
      {"ib_bus", io::DriverKind::Filter, hca_ids, {"soft_hca"}, "InfiniBand access layer", {}},
      ib_bus_.entry(), reason));
  for (io::DriverInfo& module : modules) {
    IB_CHECK(drivers_.add(std::move(module), nullptr, reason));
  }
  return Status::Ok;
}

Status FabricTree::name_root(io::DeviceObject& device) {
  return names_.add_device("", "\\Device\\softib", device);
}

void FabricTree::begin(std::function<void()> ready) {
  if (making_ == DeviceMaking::AtStart) {
    hosts_.add_all();
  } else {
    publish_all(core());
  }
  pnp_.begin(bus_.root(), [ready = std::move(ready)](Status, const std::string&) { ready(); });
}

std::string FabricTree::open_devices() const {
  std::string found;
  (void)tree_.find_if([&found](const io::DeviceNode& node) {
    if (node.has_open_files()) found += (found.empty() ? "" : ", ") + node.path();
    return false;
  });
  return found;
}

void FabricTree::shut_down(std::function<void()> done) {
  if (tree_.root() == nullptr) return done();
  // Already shut down: as good.
  power_.set(
      tree_.root()->id(), io::SystemPower::Shutdown,
      [this, done = std::move(done)](Status, const std::string&) { core().executor.post(done); });
}

io::DeviceNode* FabricTree::node_of(const fabric::Hca& hca) const {
  const io::DeviceObject* physical = bus_.physical(hca);
  if (physical == nullptr) return nullptr;
  return tree_.find_if(
      [physical](const io::DeviceNode& node) { return &node.physical() == physical; });
}

std::string FabricTree::devices_json() const {
  return tree_json(tree_, drivers_);
}

std::vector<std::string> FabricTree::kept_references() const {
  std::vector<std::string> lines;
  for (const auto& line : drivers_.list()) {
    if (line.state == io::DriverState::Unloading) {
      lines.push_back(fmt::format("driver {} still has {}", line.info->name, line.references));
    }
    const io::DriverObject* driver = drivers_.find_loaded(line.info->name);
    if (driver == nullptr) continue;
    const io::DriverReferences& held = driver->references;
    const bool idle = held.of(io::DriverUse::Call) == 0 && held.of(io::DriverUse::Callback) == 0 &&
                      held.of(io::DriverUse::Client) == 0;
    if (!idle) lines.push_back(fmt::format("driver {} still has {}", driver->name, held.text()));
  }
  return lines;
}

void FabricTree::ask_host(const fabric::Node& node, Done done) {
  pnp_.enumerate(hosts_.node_of(node)->id(), std::move(done));
}

// The HCA that is plugged in is another device than the one that was here: its cables are in, and
// nothing went through its ports yet.
static void renew_ports(Core& core, fabric::Hca& hca) {
  // One that was new when its host fell asleep never got as far as to have counters.
  core.port_totals.resize(core.fabric.device_port_count());
  for (fabric::Port& port : hca.ports) {
    port.state = verbs::PortState::Active;
    port.physical_state = fabric::kLinkUp;
    core.fabric.set_capabilities(port, fabric::default_capabilities(port.link_layer));
    forget_traffic(core, port.device_index);
  }
}

Result<fabric::Hca*> FabricTree::add_hca(fabric::Node& node, std::string_view name,
                                         std::string& reason, Done done) {
  if (hosts_.node_of(node)->system_power() != io::SystemPower::Working) {
    reason = host_sleeps(node);
    return Status::InvalidState;
  }
  const auto is_out = [&](const fabric::Hca& hca) { return bus_.physical(hca) == nullptr; };
  const auto wanted = std::find_if(node.hcas.begin(), node.hcas.end(), [&](const fabric::Hca& hca) {
    return name.empty() ? is_out(hca) : hca.name == name;
  });
  fabric::Hca* hca = wanted == node.hcas.end() ? nullptr : &*wanted;
  if (hca == nullptr && !name.empty() && name != fmt::format("softib{}", node.hcas.size())) {
    reason = fmt::format("host {} has had no HCA {}; the next new one is softib{}", node.name, name,
                         node.hcas.size());
    return Status::NotFound;
  }
  if (hca == nullptr) {
    const auto made = core().fabric.add_hca(node);
    if (!made) {
      reason = node.hcas.size() >= fabric::kMaxHcasPerNode
                   ? fmt::format("host {} has {} HCAs, the most it can", node.name,
                                 fabric::kMaxHcasPerNode)
                   : fmt::format("the fabric has {} ports: all unicast LIDs are in use",
                                 core().fabric.graph().port_count());
      return made.error();
    }
    hca = *made;
  } else if (!is_out(*hca)) {
    reason = fmt::format("HCA {} of host {} is plugged in already", name, node.name);
    return Status::AlreadyExists;
  } else {
    renew_ports(core(), *hca);
  }
  bus_.plug(node, *hca);
  core().trace.add(fmt::format("HCA {} of {} is plugged in", hca->name, node.name));
  ask_host(node, [this, &node, hca, done = std::move(done)](Status status, const std::string& why) {
    const io::DeviceNode* made = node_of(*hca);
    if (made != nullptr && made->state() == io::NodeState::Present) {  // the host fell asleep first
      bus_.unplug(node, *hca);
      return ask_host(node, [done, reason = host_sleeps(node)](Status, const std::string&) {
        done(Status::InvalidState, reason);
      });
    }
    if (status == Status::Ok && (made == nullptr || !made->is_started())) {
      return done(Status::DeviceRemoved, made == nullptr ? "it was pulled out again"
                                                         : "it did not start: " + made->problem());
    }
    done(status, why);
  });
  return hca;
}

void FabricTree::remove_hca(fabric::Node& node, fabric::Hca& hca, Done done) {
  io::DeviceNode* device = node_of(hca);
  if (device == nullptr) {
    return done(Status::NotFound,
                fmt::format("HCA {} of host {} is not there", hca.name, node.name));
  }
  const auto removed = [this, &node, &hca, done = std::move(done)](Status status,
                                                                   const std::string& reason) {
    if (status == Status::Ok) bus_.unplug(node, hca);
    if (removal_hooks_.after) removal_hooks_.after(hca);
    status == Status::Ok ? ask_host(node, done) : done(status, reason);
  };
  // The children's drivers may still send what ends their connections.
  pnp_.remove({device->id()}, removed, [this, &hca](std::function<void()> go) {
    removal_hooks_.before ? removal_hooks_.before(hca, std::move(go)) : go();
  });
}

void FabricTree::eject_hca(fabric::Node& node, fabric::Hca& hca, Done done) {
  if (bus_.physical(hca) == nullptr) {
    return done(Status::NotFound,
                fmt::format("HCA {} of host {} is not there", hca.name, node.name));
  }
  bus_.unplug(node, hca);
  ask_host(node, std::move(done));
}

// A bus that is not started, or goes before its turn comes, is queried when it starts.
void FabricTree::ask_if_started(const io::DeviceNode& bus, Done done) {
  pnp_.enumerate(bus.id(), [done = std::move(done)](Status status, const std::string& reason) {
    const bool asked = status != Status::InvalidState && status != Status::NotFound;
    asked ? done(status, reason) : done(Status::Ok, {});
  });
}

void FabricTree::add_partition(fabric::Hca& hca, fabric::Port& port, std::uint16_t pkey,
                               std::string_view name, Done done) {
  std::string reason;
  const Status added = drivers::add_partition(core(), hca, port, pkey, name, reason);
  if (added != Status::Ok) return done(added, reason);
  const io::DeviceNode* device = node_of(hca);
  if (device == nullptr) return done(Status::Ok, {});  // its children come when it does
  ask_if_started(*device, std::move(done));
}

void FabricTree::remove_partition(fabric::Hca& hca, fabric::Port& port, std::uint16_t pkey,
                                  const Done& done) {
  std::string reason;
  const Status allowed = may_remove_partition(core(), hca, port, pkey, reason);
  if (allowed != Status::Ok) return done(allowed, reason);
  const auto go = [this, &hca, &port, pkey, done](Status status, const std::string& why) {
    if (status != Status::Ok) return done(status, why);
    drivers::remove_partition(core(), hca, port, pkey);
    const io::DeviceNode* device = node_of(hca);
    if (device == nullptr) return done(Status::Ok, {});
    ask_if_started(*device, done);
  };
  const io::DeviceNode* device = node_of(hca);
  if (device == nullptr) return go(Status::Ok, {});
  const auto partition = std::find_if(port.partitions.begin(), port.partitions.end(),
                                      [&](const fabric::Partition& p) { return p.pkey == pkey; });
  const std::string instance = fmt::format("-{:04x}-{}", pkey, partition->name);
  const auto& children = device->children();
  const auto child = std::find_if(children.begin(), children.end(), [&](const auto& c) {
    return c->ids().instance.ends_with(instance) &&
           c->ids().location.ends_with(fmt::format("port {}", port.number));
  });
  if (child == children.end()) return go(Status::Ok, {});
  pnp_.remove({(*child)->id()}, go);
}

void FabricTree::set_power(const fabric::Node* node, io::SystemPower state, Done done) {
  const io::DeviceNode* top = node != nullptr ? hosts_.node_of(*node) : tree_.root();
  power_.set(top->id(), state, std::move(done));
}

// Whether drivers may change. A request just before the system falls asleep is not refused: the
// devices that it starts wait for the resume (io/pnp_manager.h).
bool FabricTree::is_awake(std::string& reason) const {
  const io::DeviceNode* asleep = tree_.find_if(
      [](const io::DeviceNode& node) { return node.system_power() != io::SystemPower::Working; });
  if (asleep != nullptr)
    reason = fmt::format("{} sleeps; `softib power resume` first", asleep->path());
  return asleep == nullptr;
}

void FabricTree::load_driver(std::string_view name, Done done) {
  std::string asleep;
  if (!is_awake(asleep)) return done(Status::InvalidState, asleep);
  drivers_.load(name, [this, done = std::move(done)](Status status, const std::string& reason) {
    if (status != Status::Ok) return done(status, reason);
    pnp_.start_driverless(done);
  });
}

void FabricTree::unload_driver(std::string_view name, Done done) {
  std::string reason;
  if (!is_awake(reason)) return done(Status::InvalidState, reason);
  const Status allowed = drivers_.may_unload(name, reason);
  if (allowed != Status::Ok) return done(allowed, reason);
  remove_users(std::string(name), {}, std::move(done));
}

// Repeats until no device uses it: one that was queued before us may start with it meanwhile.
void FabricTree::remove_users(const std::string& name, std::vector<std::uint64_t> removed,
                              Done done) {
  const io::DriverObject* driver = drivers_.find_loaded(name);
  std::vector<std::uint64_t> users;
  for (const std::uint64_t id :
       io::DeviceTree::ids_of(*tree_.root(), io::DeviceTree::Order::ParentsFirst)) {
    if (driver != nullptr && tree_.find(id)->uses(*driver)) users.push_back(id);
  }
  if (users.empty()) return finish_unload(name, removed, done);
  pnp_.remove(users, [this, name, users, removed = std::move(removed), done = std::move(done)](
                         Status status, const std::string& why) mutable {
    if (status == Status::Ok) removed.insert(removed.end(), users.begin(), users.end());
    const bool goes_on = status == Status::Ok || status == Status::NotFound;  // it was pulled out
    if (goes_on) return remove_users(name, std::move(removed), std::move(done));
    if (removed.empty()) return done(status, why);
    pnp_.start(std::move(removed),
               [status, why, done](Status, const std::string&) { done(status, why); });
  });
}

// Whether it worked or not: what was removed for it is started again, with whatever drivers there
// are.
void FabricTree::finish_unload(const std::string& name, const std::vector<std::uint64_t>& removed,
                               const Done& done) {
  drivers_.unload(name, [this, removed, done](Status status, const std::string& reason) {
    pnp_.start(removed,
               [status, reason, done](Status, const std::string&) { done(status, reason); });
  });
}

}  // namespace ib::drivers
