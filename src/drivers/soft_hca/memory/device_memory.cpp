// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "drivers/soft_hca/memory/device_memory.h"

#include "hca/layout/doorbell.h"

#include <cstring>
#include <new>

namespace ib::drivers {

DeviceMemory::DeviceMemory(platform::DeviceMemoryHost& host, std::uint64_t max_memory)
    : host_(host), max_memory_(max_memory) {}

Status DeviceMemory::create(std::string& reason) {
  IB_CHECK(host_.create(hca::place::kHeap, hca::kArenaSpace, reason));
  arena_ = hca::Arena(host_.base(), *this);
  heap_ = std::make_unique<Heap>(static_cast<HeapMemory&>(*this), hca::place::kHeap, host_.space(),
                                 hca::kHeapStep, max_memory_);
  auto* header = new (host_.base()) hca::ArenaHeader;
  header->version = hca::kLayoutVersion;
  header->size.store(host_.size());
  header->closed.store(0);
  header->daemon_pid = host_.pid();
  header->slots_used.store(0);
  header->fenced_entries.store(host_.barriers().join() ? 0 : 1);
  header->magic = hca::kArenaMagic;
  return Status::Ok;
}

Status DeviceMemory::grow_to(std::uint64_t end, std::string& reason) {
  IB_CHECK(host_.grow(end, reason));
  arena_.header().size.store(end, std::memory_order_release);
  return Status::Ok;
}

void DeviceMemory::clear(std::uint64_t offset, std::uint64_t length) {
  std::byte* bytes = arena_.heap(offset, length);
  IB_ASSERT(bytes != nullptr);
  std::memset(bytes, 0, static_cast<std::size_t>(length));
}

void DeviceMemory::kick(std::uint32_t slot) {
  hca::ProcessSlot* process = arena_.slot(slot);
  if (process == nullptr || process->live.load() == 0) return;
  process->attention.fetch_add(1, std::memory_order_release);
  process->doorbell.fetch_add(1, std::memory_order_seq_cst);
  // Always, and not only if `waiting` is set: a kick from here is rare, a lost one is a hang.
  host_.wake(process->doorbell);
  std::uint32_t listens = hca::kListens;
  if (process->waiting.compare_exchange_strong(listens, 0) && on_attention_) on_attention_(slot);
}

}  // namespace ib::drivers
