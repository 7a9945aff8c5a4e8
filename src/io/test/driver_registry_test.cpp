// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "io/driver_registry.h"

#include "io/irp_queue.h"
#include "platform/virtual_executor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

namespace ib::io::test {
namespace {

using testing::HasSubstr;

// Code of a module: whether it is still mapped.
struct FakeModule final : platform::Module {
  FakeModule(bool& is_mapped, void* symbol) : mapped(is_mapped), entry(symbol) { mapped = true; }
  ~FakeModule() override { mapped = false; }
  void* symbol(const char*) override { return entry; }
  bool& mapped;
  void* entry;
};

struct FakeModules final : platform::ModuleHost {
  explicit FakeModules(platform::Executor& e) : executor(e) {}
  void open(const std::string&, const std::string& path, Opened opened) override {
    executor.post([this, path, opened] {
      if (path == "missing") return opened(Status::IoError, "no such file");
      opened(std::shared_ptr<platform::Module>(std::make_shared<FakeModule>(mapped, entry)), "");
    });
  }
  platform::Executor& executor;
  bool mapped = false;
  void* entry = nullptr;
};

Status good_entry(DriverObject&, std::string&) {
  return Status::Ok;
}
Status bad_entry(DriverObject&, std::string& reason) {
  reason = "wrong moon";
  return Status::NotSupported;
}

struct Registry {
  Registry() : modules(executor), registry(executor, &modules) {
    modules.entry = reinterpret_cast<void*>(&good_entry);
  }
  Status add(const std::string& name, std::vector<std::string> depends = {},
             const std::string& path = "module") {
    return registry.add({name, DriverKind::Function, {}, std::move(depends), "", path}, nullptr,
                        reason);
  }
  DriverRegistry::Done done() {
    status = Status::Pending;
    return [this](Status s, const std::string& r) {
      status = s;
      reason = r;
    };
  }
  Status load(const std::string& name) {
    registry.load(name, done());
    executor.advance(std::chrono::milliseconds(1));
    return status;
  }
  Status unload(const std::string& name, Duration time_limit = std::chrono::milliseconds(1)) {
    registry.unload(name, done());
    executor.advance(time_limit);
    return status;
  }
  platform::VirtualExecutor executor;
  FakeModules modules;
  DriverRegistry registry;
  Status status = Status::Ok;
  std::string reason;
};

TEST(DriverRegistry, LoadsAModuleAndUnmapsIt) {
  Registry r;
  EXPECT_EQ(r.add("echo"), Status::Ok);
  EXPECT_EQ(r.add("echo"), Status::AlreadyExists);
  EXPECT_EQ(r.load("echo"), Status::Ok);
  EXPECT_TRUE(r.modules.mapped);
  EXPECT_EQ(r.unload("echo"), Status::Ok);
  EXPECT_FALSE(r.modules.mapped);
  EXPECT_EQ(r.unload("echo"), Status::NotFound);
  EXPECT_EQ(r.load("echo"), Status::Ok);
}

TEST(DriverRegistry, SaysWhyAModuleCannotBeLoaded) {
  Registry r;
  EXPECT_EQ(r.add("a", {}, "missing"), Status::Ok);
  EXPECT_EQ(r.load("a"), Status::IoError);
  EXPECT_EQ(r.reason, "no such file");
  EXPECT_EQ(r.add("b"), Status::Ok);
  EXPECT_EQ(r.load("nobody"), Status::NotFound);
  EXPECT_EQ(r.reason, "there is no driver nobody; there are a, b");
  r.modules.entry = nullptr;
  EXPECT_EQ(r.load("b"), Status::Malformed);
  r.modules.entry = reinterpret_cast<void*>(&bad_entry);
  EXPECT_EQ(r.load("b"), Status::NotSupported);
  EXPECT_EQ(r.reason, "wrong moon");
  EXPECT_FALSE(r.modules.mapped);
}

TEST(DriverRegistry, WhatOthersDependOnStays) {
  Registry r;
  EXPECT_EQ(r.add("low"), Status::Ok);
  EXPECT_EQ(r.add("high", {"low"}), Status::Ok);
  EXPECT_EQ(r.load("high"), Status::Ok);
  EXPECT_NE(r.registry.find_loaded("low"), nullptr);
  EXPECT_EQ(r.unload("low"), Status::DeviceBusy);
  EXPECT_THAT(r.reason, HasSubstr("driver high is loaded and depends on low"));
  EXPECT_EQ(r.unload("high"), Status::Ok);
  EXPECT_EQ(r.unload("low"), Status::Ok);
}

TEST(DriverRegistry, FindsCirclesAndMissingDependencies) {
  Registry r;
  EXPECT_EQ(r.add("a", {"b"}), Status::Ok);
  EXPECT_EQ(r.add("b", {"a"}), Status::Ok);
  EXPECT_EQ(r.add("c", {"nothing"}), Status::Ok);
  EXPECT_EQ(r.load("a"), Status::InvalidParameter);
  EXPECT_THAT(r.reason, HasSubstr("depends on itself"));
  EXPECT_EQ(r.load("c"), Status::NotFound);
  EXPECT_THAT(r.reason, HasSubstr("depends on nothing, which is not there"));
}

TEST(DriverRegistry, ALeakIsReportedByNameAndTheCodeStays) {
  Registry r;
  EXPECT_EQ(r.add("echo"), Status::Ok);
  EXPECT_EQ(r.load("echo"), Status::Ok);
  DriverObject& driver = *r.registry.find_loaded("echo");
  driver.references.take(DriverUse::Client);
  EXPECT_EQ(r.unload("echo"), Status::Pending);
  r.executor.advance(DriverRegistry::kUnloadTimeLimit);
  EXPECT_EQ(r.status, Status::DeviceBusy);
  EXPECT_THAT(r.reason, HasSubstr("driver echo still has 1 open of the access layer"));
  EXPECT_TRUE(r.modules.mapped);
  EXPECT_EQ(r.load("echo"), Status::DeviceBusy);
  driver.references.release(DriverUse::Client);
  r.executor.advance(std::chrono::milliseconds(1));
  EXPECT_FALSE(r.modules.mapped);
  EXPECT_EQ(r.load("echo"), Status::Ok);
}

// A completion routine is the classic way back into code that has gone.
TEST(DriverRegistry, ACallbackThatIsStillToComeKeepsTheCode) {
  Registry r;
  EXPECT_EQ(r.add("echo"), Status::Ok);
  EXPECT_EQ(r.load("echo"), Status::Ok);
  DriverObject& driver = *r.registry.find_loaded("echo");
  static IrpQueue parked;
  static int returned = 0;
  driver.on(Major::DeviceControl) = [](DeviceObject& device, IrpRef irp) {
    call_driver(
        *device.lower(), std::move(irp),
        [](IrpRef done, void*) {
          ++returned;
          std::move(done).pass_up();
        },
        nullptr);
  };
  DriverObject below("below");
  below.on(Major::DeviceControl) = [](DeviceObject&, IrpRef irp) { parked.park(std::move(irp)); };
  DeviceObject lower(below, "lower", DeviceKind::Physical);
  Irp irp;
  auto upper = std::make_unique<DeviceObject>(driver, "upper", DeviceKind::Functional);
  ASSERT_EQ(upper->attach(lower), Status::Ok);
  call_driver(*upper, irp.start([](Irp&, void*) {}, nullptr));
  EXPECT_EQ(driver.references.text(), "1 device, 1 callback");
  EXPECT_EQ(r.unload("echo"), Status::Pending);
  EXPECT_TRUE(r.modules.mapped);
  // On another thread, as hardware would.
  std::thread([] { (*parked.take()).complete(Status::Ok); }).join();
  EXPECT_EQ(returned, 1);
  EXPECT_EQ(driver.references.text(), "1 device");
  upper.reset();
  EXPECT_TRUE(r.modules.mapped);  // never from inside: on the executor
  r.executor.advance(std::chrono::milliseconds(1));
  EXPECT_EQ(r.status, Status::Ok);
  EXPECT_FALSE(r.modules.mapped);
}

// Many threads go in and out of a driver while it is unloaded: its code goes after the last return.
TEST(DriverRegistry, UnloadsUnderCallsFromManyThreads) {
  for (int round = 0; round < 20; ++round) {
    Registry r;
    EXPECT_EQ(r.add("echo"), Status::Ok);
    EXPECT_EQ(r.load("echo"), Status::Ok);
    static bool* mapped;
    mapped = &r.modules.mapped;
    static std::atomic<int> wrong;
    wrong = 0;
    DriverObject& driver = *r.registry.find_loaded("echo");
    driver.on(Major::DeviceControl) = [](DeviceObject&, IrpRef irp) {
      std::move(irp).complete(Status::Ok);
      if (!*mapped) ++wrong;  // we are still inside
    };
    auto device = std::make_unique<DeviceObject>(driver, "d", DeviceKind::Functional);
    std::vector<std::thread> threads;
    for (int t = 0; t < 3; ++t) {
      threads.emplace_back([&] {
        for (int i = 0; i < 500; ++i) {
          Irp irp;
          call_driver(*device, irp.start([](Irp&, void*) {}, nullptr));
        }
      });
    }
    EXPECT_EQ(r.unload("echo"), Status::Pending);
    for (std::thread& thread : threads) thread.join();
    device.reset();
    r.executor.advance(std::chrono::milliseconds(1));
    EXPECT_EQ(r.status, Status::Ok);
    EXPECT_EQ(wrong, 0);
  }
}

}  // namespace
}  // namespace ib::io::test
