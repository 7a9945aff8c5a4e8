// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Heap: where rings and device memory live in the tail of device memory. Best fit over offsets.
//
// allocate() returns zeroed memory. Pages of big pieces go back to the system when they are
// freed. The records are kept here, never in the shared memory itself, so clients cannot break
// them.
#pragma once

#include "base/result.h"

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

namespace ib::drivers {

// The memory behind the heap.
class HeapMemory {
 public:
  virtual ~HeapMemory() = default;
  virtual Status grow_to(std::uint64_t end,
                         std::string& reason) = 0;  // bytes below `end` exist then
  virtual void clear(std::uint64_t offset, std::uint64_t length) = 0;  // to zeros
  virtual void give_back(std::uint64_t offset,
                         std::uint64_t length) = 0;  // zeros, and costs nothing
};

class Heap {
 public:
  static constexpr std::uint64_t kGranule = 64;
  static constexpr std::uint64_t kPage = 4096;
  static constexpr std::uint64_t kGiveBack = std::uint64_t{64} * 1024;  // pieces from this size on

  // Offsets [start, space), of which nothing exists yet; `limit`: most bytes in use at a time.
  Heap(HeapMemory& memory, std::uint64_t start, std::uint64_t space, std::uint64_t step,
       std::uint64_t limit);

  // `align`: a power of two; at least kGranule, and kPage for pieces of a page and more, is given.
  // Fails with InsufficientResources, or the status of growing the file; `reason` has the words.
  Result<std::uint64_t> allocate(std::uint64_t size, std::uint64_t align, std::string& reason);
  void release(std::uint64_t offset);

  std::uint64_t used() const { return used_; }
  std::uint64_t limit() const { return limit_; }
  std::size_t pieces() const { return pieces_.size(); }

 private:
  std::optional<std::uint64_t> take_free(std::uint64_t size, std::uint64_t align);
  Status extend(std::uint64_t size, std::uint64_t align, std::string& reason);
  bool fits(std::uint64_t offset, std::uint64_t length, std::uint64_t size,
            std::uint64_t align) const;
  void add_free(std::uint64_t offset, std::uint64_t length);
  void remove_free(std::map<std::uint64_t, std::uint64_t>::iterator piece);
  void make_zero(std::uint64_t offset, std::uint64_t size);

  HeapMemory& memory_;
  std::uint64_t start_;
  std::uint64_t space_;
  std::uint64_t step_;
  std::uint64_t limit_;
  std::uint64_t end_;    // of what exists
  std::uint64_t fresh_;  // never handed out from here on
  std::uint64_t used_ = 0;
  std::map<std::uint64_t, std::uint64_t> free_;                       // offset -> length
  std::set<std::pair<std::uint64_t, std::uint64_t>> free_by_length_;  // length, offset
  std::map<std::uint64_t, std::uint64_t> pieces_;                     // in use: offset -> length
};

}  // namespace ib::drivers
