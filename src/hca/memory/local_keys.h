// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// LocalKeys: this process's own memory regions, in private memory.
//
// Data that decides about this process's own loads and stores must not be in shared memory (see the
// trust note in layout.h). One writer at a time (the process's control lock); readers are inside
// an OpScope. An entry is removed before softibd waits for quiescence, so it is not reused under a
// reader.
#pragma once

#include "base/assert.h"
#include "base/sparse_table.h"
#include "hca/layout/tables.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

namespace ib::hca {

struct LocalKey {
  Shared32 key;  // 0: none
  std::uint32_t pd = 0;
  std::uint32_t access = 0;
  KeyKind kind = KeyKind::Region;
  std::uint64_t iova = 0;
  std::uint64_t length = 0;
  std::byte* address = nullptr;       // of iova, in this process (device memory: in the mapping)
  const RangeList* ranges = nullptr;  // Ranges: private, lives as long as the key is here
  Shared32 doubted;                   // `key`, or that of an earlier region: see is_doubtful()

  // The program has changed its mappings there. They may be anything now, and are touched only by
  // ways that return an error.
  // Relaxed: a mapping that changes while a message goes there may get it or not.
  bool is_doubtful() const {
    return doubted.load(std::memory_order_relaxed) == key.load(std::memory_order_relaxed);
  }
};

class LocalKeys {
 public:
  using Table = SparseTable<LocalKey, kMaxKeys>;

  LocalKeys() = default;
  // Returns false if there was no room for the table; then no other call is allowed.
  bool valid() const { return table_.valid(); }
  LocalKeys(const LocalKeys&) = delete;
  LocalKeys& operator=(const LocalKeys&) = delete;

  // The entry with this key, or nullptr.
  const LocalKey* find(std::uint32_t key) const {
    const std::uint32_t index = key_index(key);
    if (index >= kMaxKeys) return nullptr;
    const LocalKey& entry = table_[index];
    // Acquire, with the store of the key in user/regions.cpp, which comes after its other fields.
    return key != 0 && entry.key.load(std::memory_order_acquire) == key ? &entry : nullptr;
  }
  LocalKey& at(std::uint32_t index) const {
    IB_ASSERT(index < kMaxKeys);
    return table_[index];
  }
  // Hides a key until it is stored again.
  void hide(std::uint32_t index) {
    at(index).key.store(0, std::memory_order_seq_cst);
    hidden_.fetch_add(1, std::memory_order_seq_cst);
  }
  // From now on the region with this key is doubtful. Any thread; takes no lock, allocates nothing.
  void doubt(std::uint32_t key) {
    at(key_index(key)).doubted.store(key, std::memory_order_seq_cst);
    hidden_.fetch_add(1, std::memory_order_seq_cst);
  }
  // Goes up with hide(): what is known of keys may have become untrue.
  std::uint64_t hidden() const { return hidden_.load(std::memory_order_acquire); }

 private:
  Table table_;
  std::atomic<std::uint64_t> hidden_{1};
};

// Whether [address, address + length) lies in [base, base + size), for any values.
constexpr bool in_range(std::uint64_t address, std::uint64_t length, std::uint64_t base,
                        std::uint64_t size) {
  const std::uint64_t offset = address - base;
  return address >= base && offset <= size && length <= size - offset;
}
// The same where base + size does not wrap around.
constexpr bool in_span(std::uint64_t address, std::uint64_t length, std::uint64_t base,
                       std::uint64_t size) {
  const std::uint64_t offset = address - base;  // of an address below: more than any size here
  return offset <= size && length <= size - offset;
}
constexpr bool wraps_around(std::uint64_t base, std::uint64_t size) {
  return base + size < base;
}

}  // namespace ib::hca
