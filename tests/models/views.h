// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Views of threads, and the values that an atomic has had (explorer.h).
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace ib::models {

inline constexpr std::size_t kMaxPlaces = 40;
inline constexpr std::size_t kMaxThreads = 4;

using Time = std::uint64_t;  // a place in the modification order of one atomic

struct View {
  std::array<Time, kMaxPlaces> seen{};
  std::array<std::uint32_t, kMaxThreads> clock{};  // what happened before, for races

  void join_seen(const View& other) {
    for (std::size_t i = 0; i < kMaxPlaces; ++i) seen[i] = std::max(seen[i], other.seen[i]);
  }
  void join(const View& other) {
    join_seen(other);
    for (std::size_t i = 0; i < kMaxThreads; ++i) clock[i] = std::max(clock[i], other.clock[i]);
  }
};

struct Message {
  Time time = 0;
  std::uint64_t value = 0;
  bool attached = false;  // by a read-modify-write: nothing comes between it and the one before
  View view;              // what an acquire load of it takes over
};

// All values of one atomic, in modification order.
struct History {
  static constexpr Time kStep = Time{1} << 40;
  std::vector<Message> messages;

  // Whether a store may come right after the message at `index`.
  bool takes_after(std::size_t index) const {
    return index + 1 == messages.size() || !messages[index + 1].attached;
  }
  Message& insert_after(std::size_t index) {
    const Time before = messages[index].time;
    const bool last = index + 1 == messages.size();
    Message added;
    added.time = last ? before + kStep : before + (messages[index + 1].time - before) / 2;
    return *messages.insert(messages.begin() + static_cast<std::ptrdiff_t>(index) + 1, added);
  }
  std::size_t first_from(Time time) const {
    std::size_t index = messages.size() - 1;
    while (index > 0 && messages[index].time > time) --index;
    return index;
  }
};

}  // namespace ib::models
