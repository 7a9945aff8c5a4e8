// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "linux/server/module_host.h"

#include "linux/process/client_handle.h"
#include "linux/server/crash_report.h"
#include "linux/server/memory_file.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>

namespace ib::os {
namespace {

using platform::NativeHandle;

std::string failure(const char* what, const std::string& path) {
  return fmt::format("{} {}: {}", what, path, std::strerror(errno));
}

bool copy_bytes(int from, int to) {
  std::array<char, 65536> part;
  for (;;) {
    const ssize_t got = ::read(from, part.data(), part.size());
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return got == 0;
    for (ssize_t done = 0; done < got;) {
      const ssize_t put = ::write(to, part.data() + done, static_cast<std::size_t>(got - done));
      if (put < 0 && errno != EINTR) return false;
      if (put > 0) done += put;
    }
  }
}

// Returns a file in memory with the bytes of `path`, which nobody can change.
NativeHandle private_copy(const std::string& path, std::string& reason) {
  const NativeHandle file = own_descriptor(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.valid()) {
    reason = failure("cannot open", path);
    return {};
  }
  NativeHandle copy = make_code_file(path.substr(path.rfind('/') + 1).c_str());
  if (!copy.valid()) {
    reason = failure("no file in memory (memfd_create) for", path);
    if (errno == EACCES) reason += "; the setting vm.memfd_noexec of this machine forbids code";
    return {};
  }
  if (!copy_bytes(file.get(), copy.get())) {
    reason = failure("cannot copy", path);
    return {};
  }
  constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL;
  if (::fcntl(copy.get(), F_ADD_SEALS, kSeals) != 0) {
    reason = failure("cannot seal the copy of", path);
    return {};
  }
  return copy;
}

// By the number of this process, so that a debugger finds it too. The number of the descriptor
// makes it different from those of all modules that are loaded.
std::string name_of(const NativeHandle& copy) {
  return fmt::format("/proc/{}/fd/{}", ::getpid(), copy.get());
}

class Loaded final : public platform::Module {
 public:
  Loaded(void* handle, NativeHandle copy, ModuleRecord record)
      : handle_(handle), copy_(std::move(copy)), record_(std::move(record)) {}
  Loaded(const Loaded&) = delete;
  Loaded& operator=(const Loaded&) = delete;
  ~Loaded() override {
    ::dlclose(handle_);
    // The linker may keep it (-z nodelete, unique symbols). Then no other module may get its name.
    void* kept = ::dlopen(name_of(copy_).c_str(), RTLD_NOW | RTLD_NOLOAD);
    if (kept == nullptr) return;
    copy_.release();
    ::dlclose(kept);
  }
  void* symbol(const char* name) override { return ::dlsym(handle_, name); }

 private:
  void* handle_;
  NativeHandle copy_;
  ModuleRecord record_;
};

// dlopen() and its errors name the copy; people want the file.
std::string in_words(const char* error, const std::string& copy, const std::string& path) {
  std::string text = error != nullptr ? error : "dlopen failed";
  for (std::size_t at = text.find(copy); at != std::string::npos; at = text.find(copy, at)) {
    text.replace(at, copy.size(), path);
    at += path.size();
  }
  return text;
}

std::shared_ptr<platform::Module> load_module(const std::string& name, const std::string& path,
                                              std::string& reason) {
  NativeHandle copy = private_copy(path, reason);
  if (!copy.valid()) return nullptr;
  ModuleRecord record(name, path);
  const std::string copy_name = name_of(copy);
  // All symbols now: a module that lacks one must fail here and not in the middle of a request.
  void* handle = ::dlopen(copy_name.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    reason = in_words(::dlerror(), copy_name, path);
    return nullptr;
  }
  record.on_loaded(handle);
  return std::make_shared<Loaded>(handle, std::move(copy), std::move(record));
}

}  // namespace

DlopenHost::~DlopenHost() {
  for (std::thread& thread : threads_) thread.join();
}

void DlopenHost::open(const std::string& name, const std::string& path, Opened opened) {
  const auto load = [this, name, path, opened] {
    std::string reason;
    std::shared_ptr<platform::Module> module = load_module(name, path, reason);
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
