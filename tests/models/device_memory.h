// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Device memory of a model, and a process that posts and polls in it.
#pragma once

#include "hca/layout/arena.h"
#include "hca/memory/poster_host.h"
#include "tests/models/atomics.h"

#include <sys/mman.h>

#include <new>

namespace ib::models {

class ModelBarriers final : public platform::Barriers {
 public:
  bool join() override { return true; }
  bool joined() const override { return true; }
  void threads() override { barrier_everywhere(); }
  void processes() override { barrier_everywhere(); }
};

// One for all runs: each renews what it uses.
class DeviceMemory : public hca::ArenaFile {
 public:
  static DeviceMemory& get() {
    static DeviceMemory memory;
    return memory;
  }
  hca::Arena arena() { return hca::Arena(base_, *this); }
  std::uint64_t query_size() override { return kBytes; }
  template <class T>
  static T& renew(T* at) {
    return *new (at) T();
  }

 private:
  static constexpr std::uint64_t kBytes = hca::place::kHeap + (1u << 20);
  DeviceMemory()
      : base_(static_cast<std::byte*>(::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE,
                                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0))) {
    (void)size_at_least(kBytes);  // what is known is not queried again
  }
  std::byte* base_;
};

// Event channels are a word each, which counts their events.
class ModelHost final : public hca::PosterHost {
 public:
  Instant now() override { return {}; }
  void relax(std::uint32_t) override { spin(); }
  Status read_process(const platform::ProcessName&, std::uint64_t, void*, std::size_t) override {
    return Status::NotSupported;
  }
  Status write_process(const platform::ProcessName&, std::uint64_t, const void*,
                       std::size_t) override {
    return Status::NotSupported;
  }
  platform::OwnCopy copy_own(void*, const void*, std::size_t) override {
    return platform::OwnCopy::NotNow;
  }
  bool is_accessible(const void*, std::size_t, bool) override { return false; }
  std::byte* map_backing(std::uint32_t index, std::uint32_t generation,
                         std::uint64_t& size) override {
    return map ? map(index, generation, size) : nullptr;
  }
  void kick(std::uint32_t) override {}
  void serve_bounces() override {}
  platform::Barriers& barriers() override { return barriers_; }
  void notify(std::uint32_t) override {
    events.fetch_add(1, std::memory_order_acq_rel);
    wake(&events);
  }
  void raise(const verbs::control::RaiseEventIn&) override {}
  void trace(const verbs::control::TraceErrorIn&) override {}

  hca::Shared32 events{0};
  std::function<std::byte*(std::uint32_t, std::uint32_t, std::uint64_t&)> map;

 private:
  ModelBarriers barriers_;
};

}  // namespace ib::models
