// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Link: a way of MADs between engines in virtual time that loses, doubles, delays and so reorders
// them, as a seed decides.
#pragma once

#include "base/time.h"
#include "mad/header.h"

#include <cstdint>
#include <map>
#include <optional>
#include <random>
#include <utility>

namespace ib::mad::test {

struct LinkFaults {
  double loss = 0;
  double doubling = 0;
  Duration least_delay = std::chrono::microseconds(10);
  Duration most_delay = std::chrono::microseconds(10);  // of each packet on its own
};

class Link {
 public:
  Link(const LinkFaults& faults, std::mt19937& random) : faults_(faults), random_(random) {}

  // `to`: which end gets it.
  void send(int to, const Mad& mad, Instant now) {
    if (chance(faults_.loss)) return;
    do {
      const auto spread = (faults_.most_delay - faults_.least_delay).count();
      const Duration delay =
          faults_.least_delay +
          Duration(std::uniform_int_distribution<std::int64_t>(0, spread)(random_));
      on_its_way_.emplace(now + delay, std::pair{to, mad});
    } while (chance(faults_.doubling));
  }
  std::optional<Instant> next() const {
    if (on_its_way_.empty()) return std::nullopt;
    return on_its_way_.begin()->first;
  }
  // The next one that has arrived by now, and its end.
  std::optional<std::pair<int, Mad>> take(Instant now) {
    if (on_its_way_.empty() || on_its_way_.begin()->first > now) return std::nullopt;
    auto arrived = on_its_way_.begin()->second;
    on_its_way_.erase(on_its_way_.begin());
    return arrived;
  }

 private:
  bool chance(double probability) {
    return std::uniform_real_distribution<>(0, 1)(random_) < probability;
  }

  LinkFaults faults_;
  std::mt19937& random_;
  std::multimap<Instant, std::pair<int, Mad>> on_its_way_;
};

}  // namespace ib::mad::test
