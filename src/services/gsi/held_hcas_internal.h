// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// HeldHcas: HCAs that are to be removed and not opened meanwhile, by their GUIDs, and what waits
// until they are closed.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

namespace ib::services {

class HeldHcas {
 public:
  void hold(std::uint64_t guid) { held_.push_back(guid); }
  // Once for each hold().
  void release(std::uint64_t guid) {
    const auto held = std::ranges::find(held_, guid);
    if (held != held_.end()) held_.erase(held);
  }
  bool is_held(std::uint64_t guid) const { return std::ranges::find(held_, guid) != held_.end(); }

  void await_close(std::uint64_t guid, std::function<void()> done) {
    waiting_.emplace_back(guid, std::move(done));
  }
  // Returns what waited for this one, to be called.
  std::vector<std::function<void()>> take_waiting(std::uint64_t guid) {
    std::vector<std::function<void()>> done;
    std::erase_if(waiting_, [&](auto& entry) {
      if (entry.first != guid) return false;
      done.push_back(std::move(entry.second));
      return true;
    });
    return done;
  }

 private:
  std::vector<std::uint64_t> held_;
  std::vector<std::pair<std::uint64_t, std::function<void()>>> waiting_;
};

}  // namespace ib::services
