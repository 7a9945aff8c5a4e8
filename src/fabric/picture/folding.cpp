// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// First stage of a picture: which elements share a box. picture.cpp makes boxes and lines of the
// result.
#include "fabric/picture/folding.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <utility>

namespace ib::fabric {
namespace {

using Key = std::vector<std::uint32_t>;

// Groups of elements, each named by its first element.
class Folder {
 public:
  Folder(const ShownSubnet& subnet, const Levels& levels, const FoldingLimits& limits)
      : subnet_(subnet),
        levels_(levels),
        limits_(limits),
        group_(subnet.elements.size()),
        is_pinned_(subnet.elements.size()) {
    std::iota(group_.begin(), group_.end(), 0u);
    for (const TopologyEnd& hop : subnet.route) {
      is_pinned_[hop.element] = true;
      const ShownPort* port = subnet.elements[hop.element].find_port(hop.port);
      if (port != nullptr && port->peer != kNoIndex) is_pinned_[port->peer] = true;
    }
    for (const std::uint32_t end : subnet.route_ends) is_pinned_[end] = true;
  }

  Folding run() {
    const bool has_many = adapter_count() > limits_.adapters;
    if (has_many) merge_adapters();
    if (levels_.are_levels) {
      merge_levels();
    } else {
      if (has_many) absorb_adapters();
      if (group_count() > limits_.boxes) cut_regions();
    }
    return result();
  }

 private:
  bool is_switch(std::uint32_t element) const { return subnet_.elements[element].is_switch; }

  std::size_t adapter_count() const {
    return static_cast<std::size_t>(
        std::count_if(subnet_.elements.begin(), subnet_.elements.end(),
                      [](const ShownElement& element) { return !element.is_switch; }));
  }

  std::size_t group_count() const {
    std::size_t count = 0;
    for (std::uint32_t i = 0; i < group_.size(); ++i) count += group_[i] == i ? 1u : 0u;
    return count;
  }

  // The groups at the other ends of the cables of each group, of those levels that `wanted` takes.
  template <class Wanted>
  std::vector<Key> neighbours(Wanted&& wanted) const {
    std::vector<Key> of(group_.size());
    for (std::uint32_t i = 0; i < group_.size(); ++i) {
      for (const ShownPort& port : subnet_.elements[i].ports) {
        if (port.peer == kNoIndex || group_[port.peer] == group_[i]) continue;
        if (wanted(i, port.peer)) of[group_[i]].push_back(group_[port.peer]);
      }
    }
    for (Key& key : of) {
      std::sort(key.begin(), key.end());
      key.erase(std::unique(key.begin(), key.end()), key.end());
    }
    return of;
  }

  // Joins the groups that `may` takes and that have the same neighbours.
  template <class May>
  void merge(const std::vector<Key>& neighbours_of, May&& may) {
    std::map<Key, std::uint32_t> first;
    std::vector<std::uint32_t> into(group_);
    for (std::uint32_t i = 0; i < group_.size(); ++i) {
      if (group_[i] != i || is_pinned_[i] || !may(i)) continue;
      into[i] = first.emplace(neighbours_of[i], i).first->second;
    }
    for (std::uint32_t& group : group_) group = into[group];
  }

  void merge_adapters() {
    merge(neighbours([](std::uint32_t, std::uint32_t) { return true; }),
          [this](std::uint32_t i) { return !is_switch(i); });
  }

  // First the leaves with the same switches above, and of all levels above them those with the same
  // ones below: what is left are the parts that a tree consists of (its pods).
  void merge_levels() {
    for (const bool is_first : {true, false}) {
      for (std::uint32_t level = 1; level <= levels_.highest; ++level) {
        if (group_count() <= limits_.boxes) return;
        const bool up = (level == 1) == is_first;
        if (up && level == levels_.highest) continue;  // nothing is above it
        merge_level(level, up);
        merge_adapters();
      }
    }
  }

  void merge_level(std::uint32_t level, bool up) {
    const auto of = neighbours([&](std::uint32_t from, std::uint32_t to) {
      return up ? levels_.of[to] > levels_.of[from] : levels_.of[to] < levels_.of[from];
    });
    merge(of, [&](std::uint32_t i) { return is_switch(i) && levels_.of[i] == level; });
  }

