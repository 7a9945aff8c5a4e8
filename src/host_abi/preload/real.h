// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// How our functions call the functions that they replace, and how they get their names.
#pragma once

#include <dlfcn.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>

// Gives a C++ function the name of a libc function. Its declaration then need not agree with libc's
// in noexcept and attributes, and calls in our own code never reach it by accident.
#define IB_STANDS_FOR(symbol) __asm__(symbol) __attribute__((visibility("default")))

namespace ib::host_abi::preload {

// The next definition of `name` after ours: libc's, or another preload library's. Resolved at the
// first call, not at load: most processes never need most of them.
template <class Function>
class Real {
 public:
  explicit constexpr Real(const char* name) : name_(name) {}

  // Relaxed: the other library was there before, with all that the function needs.
  Function* get() {
    Function* function = function_.load(std::memory_order_relaxed);
    if (function != nullptr) return function;
    function = reinterpret_cast<Function*>(::dlsym(RTLD_NEXT, name_));
    // All are in every glibc that this library can be linked with.
    if (function == nullptr) std::abort();
    function_.store(function, std::memory_order_relaxed);
    return function;
  }

  template <class... Arguments>
  auto operator()(Arguments... arguments) {
    return get()(arguments...);
  }

 private:
  const char* name_;
  std::atomic<Function*> function_{nullptr};
};

}  // namespace ib::host_abi::preload
