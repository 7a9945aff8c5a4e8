// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "io/driver_registry.h"

#include <algorithm>
#include <utility>

namespace ib::io {
namespace {

char lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

bool same_id(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](char x, char y) { return lower(x) == lower(y); });
}

constexpr std::size_t kNoRank = ~std::size_t{0};

// The smaller the better: hardware ids before compatible ids, each exact ones first.
std::size_t rank_of(const DriverInfo& info, const DeviceIds& ids) {
  std::size_t rank = 0;
  for (const auto* list : {&ids.hardware, &ids.compatible}) {
    for (const std::string& id : *list) {
      const bool known = std::any_of(info.ids.begin(), info.ids.end(),
                                     [&](const std::string& own) { return same_id(own, id); });
      if (known) return rank;
      ++rank;
    }
  }
  return kNoRank;
}

bool contains(const std::vector<std::string>& list, const std::string& name) {
  return std::find(list.begin(), list.end(), name) != list.end();
}

}  // namespace

const char* driver_state_name(DriverState state) {
  switch (state) {
    case DriverState::Available: return "available";
    case DriverState::Loading: return "loading";
    case DriverState::Loaded: return "loaded";
    case DriverState::Unloading: return "unloading";
  }
  return "unknown";
}

DriverRegistry::~DriverRegistry() {
  for (const auto& driver : drivers_) {
    for (const std::string& name : driver->holds) {
      find(name)->object->references.release(DriverUse::Dependent);
    }
    if (driver->state == DriverState::Loaded && driver->object->unload != nullptr) {
      driver->object->unload(*driver->object);
    }
  }
  // NOLINTNEXTLINE(clang-analyzer-cplusplus.NewDeleteLeaks): never freed, see below
  for (const auto& driver : drivers_) {
    if (driver->object == nullptr || driver->object->references.total() == 0) continue;
    // It leaks references: their holders may still call in, so object and code stay until the
    // process ends.
    static_cast<void>(driver->object.release());
    if (driver->module != nullptr) {
      auto kept = std::make_unique<std::shared_ptr<platform::Module>>(std::move(driver->module));
      static_cast<void>(kept.release());
    }
  }
}

Status DriverRegistry::add(DriverInfo info, Entry entry, std::string& reason) {
  if (find(info.name) != nullptr) {
    reason = "there is a driver " + info.name + " already";
    return Status::AlreadyExists;
  }
  auto driver = std::make_unique<Driver>();
  driver->info = std::move(info);
  driver->entry = std::move(entry);
  drivers_.push_back(std::move(driver));
  return Status::Ok;
}

DriverRegistry::Driver* DriverRegistry::find(std::string_view name) const {
  const auto found = std::find_if(drivers_.begin(), drivers_.end(),
                                  [name](const auto& d) { return d->info.name == name; });
  return found == drivers_.end() ? nullptr : found->get();
}

DriverObject* DriverRegistry::find_loaded(std::string_view name) const {
  const Driver* driver = find(name);
  return driver != nullptr && driver->state == DriverState::Loaded ? driver->object.get() : nullptr;
}

std::vector<DriverRegistry::Line> DriverRegistry::list() const {
  std::vector<Line> lines;
  for (const auto& driver : drivers_) {
    lines.push_back({&driver->info, driver->state,
                     driver->object != nullptr ? driver->object->references.text() : ""});
  }
  return lines;
}

// The best function driver, then the filters, each after those it depends on.
std::vector<DriverRegistry::Driver*> DriverRegistry::candidates(const DeviceIds& ids) const {
  Driver* function = nullptr;
  std::size_t best = kNoRank;
  std::vector<Driver*> filters;
  for (const auto& driver : drivers_) {
    const std::size_t rank = rank_of(driver->info, ids);
    const bool usable = !driver->blocked && driver->state != DriverState::Unloading;
    if (rank == kNoRank || !usable) continue;
    if (driver->info.kind == DriverKind::Function && rank < best) {
      function = driver.get();
      best = rank;
    } else if (driver->info.kind == DriverKind::Filter) {
      filters.push_back(driver.get());
    }
  }
  std::vector<Driver*> all{function};
  while (!filters.empty()) {
    // A driver that needs none of the rest; a circle is detected when it is loaded.
    const auto next = std::find_if(filters.begin(), filters.end(), [&](const Driver* filter) {
      return std::none_of(filters.begin(), filters.end(), [&](const Driver* other) {
        return other != filter && contains(filter->info.depends, other->info.name);
      });
    });
    const auto taken = next != filters.end() ? next : filters.begin();
    all.push_back(*taken);
    filters.erase(taken);
  }
  return all;
}

