// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// SparseTable: address space for many entries, all zero; a page costs memory once it is touched.
#pragma once

#include "base/sanitizer.h"

#include <cstddef>
#include <cstdlib>
#include <memory>
#include <type_traits>

#if IB_ADDRESS_SANITIZER || IB_THREAD_SANITIZER
#include <sys/mman.h>  // tidy: allow(layers) memory only
#endif

namespace ib {

// Entries are used without their constructors.
template <class Entry, std::size_t kEntries>
class SparseTable {
 public:
  static constexpr std::size_t kBytes = kEntries * sizeof(Entry);

  SparseTable() : entries_(static_cast<Entry*>(reserve())) {}
  // Returns false if there was no room (RLIMIT_DATA); then no other call is allowed.
  bool valid() const { return entries_ != nullptr; }
  Entry& operator[](std::size_t i) const { return entries_[i]; }

 private:
  static_assert(std::is_trivially_destructible_v<Entry>);

#if IB_ADDRESS_SANITIZER || IB_THREAD_SANITIZER
  // Their calloc() or free() writes something for each entry. The page behind is for mistakes.
  static constexpr std::size_t kGuard = 65536;
  static void* reserve() {
    constexpr int kFlags = MAP_PRIVATE | MAP_ANONYMOUS;
    void* const memory = ::mmap(nullptr, kBytes + kGuard, PROT_NONE, kFlags, -1, 0);
    if (memory == MAP_FAILED) return nullptr;
    if (::mprotect(memory, kBytes, PROT_READ | PROT_WRITE) == 0) return memory;
    ::munmap(memory, kBytes + kGuard);
    return nullptr;
  }
  struct Release {
    void operator()(Entry* entries) const { ::munmap(entries, kBytes + kGuard); }
  };
#else
  static void* reserve() {
    return std::calloc(kEntries, sizeof(Entry));
  }
  struct Release {
    void operator()(Entry* entries) const { std::free(entries); }
  };
#endif

  std::unique_ptr<Entry[], Release> entries_;
};

}  // namespace ib
