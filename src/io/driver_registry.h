// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// DriverRegistry: the drivers of a fabric, the devices that each is for, and their life: available,
// loaded on demand with the drivers that it depends on, unloaded on request (docs/design/0004).
//
// A DriverObject is never freed before the registry is: the holder that drops the last reference
// may still read it. Only the code of its module goes.
//
// Thread rule: the executor's thread.
#pragma once

#include "io/device.h"
#include "io/pnp.h"
#include "platform/executor.h"
#include "platform/module_host.h"

#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace ib::io {

enum class DriverKind : std::uint8_t { Function, Filter };

struct DriverInfo {
  std::string name;
  DriverKind kind = DriverKind::Function;
  std::vector<std::string> ids;      // hardware or compatible ids of its devices
  std::vector<std::string> depends;  // loaded before it; a filter also sits above these
  std::string description;
  std::string module;  // path; empty: part of this program
};

enum class DriverState : std::uint8_t { Available, Loading, Loaded, Unloading };
const char* driver_state_name(DriverState state);

class DriverRegistry {
 public:
  // Fills in the routines of a driver that is loaded. An error refuses the load, with its reason.
  using Entry = std::function<Status(DriverObject& driver, std::string& reason)>;
  using Done = std::function<void(Status status, const std::string& reason)>;
  // Modules export it as kEntrySymbol, with C linkage.
  using ModuleEntry = Status (*)(DriverObject& driver, std::string& reason);
  static constexpr const char* kEntrySymbol = "softib_driver_entry_1";
  // How long unload() waits for the users of the driver before it reports a leak.
  static constexpr Duration kUnloadTimeLimit = std::chrono::seconds(2);

  // `modules` may be null: then only drivers of this program can be loaded.
  DriverRegistry(platform::Executor& executor, platform::ModuleHost* modules)
      : executor_(executor), modules_(modules) {}
  DriverRegistry(const DriverRegistry&) = delete;
  DriverRegistry& operator=(const DriverRegistry&) = delete;
  ~DriverRegistry();  // no device is left

  // Sets DriverObject::services of every driver that is loaded from now on.
  void set_services(TypedPointer services) { services_ = services; }

  // Returns AlreadyExists if a driver has that name. Without `entry` it is a module.
  [[nodiscard]] Status add(DriverInfo info, Entry entry, std::string& reason);

  // The drivers for a device, loaded.
  struct Match {
    Status status = Status::Ok;  // NotFound: no driver matches its ids
    std::string reason;
    DriverObject* function = nullptr;
    std::vector<DriverObject*> filters;  // lowest first
  };
  void match(const DeviceIds& ids, std::function<void(const Match&)> done);

  void load(std::string_view name, Done done);
  // Returns Ok, or the error with which unload() would refuse at once: NotFound, DeviceBusy.
  Status may_unload(std::string_view name, std::string& reason) const;
  // Its devices have been removed before. DeviceBusy: another loaded driver depends on it; or it
  // keeps references: then it stays mapped, and the reason names them. If they go later, so does
  // the code.
  void unload(std::string_view name, Done done);

  DriverObject* find_loaded(std::string_view name) const;
  struct Line {  // for listings
    const DriverInfo* info;
    DriverState state;
    std::string references;  // of a loaded one: "2 devices"
  };
  std::vector<Line> list() const;

 private:
  struct Driver {
    DriverInfo info;
    Entry entry;
    DriverState state = DriverState::Available;
    bool blocked = false;  // from match(): unloaded by hand, until it is loaded by hand
    std::unique_ptr<DriverObject> object;
    std::shared_ptr<platform::Module> module;
    std::vector<std::string> holds;  // drivers whose Dependent reference it has
    std::vector<Done> waiting;       // for Loading or Unloading to end
    std::unique_ptr<platform::Timer> unload_timer;
  };

  Driver* find(std::string_view name) const;
  void load_one(Driver& driver, std::vector<std::string> path, Done done);
  void load_dependencies(Driver& driver, std::size_t at, const std::vector<std::string>& path,
                         const Done& done);
  void open_module(Driver& driver);
  void enter(Driver& driver, const Entry& entry);
  void loaded(Driver& driver, Status status, const std::string& reason);
  void finish_unload(Driver& driver);
  void report_leak(Driver& driver);
  static void tell(Driver& driver, Status status, const std::string& reason);
  std::vector<Driver*> candidates(const DeviceIds& ids) const;

  platform::Executor& executor_;
  platform::ModuleHost* modules_;
  TypedPointer services_;
  std::list<std::unique_ptr<Driver>> drivers_;          // in the order of add()
  std::vector<std::unique_ptr<DriverObject>> retired_;  // of drivers that were unloaded
};

}  // namespace ib::io