void DriverRegistry::match(const DeviceIds& ids, std::function<void(const Match&)> done) {
  auto match = std::make_shared<Match>();
  auto wanted = std::make_shared<std::vector<Driver*>>(candidates(ids));
  if (wanted->front() == nullptr && !ids.raw) {
    match->status = Status::NotFound;
    match->reason = "no driver for " + ids.device;
    return executor_.post([match, done = std::move(done)] { done(*match); });
  }
  std::erase(*wanted, nullptr);
  // One after the other; each loads what it depends on first.
  auto go_on = std::make_shared<std::function<void(std::size_t)>>();
  *go_on = [this, match, wanted, go_on, done = std::move(done)](std::size_t at) {
    if (at == wanted->size() || match->status != Status::Ok) {
      const auto finish = done;
      *go_on = nullptr;  // it owns itself; what runs here is a copy
      return finish(*match);
    }
    Driver& driver = *(*wanted)[at];
    load_one(driver, {}, [match, go_on, at, &driver](Status status, const std::string& reason) {
      match->status = status;
      match->reason = reason;
      if (status == Status::Ok && driver.info.kind == DriverKind::Function) {
        match->function = driver.object.get();
      } else if (status == Status::Ok) {
        match->filters.push_back(driver.object.get());
      }
      const auto run = *go_on;
      run(at + 1);
    });
  };
  executor_.post([go_on] {
    const auto run = *go_on;
    run(0);
  });
}

void DriverRegistry::load(std::string_view name, Done done) {
  Driver* driver = find(name);
  if (driver == nullptr) {
    std::string reason = "there is no driver " + std::string(name) + "; there are";
    for (const auto& known : drivers_) {
      reason += (known == drivers_.front() ? " " : ", ") + known->info.name;
    }
    return done(Status::NotFound, reason);
  }
  driver->blocked = false;
  load_one(*driver, {}, std::move(done));
}

// `path`: the drivers that wait for this one, to find circles.
void DriverRegistry::load_one(Driver& driver, std::vector<std::string> path, Done done) {
  if (contains(path, driver.info.name)) {
    return done(Status::InvalidParameter, "driver " + driver.info.name + " depends on itself");
  }
  if (driver.state == DriverState::Loaded) return done(Status::Ok, {});
  if (driver.state == DriverState::Unloading) {
    return done(Status::DeviceBusy, "driver " + driver.info.name +
                                        " is being unloaded: " + driver.object->references.text());
  }
  driver.waiting.push_back(std::move(done));
  if (driver.state == DriverState::Loading) return;
  driver.state = DriverState::Loading;
  path.push_back(driver.info.name);
  load_dependencies(driver, 0, path, [this, &driver](Status status, const std::string& reason) {
    if (status != Status::Ok) return loaded(driver, status, reason);
    driver.object = std::make_unique<DriverObject>(driver.info.name);
    driver.object->services = services_;
    driver.entry ? enter(driver, driver.entry) : open_module(driver);
  });
}

void DriverRegistry::load_dependencies(Driver& driver, std::size_t at,
                                       const std::vector<std::string>& path, const Done& done) {
  if (at == driver.info.depends.size()) return done(Status::Ok, {});
  const std::string& name = driver.info.depends[at];
  Driver* needed = find(name);
  if (needed == nullptr) {
    return done(Status::NotFound,
                "driver " + driver.info.name + " depends on " + name + ", which is not there");
  }
  // In a circle no load would end: the loading driver waits for this one.
  if (needed->state == DriverState::Loading && contains(path, name)) {
    return done(Status::InvalidParameter,
                "driver " + name + " depends on itself, by way of " + driver.info.name);
  }
  load_one(*needed, path,
           [this, &driver, needed, at, path, done](Status status, const std::string& reason) {
             if (status != Status::Ok) return done(status, reason);
             needed->object->references.take(DriverUse::Dependent);
             driver.holds.push_back(needed->info.name);
             load_dependencies(driver, at + 1, path, done);
           });
}

