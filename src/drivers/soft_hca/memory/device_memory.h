// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// DeviceMemory: softibd's side of the shared mapping (hca/layout/layout.h): makes it, hands out
// pieces of its heap, and kicks processes.
#pragma once

#include "base/result.h"
#include "drivers/soft_hca/memory/heap.h"
#include "hca/layout/arena.h"
#include "platform/device_memory_host.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace ib::drivers {

// Whether a place that allocates is to fail now, although it could do without; for tests of what
// happens then (docs/design/0007). `site` names the place.
class Fault {
 public:
  using Decide = std::function<bool(std::string_view site)>;
  void set(Decide decide) { decide_ = std::move(decide); }
  bool is_set() const { return decide_ != nullptr; }
  bool operator()(std::string_view site, std::string& reason) const {
    if (decide_ == nullptr || !decide_(site)) return false;
    reason = "the verifier made the allocation fail: ";
    reason += site;
    return true;
  }

 private:
  Decide decide_;
};

class DeviceMemory final : private hca::ArenaFile, private HeapMemory {
 public:
  DeviceMemory(platform::DeviceMemoryHost& host, std::uint64_t max_memory);
  Status create(std::string& reason);  // once, first

  const hca::Arena& arena() const { return arena_; }
  platform::DeviceMemoryHost& host() { return host_; }
  const Heap& heap() const { return *heap_; }

  Result<std::uint64_t> allocate(std::uint64_t size, std::string& reason,
                                 std::uint64_t align = Heap::kGranule) {
    if (fault_("device memory", reason)) return Status::InsufficientResources;
    return heap_->allocate(size, align, reason);
  }
  void release(std::uint64_t offset) { heap_->release(offset); }

  void set_fault(const Fault& fault) { fault_ = fault; }

  // Returns pages of a table that no client uses any more to the system.
  void clear_table(std::uint64_t offset, std::uint64_t length) { host_.punch(offset, length); }

  // Makes the service thread of this process run and look at its queue pairs.
  void kick(std::uint32_t slot);
  // Notifies a kernel client, which has no service thread.
  void set_on_attention(std::function<void(std::uint32_t slot)> on_attention) {
    on_attention_ = std::move(on_attention);
  }

 private:
  std::uint64_t query_size() override { return host_.size(); }
  Status grow_to(std::uint64_t end, std::string& reason) override;
  void clear(std::uint64_t offset, std::uint64_t length) override;
  void give_back(std::uint64_t offset, std::uint64_t length) override {
    host_.punch(offset, length);
  }

  platform::DeviceMemoryHost& host_;
  std::uint64_t max_memory_;
  hca::Arena arena_;
  std::unique_ptr<Heap> heap_;
  Fault fault_;
  std::function<void(std::uint32_t slot)> on_attention_;
};

}  // namespace ib::drivers
