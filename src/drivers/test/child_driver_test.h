// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// For the random test of this folder: a driver store with a function driver for the children of
// ports and a filter above it. The test chooses which requests they refuse, fail or answer late.
#pragma once

#include "drivers/root/fabric_tree.h"
#include "io/irp_queue.h"
#include "platform/module_host.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace ib::drivers::test {

class ChildDrivers final : public platform::ModuleHost {
 public:
  static constexpr const char* kFunction = "child";
  static constexpr const char* kFilter = "child_filter";

  // Each is a probability in eighths; with all zero the drivers behave.
  struct Habits {
    unsigned no_module = 0;
    unsigned refuses_entry = 0;
    unsigned refuses_start = 0;
    unsigned vetoes = 0;
    unsigned fails_power = 0;
    unsigned is_slow = 0;
  };

  // `dice` returns a number below eight.
  explicit ChildDrivers(std::function<unsigned()> dice) : dice_(std::move(dice)) {
    IB_ASSERT(current == nullptr);
    current = this;
  }
  ChildDrivers(const ChildDrivers&) = delete;
  ChildDrivers& operator=(const ChildDrivers&) = delete;
  ~ChildDrivers() override { current = nullptr; }

  FabricTreeOptions options() {
    const std::vector<std::string> ids{"IBA\\IPoIB", "IBA\\IPoIBP"};
    FabricTreeOptions options;
    options.modules = {{kFunction, io::DriverKind::Function, ids, {}, "", "child.so"},
                       {kFilter, io::DriverKind::Filter, ids, {kFunction}, "", "filter.so"}};
    options.loader = this;
    return options;
  }
  // Without an executor modules are loaded at once.
  void load_on(platform::Executor& executor) { executor_ = &executor; }

  void open(const std::string&, const std::string& path, Opened opened) override {
    if (executor_ == nullptr) return answer(path, opened);
    executor_->post([this, path, opened] { answer(path, opened); });
  }

  // Finishes one of the requests that the drivers answer late. Returns false if there is none.
  bool finish_slow() {
    auto irp = slow_.take();
    if (!irp) return false;
    (*std::move(irp)).complete(Status::Ok);
    return true;
  }

  Habits habits;
  std::size_t devices = 0;  // device objects that exist
  std::size_t modules = 0;  // modules that are mapped

 private:
  struct Code final : platform::Module {
    Code(ChildDrivers& made_by, bool filters) : owner(made_by), is_filter(filters) {
      ++owner.modules;
    }
    ~Code() override { --owner.modules; }
    void* symbol(const char*) override {
      return reinterpret_cast<void*>(is_filter ? &filter_entry : &function_entry);
    }
    ChildDrivers& owner;
    bool is_filter;
  };
  struct Device final : io::DeviceObject {
    Device(ChildDrivers& made_by, io::DriverObject& driver, io::DeviceKind kind)
        : DeviceObject(driver, driver.name, kind), owner(made_by) {
      ++owner.devices;
    }
    ~Device() override {
      EXPECT_GT(owner.modules, 0u) << "a device outlives the code of its driver";
      --owner.devices;
    }
    ChildDrivers& owner;
  };

  bool sometimes(unsigned often) { return often > 0 && dice_() < often; }

  void answer(const std::string& path, const Opened& opened) {
    if (sometimes(habits.no_module)) return opened(Status::NotFound, path + " is not there");
    opened(std::shared_ptr<platform::Module>(std::make_shared<Code>(*this, path == "filter.so")),
           {});
  }

  static Status function_entry(io::DriverObject& driver, std::string& reason) {
    ChildDrivers& self = *current;
    driver.extension_pointer.set(&self);
    driver.add_device = &add_device<io::DeviceKind::Functional>;
    driver.on(io::Major::Pnp) = &on_pnp;
    driver.on(io::Major::Power) = &on_power;
    if (!self.sometimes(self.habits.refuses_entry)) return Status::Ok;
    reason = "not today";
    return Status::NotSupported;
  }
  static Status filter_entry(io::DriverObject& driver, std::string&) {
    driver.extension_pointer.set(current);
    driver.add_device = &add_device<io::DeviceKind::Filter>;
    driver.on(io::Major::Pnp) = &on_pnp;
    return Status::Ok;
  }
  template <io::DeviceKind kKind>
  static Result<std::unique_ptr<io::DeviceObject>> add_device(io::DriverObject& driver,
                                                              io::DeviceNode&, std::string&) {
    auto& self = driver.extension<ChildDrivers>();
    return std::unique_ptr<io::DeviceObject>(std::make_unique<Device>(self, driver, kKind));
  }

  void refuse_or_pass(io::DeviceObject& device, io::IrpRef irp, unsigned how_often) {
    if (sometimes(how_often)) return std::move(irp).fail(Status::DeviceBusy, "the child says no");
    pass_down(device, std::move(irp));
  }
  static void on_pnp(io::DeviceObject& device, io::IrpRef irp) {
    ChildDrivers& self = static_cast<Device&>(device).owner;
    const auto minor = static_cast<io::PnpMinor>(irp->code);
    if (minor == io::PnpMinor::QueryRemove && self.sometimes(self.habits.is_slow)) {
      return self.slow_.park(std::move(irp));
    }
    const unsigned refuses = minor == io::PnpMinor::Start         ? self.habits.refuses_start
                             : minor == io::PnpMinor::QueryRemove ? self.habits.vetoes
                                                                  : 0;
    self.refuse_or_pass(device, std::move(irp), refuses);
  }
  static void on_power(io::DeviceObject& device, io::IrpRef irp) {
    ChildDrivers& self = static_cast<Device&>(device).owner;
    const auto& request = *irp->parameters.get<io::PowerRequest>();
    if (request.is_system) return io::follow_system_power(device, std::move(irp));
    if (self.sometimes(self.habits.is_slow)) return self.slow_.park(std::move(irp));
    const bool query = irp->code == static_cast<std::uint32_t>(io::PowerMinor::Query);
    self.refuse_or_pass(device, std::move(irp),
                        query ? self.habits.vetoes : self.habits.fails_power);
  }

  // Entry points of modules have no argument that leads to their test.
  static inline ChildDrivers* current = nullptr;
  std::function<unsigned()> dice_;
  platform::Executor* executor_ = nullptr;
  io::IrpQueue slow_;
};

}  // namespace ib::drivers::test