void DriverRegistry::open_module(Driver& driver) {
  if (modules_ == nullptr) {
    return loaded(driver, Status::NotSupported, "this program loads no driver modules");
  }
  modules_->open(
      driver.info.name, driver.info.module,
      [this, &driver](Result<std::shared_ptr<platform::Module>> module, const std::string& reason) {
        if (!module) return loaded(driver, module.error(), reason);
        driver.module = *module;
        void* entry = driver.module->symbol(kEntrySymbol);
        if (entry == nullptr) {
          return loaded(driver, Status::Malformed, driver.info.module + " has no " + kEntrySymbol);
        }
        enter(driver, reinterpret_cast<ModuleEntry>(entry));
      });
}

void DriverRegistry::enter(Driver& driver, const Entry& entry) {
  std::string reason;
  const Status status = entry(*driver.object, reason);
  loaded(driver, status, reason);
}

void DriverRegistry::loaded(Driver& driver, Status status, const std::string& reason) {
  driver.state = status == Status::Ok ? DriverState::Loaded : DriverState::Available;
  if (status != Status::Ok) {
    for (const std::string& name : driver.holds) {
      find(name)->object->references.release(DriverUse::Dependent);
    }
    driver.holds.clear();
    if (driver.object != nullptr) retired_.push_back(std::move(driver.object));
    driver.module.reset();
  }
  tell(driver, status, reason);
}

void DriverRegistry::tell(Driver& driver, Status status, const std::string& reason) {
  for (const Done& done : std::exchange(driver.waiting, {})) done(status, reason);
}

Status DriverRegistry::may_unload(std::string_view name, std::string& reason) const {
  const Driver* driver = find(name);
  if (driver == nullptr || driver->state == DriverState::Available) {
    reason = "driver " + std::string(name) + " is not loaded";
    return Status::NotFound;
  }
  for (const auto& other : drivers_) {
    if (!contains(other->holds, driver->info.name)) continue;
    reason = "driver " + other->info.name + " is loaded and depends on " + driver->info.name;
    return Status::DeviceBusy;
  }
  if (driver->state == DriverState::Loading) {
    reason = "driver " + driver->info.name + " is being loaded";
    return Status::DeviceBusy;
  }
  return Status::Ok;
}

void DriverRegistry::unload(std::string_view name, Done done) {
  std::string reason;
  const Status allowed = may_unload(name, reason);
  if (allowed != Status::Ok) return done(allowed, reason);
  Driver* driver = find(name);
  driver->waiting.push_back(std::move(done));
  if (driver->state == DriverState::Unloading) return report_leak(*driver);  // requested again
  driver->state = DriverState::Unloading;
  driver->blocked = true;
  driver->unload_timer =
      executor_.at(executor_.now() + kUnloadTimeLimit, [this, driver] { report_leak(*driver); });
  if (driver->object->unload != nullptr) driver->object->unload(*driver->object);
  // Called on any thread, perhaps from code that is about to return out of the module: deferred to
  // the executor's thread.
  driver->object->references.end_when_unused([this, driver, object = driver->object.get()] {
    executor_.post([this, driver, object] {
      if (driver->object.get() == object) finish_unload(*driver);
    });
  });
}

void DriverRegistry::finish_unload(Driver& driver) {
  if (driver.state != DriverState::Unloading || driver.object->references.total() > 0) return;
  driver.object->references.end();
  driver.unload_timer.reset();
  driver.object->dispatch = {};
  driver.object->add_device = nullptr;
  driver.object->unload = nullptr;
  retired_.push_back(std::move(driver.object));
  driver.module.reset();
  for (const std::string& name : std::exchange(driver.holds, {})) {
    find(name)->object->references.release(DriverUse::Dependent);
  }
  driver.state = DriverState::Available;
  tell(driver, Status::Ok, {});
}

void DriverRegistry::report_leak(Driver& driver) {
  tell(driver, Status::DeviceBusy,
       "driver " + driver.info.name + " still has " + driver.object->references.text() +
           ": its code stays loaded until they are gone");
}

}  // namespace ib::io
