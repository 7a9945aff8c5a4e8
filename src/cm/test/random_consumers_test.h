// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// RandomConsumers: the consumers of the nodes of a world, which answer events, or do not, as a seed
// decides; and what each connection has told them.
#pragma once

#include "cm/test/link_world_test.h"
#include "cm/test/random_choice_test.h"
#include "cm/test/random_link_test.h"

#include <cstdint>
#include <utility>
#include <variant>
#include <vector>

namespace ib::cm::test {

// How often the seeds so far came to what they are for.
struct LifeCounts {
  unsigned pairs = 0, alone = 0, crossed = 0, peers = 0, paths = 0, delays = 0, by_data = 0;
  unsigned refused = 0, timed_out = 0, datagrams = 0;
};
inline LifeCounts life_counts;

class RandomConsumers {
 public:
  struct Life {
    unsigned node = 0;
    ConnectionId id{};
    bool is_over = false;  // the consumer was told, or has ended it
    bool is_destroyed = false;
  };

  RandomConsumers(RandomChoice& random, World& world, const RandomLink& link)
      : random_(random), world_(world), link_(link), prompt_(random.one_of({50, 90, 100})) {
    world_.on_events = [this](Node& node) { take_events(node); };
  }
  RandomConsumers(const RandomConsumers&) = delete;
  RandomConsumers& operator=(const RandomConsumers&) = delete;
  ~RandomConsumers() = default;

  std::vector<Life>& lives() { return lives_; }
  std::uint32_t next_qpn() { return ++qpn_; }

  void take_all_events() {
    world_.collect();
    for (unsigned i = 0; i < world_.size(); ++i) take_events(world_[i]);
  }
  void answer_request(Node& node, ConnectionId id) {
    answer(node, id, [&] { (void)node.engine.accept(id, reply_with(next_qpn()), world_.now); });
  }
  void answer_reply(Node& node, ConnectionId id) {
    answer(node, id, [&] { (void)node.engine.establish(id, {}, world_.now); });
  }
  template <class Agree>
  void answer(Node& node, ConnectionId id, const Agree& agree) {
    const unsigned choice = random_.number(20);
    Life& life = at(node, id);
    if (life.is_destroyed) return;
    if (choice == 0) return destroy(life);
    if (choice == 1) {
      if (node.engine.reject(id, {}, world_.now) == Status::Ok) life.is_over = true;
      return;
    }
    if (choice == 2) (void)node.engine.delay(id, 12, {}, world_.now);
    agree();
  }
  void disconnect(Node& node, ConnectionId id) {
    if (node.engine.disconnect(id, {}, world_.now) == Status::Ok) at(node, id).is_over = true;
  }
  void destroy(Life& life) {
    if (life.is_destroyed) return;
    life.is_over = life.is_destroyed = true;
    world_[life.node].engine.destroy(life.id, world_.now);
  }

 private:
  Life* find(unsigned node, ConnectionId id) {
    for (Life& life : lives_) {
      if (life.node == node && life.id == id) return &life;
    }
    return nullptr;
  }
  Life& at(Node& node, ConnectionId id) {
    Life* const life = find(node.number, id);
    EXPECT_NE(life, nullptr) << "an event of a connection that nobody has";
    static Life none;
    return life != nullptr ? *life : none;
  }

  void take_events(Node& node) {
    while (!node.events.empty()) {
      const Event event = std::move(node.events.front());
      node.events.pop_front();
      std::visit([&](const auto& e) { on(node, e); }, event);
      world_.collect();
    }
  }
  void on(Node& node, const RequestReceived& event) {
    if (find(node.number, event.id) == nullptr) lives_.push_back({node.number, event.id});
    if (event.peer_to_peer) ++life_counts.peers;
    if (random_.happens(prompt_)) answer_request(node, event.id);
  }
  void on(Node& node, const ReplyReceived& event) {
    at(node, event.id);
    if (random_.happens(prompt_)) answer_reply(node, event.id);
  }
  void on(Node& node, const Established& event) {
    EXPECT_FALSE(at(node, event.id).is_over);
    if (event.by_data) ++life_counts.by_data;
    if (random_.happens(10)) disconnect(node, event.id);
  }
  void end(Node& node, ConnectionId id) {
    Life& life = at(node, id);
    EXPECT_FALSE(life.is_over) << "an end that is told twice";
    life.is_over = true;
    if (random_.happens(50)) destroy(life);
  }
  void on(Node& node, const Rejected& event) {
    ++life_counts.refused;
    end(node, event.id);
  }
  void on(Node& node, const TimedOut& event) {
    ++life_counts.timed_out;
    end(node, event.id);
  }
  void on(Node& node, const Disconnected& event) {
    at(node, event.id).is_over = true;  // its disconnect(), or a stale connection
    if (event.by == Disconnected::By::Crossed) ++life_counts.crossed;
    if (random_.happens(50)) destroy(at(node, event.id));
  }
  void on(Node& node, const DisconnectRequested& event) {
    end(node, event.id);
    if (!random_.happens(90)) return destroy(at(node, event.id));
    (void)node.engine.confirm_disconnect(event.id, {}, world_.now);
  }
  void on(Node& node, const TimeWaitEnded& event) {
    EXPECT_TRUE(at(node, event.id).is_over);
    EXPECT_EQ(node.state(event.id), State::Closed);
  }
  void on(Node& node, const Delayed& event) {
    at(node, event.id);
    ++life_counts.delays;
  }
  void on(Node& node, const AlternatePathOffered& event) {
    at(node, event.id);
    const auto status =
        random_.happens(80) ? AlternatePathStatus::Loaded : AlternatePathStatus::Rejected;
    (void)node.engine.answer_alternate_path(event.id, {status, {}, {}}, world_.now);
  }
  void on(Node& node, const AlternatePathAnswered& event) {
    if (event.status != AlternatePathStatus::Loaded) return;
    ++life_counts.paths;
    const ConnectionInfo one = node.info(event.id);
    for (Life& life : lives_) {
      if (life.is_destroyed || link_.has_vanished(life.node)) continue;
      const ConnectionInfo other = world_[life.node].info(life.id);
      const bool is_counterpart = guid_of(life.node) == one.remote_ca_guid &&
                                  other.local_comm_id == one.remote_comm_id &&
                                  other.state == State::Established;
      if (is_counterpart && other.alternate && one.alternate) {
        EXPECT_EQ(other.alternate->dlid, one.alternate->slid);
      }
    }
  }
  void on(Node& node, const AlternatePathTimedOut& event) { at(node, event.id); }
  void on(Node& node, const SidrRequested& event) {
    if (random_.happens(70)) {
      (void)node.engine.answer_sidr(event.id, {.qpn = 5}, world_.now);
    }
    node.engine.destroy(event.id, world_.now);
  }
  void on(Node& node, const SidrAnswered& event) {
    ++life_counts.datagrams;
    node.engine.destroy(event.id, world_.now);
  }
  void on(Node& node, const SidrTimedOut& event) { node.engine.destroy(event.id, world_.now); }

  RandomChoice& random_;
  World& world_;
  const RandomLink& link_;
  std::vector<Life> lives_;
  unsigned prompt_;
  std::uint32_t qpn_ = 0x100;
};

}  // namespace ib::cm::test