  // The adapters of one switch, which nothing else is joined to, go into its box.
  void absorb_adapters() {
    const auto of = neighbours([](std::uint32_t, std::uint32_t) { return true; });
    std::vector<std::uint32_t> into(group_);
    for (std::uint32_t i = 0; i < group_.size(); ++i) {
      if (group_[i] != i || is_switch(i) || is_pinned_[i] || of[i].size() != 1) continue;
      const std::uint32_t other = of[i].front();
      if (is_switch(other) && !is_pinned_[other]) into[i] = other;
    }
    for (std::uint32_t& group : group_) group = into[group];
  }

  // A region grows by the group that has the most cables into it.
  void cut_regions() {
    const std::vector<Key> of = neighbours([](std::uint32_t, std::uint32_t) { return true; });
    const std::size_t most = group_count() * 3 / limits_.boxes / 2 + 1;
    std::vector<std::uint32_t> into(group_.size(), kNoIndex);
    for (std::uint32_t first = 0; first < group_.size(); ++first) {
      if (group_[first] != first || into[first] != kNoIndex) continue;
      grow(first, of, is_pinned_[first] ? 1 : most, into);
    }
    for (std::uint32_t& group : group_) group = into[group];
  }

  void grow(std::uint32_t first, const std::vector<Key>& of, std::size_t most,
            std::vector<std::uint32_t>& into) const {
    std::map<std::uint32_t, std::uint32_t> cables;  // of each group beside the region, into it
    std::set<std::pair<std::int64_t, std::uint32_t>> best;  // the most cables first
    std::uint32_t next = first;
    std::int64_t before = 0;
    for (std::size_t size = 0; size < most; ++size) {
      into[next] = first;
      for (const std::uint32_t other : of[next]) {
        if (into[other] != kNoIndex || is_pinned_[other]) continue;
        std::uint32_t& count = cables[other];
        best.erase({-std::int64_t{count}, other});
        best.insert({-std::int64_t{++count}, other});
      }
      if (best.empty()) return;
      const auto [negative, chosen] = *best.begin();
      // The rest belongs elsewhere: the region was a group of neighbours that is complete.
      if (size >= most / 3 && -negative * 2 < before) return;
      before = -negative;
      next = chosen;
      best.erase(best.begin());
    }
  }

  Folding result() const {
    Folding folding;
    std::vector<std::uint32_t> number(group_.size(), kNoIndex);
    for (const std::uint32_t group : group_) {
      if (number[group] == kNoIndex) number[group] = folding.boxes++;
      folding.box.push_back(number[group]);
    }
    return folding;
  }

  const ShownSubnet& subnet_;
  const Levels& levels_;
  const FoldingLimits& limits_;
  std::vector<std::uint32_t> group_;  // by element
  std::vector<bool> is_pinned_;
};

}  // namespace

Levels levels_of(const ShownSubnet& subnet) {
  Levels levels;
  levels.of.assign(subnet.elements.size(), kNoIndex);
  std::vector<std::uint32_t> queue;
  for (std::uint32_t i = 0; i < subnet.elements.size(); ++i) {
    if (subnet.elements[i].is_switch) continue;
    levels.of[i] = 0;
    queue.push_back(i);
  }
  for (std::size_t i = 0; i < queue.size(); ++i) {
    for (const ShownPort& port : subnet.elements[queue[i]].ports) {
      if (port.peer == kNoIndex || levels.of[port.peer] != kNoIndex) continue;
      levels.of[port.peer] = levels.of[queue[i]] + 1;
      queue.push_back(port.peer);
    }
  }
  levels.are_levels = true;
  for (std::uint32_t i = 0; i < subnet.elements.size(); ++i) {
    if (levels.of[i] == kNoIndex) levels.of[i] = 1;  // no adapter reaches it
  }
  for (std::uint32_t i = 0; i < subnet.elements.size(); ++i) {
    levels.highest = std::max(levels.highest, levels.of[i]);
    for (const ShownPort& port : subnet.elements[i].ports) {
      if (port.peer != kNoIndex && levels.of[port.peer] == levels.of[i]) levels.are_levels = false;
    }
  }
  return levels;
}

Folding fold(const ShownSubnet& subnet, const Levels& levels, const FoldingLimits& limits) {
  return Folder(subnet, levels, limits).run();
}

}  // namespace ib::fabric
