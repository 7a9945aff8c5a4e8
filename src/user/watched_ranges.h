// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// WatchedRanges: the places of the regions of this process, for calls that change a mapping.
//
// Looking takes no lock and allocates nothing: an allocator may unmap memory while it holds locks
// of its own. An entry that changes under a look may be missed or reported for a range that it had
// before; a program that registers or deregisters memory while another of its threads unmaps it
// has no better right. One writer at a time (the process's control lock).
#pragma once

#include "base/sparse_table.h"
#include "hca/memory/local_keys.h"

#include <atomic>
#include <cstdint>
#include <vector>

namespace ib::user {

class WatchedRanges {
 public:
  static constexpr std::uint32_t kNotWatched = ~0u;

  WatchedRanges() = default;
  WatchedRanges(const WatchedRanges&) = delete;
  WatchedRanges& operator=(const WatchedRanges&) = delete;

  // From now on changes of [start, end) concern the region of this key. Returns its place here;
  // kNotWatched: no memory for one more.
  std::uint32_t add(std::uint32_t key, std::uint64_t start, std::uint64_t end);
  void remove(std::uint32_t place);

  // Regions that lie in [start, end) or across its ends become doubtful. Any thread.
  void doubt(hca::LocalKeys& keys, std::uint64_t start, std::uint64_t end) const;

 private:
  struct Range {
    std::atomic<std::uint64_t> start;
    std::atomic<std::uint64_t> end;  // 0: not in use
    std::atomic<std::uint32_t> key;
  };

  SparseTable<Range, hca::kMaxKeys> ranges_;
  std::atomic<std::uint32_t> used_{0};  // all places ever used are below
  // Of all ranges ever watched: most changes of mappings are elsewhere.
  std::atomic<std::uint64_t> lowest_{~std::uint64_t{0}};
  std::atomic<std::uint64_t> highest_{0};
  std::vector<std::uint32_t> free_;
};

}  // namespace ib::user
