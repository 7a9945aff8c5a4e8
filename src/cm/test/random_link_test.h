// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// RandomLink: a link that loses, doubles, reorders and delays as a seed decides, with nodes that
// vanish and MADs that nobody sent.
#pragma once

#include "cm/test/link_world_test.h"
#include "cm/test/random_choice_test.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <set>
#include <utility>
#include <vector>

namespace ib::cm::test {

class RandomLink {
 public:
  using End = std::pair<unsigned, std::uint32_t>;  // a node and its communication ID

  RandomLink(RandomChoice& random, World& world)
      : random_(random), world_(world), vanished_(world.size(), false) {
    loss_ = random_.one_of({0, 0, 5, 20, 40});
    doubles_ = random_.one_of({0, 10, 30});
    slowest_us_ = random_.one_of({200, 3000, 40000});
    hostile_ = random_.one_of({0, 0, 5, 20});
    world_.link = [this](const World::Flight& flight) { return carry(flight); };
  }
  RandomLink(const RandomLink&) = delete;
  RandomLink& operator=(const RandomLink&) = delete;
  ~RandomLink() = default;

  void vanish(unsigned node) { vanished_[node] = true; }
  bool has_vanished(unsigned node) const { return vanished_[node]; }
  void bring_all_back() { std::fill(vanished_.begin(), vanished_.end(), false); }
  // From now on it carries everything in time.
  void heal() { is_healed_ = true; }
  // A message that would have told this end was lost.
  bool was_not_told(const End& end) const { return not_told_.contains(end); }

  void attack_perhaps() {
    if (random_.happens(hostile_)) attack();
  }

 private:
  std::vector<Duration> carry(const World::Flight& flight) {
    const bool is_lost =
        vanished_[flight.from] || vanished_[flight.to] || (!is_healed_ && random_.happens(loss_));
    if (std::getenv("SOFTIB_TRACE") != nullptr) print(flight, is_lost);
    if (is_lost) {
      note_lost_end(flight);
      return {};
    }
    remember(flight);
    std::vector<Duration> arrivals{delay()};
    if (!is_healed_ && random_.happens(doubles_)) arrivals.push_back(delay());
    return arrivals;
  }
  // With SOFTIB_TRACE: the history of a seed.
  void print(const World::Flight& flight, bool is_lost) const {
    std::array<Be32, 2> ids;
    std::memcpy(&ids, flight.mad.data() + sizeof(mad::MadHeader), sizeof ids);
    std::fprintf(stderr, "%10lld us: node %u -> %u attribute %02x, IDs %08x %08x%s\n",
                 static_cast<long long>((world_.now - Instant(1h)) / 1us), flight.from, flight.to,
                 static_cast<unsigned>(attribute_of(flight.mad)), unsigned{ids[0]},
                 unsigned{ids[1]}, is_lost ? ", lost" : "");
  }
  Duration delay() {
    return is_healed_ ? World::kDelay
                      : Duration(std::chrono::microseconds(50 + random_.number(slowest_us_)));
  }
  // REJ and DREQ tell an end that the other one is over; the receiver's ID is the second field.
  void note_lost_end(const World::Flight& flight) {
    const Attribute attribute = attribute_of(flight.mad);
    if (attribute != Attribute::Rej && attribute != Attribute::Dreq) return;
    Be32 remote;
    std::memcpy(&remote, flight.mad.data() + sizeof(mad::MadHeader) + 4, sizeof remote);
    not_told_.insert({flight.to, remote});
  }

  void remember(const World::Flight& flight) {
    if (hostile_ == 0) return;
    if (seen_.size() < 16) {
      seen_.push_back(flight);
    } else {
      seen_[random_.number(16)] = flight;
    }
  }
  // A replay of what was sent once; or a changed copy, whose sender can only guess IDs; or noise.
  void attack() {
    if (seen_.empty()) return;
    World::Flight flight = seen_[random_.number(static_cast<unsigned>(seen_.size()))];
    const unsigned kind = random_.number(3);
    if (kind > 0) {
      for (unsigned i = 0; i < 1 + random_.number(8); ++i) {
        const std::size_t first = kind == 1 ? sizeof(mad::MadHeader) : 0;
        const std::size_t at = first + random_.number(static_cast<unsigned>(mad::kMadSize - first));
        flight.mad[at] = static_cast<std::byte>(random_.bits());
      }
      for (const std::size_t id : {0u, 4u, 16u, 20u, 32u}) {  // IDs, CA GUID, QPN
        for (std::size_t i = 0; i < 3; ++i) {
          flight.mad[sizeof(mad::MadHeader) + id + i] = static_cast<std::byte>(random_.bits());
        }
      }
    }
    world_.inject(flight.to, flight.mad, kind == 0 ? flight.from : random_.number(world_.size()));
  }

  RandomChoice& random_;
  World& world_;
  std::vector<bool> vanished_;
  std::vector<World::Flight> seen_;
  std::set<End> not_told_;
  unsigned loss_ = 0, doubles_ = 0, slowest_us_ = 0, hostile_ = 0;
  bool is_healed_ = false;
};

}  // namespace ib::cm::test
