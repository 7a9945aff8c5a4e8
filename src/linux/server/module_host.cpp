// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "linux/server/module_host.h"

#include <dlfcn.h>

#include <system_error>
#include <utility>

namespace ib::os {
namespace {

class Loaded final : public platform::Module {
 public:
  explicit Loaded(void* handle) : handle_(handle) {}
  Loaded(const Loaded&) = delete;
  Loaded& operator=(const Loaded&) = delete;
  ~Loaded() override { ::dlclose(handle_); }
  void* symbol(const char* name) override { return ::dlsym(handle_, name); }

 private:
  void* handle_;
};

}  // namespace

DlopenHost::~DlopenHost() {
  for (std::thread& thread : threads_) thread.join();
}

void DlopenHost::open(const std::string& path, Opened opened) {
  const auto load = [this, path, opened] {
    // All symbols now: a module that lacks one must fail here and not in the middle of a request.
    void* handle = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    const char* error = handle == nullptr ? ::dlerror() : nullptr;
    std::string reason = error != nullptr ? error : "";
    std::shared_ptr<platform::Module> module;
    if (handle != nullptr) module = std::make_shared<Loaded>(handle);
    executor_.post([opened, module, reason] {
      if (module == nullptr) return opened(Status::IoError, reason);
      opened(module, {});
    });
  };
  try {
    threads_.emplace_back(load);
  } catch (const std::system_error& error) {
    executor_.post([opened, why = std::string(error.what())] {
      opened(Status::InsufficientResources, "no thread to load it: " + why);
    });
  }
}

}  // namespace ib::os
