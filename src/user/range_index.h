// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// RangeIndex: a multiset of address ranges, and whether one of them overlaps another range. All
// calls take logarithmic time, also with many ranges at one address or below one large range.
//
// Ranges of [2^n, 2^(n+1)) bytes lie in cells of 2^n bytes by their start: one reaches the end of
// its cell, and none beyond the second cell after it.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <map>
#include <set>

namespace ib::user {

class RangeIndex {
 public:
  // [start, end); nothing if that is empty.
  void add(std::uint64_t start, std::uint64_t end) {
    if (start >= end) return;
    const unsigned size = size_of(start, end);
    Cell& cell = cells_[size][start >> size];
    cell.starts.insert(start);
    cell.ends.insert(end);
  }

  // The same arguments as of an add(). Nothing if memory was short for that one.
  void remove(std::uint64_t start, std::uint64_t end) {
    if (start >= end) return;
    const unsigned size = size_of(start, end);
    const auto cell = cells_[size].find(start >> size);
    if (cell == cells_[size].end()) return;
    erase_one(cell->second.starts, start);
    erase_one(cell->second.ends, end);
    if (cell->second.starts.empty()) cells_[size].erase(cell);
  }

  bool overlaps(std::uint64_t start, std::uint64_t end) const {
    if (start >= end) return false;
    for (unsigned size = 0; size < kSizes; ++size) {
      const Cells& cells = cells_[size];
      if (cells.empty()) continue;
      const std::uint64_t own = start >> size;
      auto at = cells.lower_bound(own);
      // A range that starts in the same cell reaches `start`, a later one is above it.
      if (at != cells.end() && at->second.first_start() < end) return true;
      while (at != cells.begin() && own - (--at)->first <= kReach) {
        if (at->second.last_end() > start) return true;
      }
    }
    return false;
  }

 private:
  static constexpr unsigned kSizes = 64;
  static constexpr std::uint64_t kReach = 2;  // cells

  using Numbers = std::multiset<std::uint64_t>;
  struct Cell {
    Numbers starts;
    Numbers ends;
    std::uint64_t first_start() const {
      return starts.empty() ? ~std::uint64_t{0} : *starts.begin();
    }
    std::uint64_t last_end() const { return ends.empty() ? 0 : *ends.rbegin(); }
  };
  using Cells = std::map<std::uint64_t, Cell>;

  static unsigned size_of(std::uint64_t start, std::uint64_t end) {
    return static_cast<unsigned>(std::bit_width(end - start)) - 1;
  }

  static void erase_one(Numbers& numbers, std::uint64_t number) {
    const auto found = numbers.find(number);
    if (found != numbers.end()) numbers.erase(found);
  }

  std::array<Cells, kSizes> cells_;
};

}  // namespace ib::user
