// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// DeviceMemory: softibd's side of the shared mapping (hca/layout.h): makes it, hands out pieces of
// its heap, and kicks processes.
#pragma once

#include "base/result.h"
#include "drivers/heap.h"
#include "hca/arena.h"
#include "platform/device_memory_host.h"

#include <cstdint>
#include <memory>
#include <string>

namespace ib::drivers {

class DeviceMemory final : private hca::ArenaFile, private HeapMemory {
 public:
  DeviceMemory(platform::DeviceMemoryHost& host, std::uint64_t max_memory);
  Status create(std::string& reason);  // once, first

  const hca::Arena& arena() const { return arena_; }
  platform::DeviceMemoryHost& host() { return host_; }
  const Heap& heap() const { return *heap_; }

  Result<std::uint64_t> allocate(std::uint64_t size, std::string& reason,
                                 std::uint64_t align = Heap::kGranule) {
    return heap_->allocate(size, align, reason);
  }
  void release(std::uint64_t offset) { heap_->release(offset); }

  // Pages of a table that nobody uses any more.
  void clear_table(std::uint64_t offset, std::uint64_t length) { host_.punch(offset, length); }

  // "Look at your queue pairs": makes the service thread of this process run.
  void kick(std::uint32_t slot);

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
};

}  // namespace ib::drivers
