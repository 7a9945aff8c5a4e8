// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A few communication managers on one subnet in virtual time. Each has a port; what they send
// arrives after a delay, unless the test's link drops, doubles or delays it.
#pragma once

#include "cm/engine.h"
#include "cm/messages/format.h"
#include "cm/timeouts.h"

#include <gtest/gtest.h>

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace ib::cm::test {

using std::chrono_literals::operator""us;
using std::chrono_literals::operator""ms;
using std::chrono_literals::operator""s;
using std::chrono_literals::operator""h;

inline constexpr std::uint64_t kService = 0x0000'0000'0106'1d2f;  // TCP port 7471
inline constexpr std::uint8_t kLifetime = 10;                     // 4.2 ms
inline constexpr std::uint8_t kResponse = 14;                     // 67 ms
inline constexpr std::uint8_t kAckDelay = 8;
inline constexpr std::uint8_t kRetries = 3;

inline Gid gid_of(unsigned node) {
  return verbs::make_gid(0xfe80'0000'0000'0000, 0x100 + node);
}
// A port has many LIDs: the low byte counts.
inline std::uint16_t lid_of(unsigned node, unsigned plane = 0) {
  return static_cast<std::uint16_t>(plane << 8 | (node + 1));
}
inline std::uint64_t guid_of(unsigned node) {
  return 0x100 + node;
}

inline Path path_between(unsigned from, unsigned to) {
  Path path;
  path.sgid = gid_of(from);
  path.dgid = gid_of(to);
  path.slid = lid_of(from);
  path.dlid = lid_of(to);
  path.packet_lifetime = kLifetime;
  path.rate = 3;
  return path;
}
// Between Ethernet ports: by GID.
inline Path roce_path_between(unsigned from, unsigned to) {
  Path path = path_between(from, to);
  path.slid = path.dlid = kPermissiveLid;
  path.subnet_local = false;
  path.hop_limit = 64;
  return path;
}

inline ConnectRequest request_between(unsigned from, unsigned to, std::uint32_t qpn) {
  ConnectRequest request;
  request.service_id = kService;
  request.primary = path_between(from, to);
  request.qpn = qpn;
  request.starting_psn = 0xffff'00 + qpn % 256;
  request.responder_resources = 4;
  request.initiator_depth = 2;
  request.remote_cm_response_timeout = kResponse;
  request.local_cm_response_timeout = kResponse;
  request.max_cm_retries = kRetries;
  return request;
}
inline Reply reply_with(std::uint32_t qpn) {
  Reply reply;
  reply.qpn = qpn;
  reply.starting_psn = 0x10'0000 + qpn;
  reply.responder_resources = 2;
  reply.initiator_depth = 3;
  return reply;
}

inline Attribute attribute_of(const mad::Mad& mad) {
  return static_cast<Attribute>(std::uint16_t{header_of(mad).attribute});
}

struct Node {
  Node(unsigned n, const Config& config) : number(n), engine(config) {}
  unsigned number;
  Engine engine;
  std::deque<Event> events;

  // Takes the next event, which has to be of this kind.
  template <class E>
  E take() {
    E result{};
    if (events.empty()) {
      ADD_FAILURE() << "node " << number << " has no event";
      return result;
    }
    if (auto* event = std::get_if<E>(&events.front())) {
      result = *event;
    } else {
      ADD_FAILURE() << "node " << number << " has an event of kind " << events.front().index();
    }
    events.pop_front();
    return result;
  }
  State state(ConnectionId id) const {
    const auto info = engine.query(id);
    EXPECT_TRUE(info.has_value());
    return info ? info->state : State::Closed;
  }
  ConnectionInfo info(ConnectionId id) const {
    const auto result = engine.query(id);
    EXPECT_TRUE(result.has_value());
    return result ? *result : ConnectionInfo();
  }
};

class World {
 public:
  struct Flight {
    unsigned from = 0;
    unsigned to = 0;
    MadAddress address;  // as the receiver sees it
    mad::Mad mad{};
  };
  // Returns when the copies of a MAD arrive, from now; none if it is lost.
  using Link = std::function<std::vector<Duration>(const Flight& flight)>;
  static constexpr Duration kDelay = 100us;

  explicit World(unsigned nodes = 2, const Limits& limits = {}, std::uint64_t seed = 7) {
    for (unsigned i = 0; i < nodes; ++i) {
      Config config;
      config.ca_guid = guid_of(i);
      config.ack_delay = kAckDelay;
      config.seed = seed * 77 + i;
      config.limits = limits;
      all_.push_back(std::make_unique<Node>(i, config));
    }
    link = [](const Flight&) { return std::vector<Duration>{kDelay}; };
  }

  Node& operator[](unsigned i) { return *all_[i]; }
  unsigned size() const { return static_cast<unsigned>(all_.size()); }

  // Takes the outputs of all engines.
  void collect() {
    for (auto& node : all_) {
      while (const auto mad = node->engine.poll_mad()) put(*node, *mad);
      while (auto event = node->engine.poll_event()) node->events.push_back(std::move(*event));
    }
  }
  // Lets time pass until then; messages and deadlines come at their time.
  void advance(Duration time) {
    const Instant end = now + time;
    collect();
    while (true) {
      const auto next = next_time();
      if (!next || *next > end) break;
      step(*next);
    }
    now = end;
  }
  // Until nothing is under way and no deadline is left. Returns false after an hour.
  bool settle() {
    const Instant limit = now + 1h;
    collect();
    while (const auto next = next_time()) {
      if (*next > limit) return false;
      step(*next);
    }
    return true;
  }
  // Until messages stop, without deadlines.
  void deliver() {
    collect();
    while (!flights_.empty()) {
      step(flights_.begin()->first);
    }
  }
  // Somebody sends a MAD as if it came from that node.
  void inject(unsigned to, const mad::Mad& mad, unsigned from) {
    all_[to]->engine.receive(mad, address_between(from, to), now);
    collect();
  }
  static MadAddress address_between(unsigned remote, unsigned local) {
    MadAddress address;
    address.local_lid = lid_of(local);
    address.remote_lid = lid_of(remote);
    return address;
  }

  Instant now{1h};
  Link link;
  std::function<void(Node&)> on_events = [](Node&) {};  // after each step
  std::vector<Flight> sent;                             // all, in order, also lost ones

  // Attributes of what was sent since the last call.
  std::vector<Attribute> take_sent() {
    collect();
    std::vector<Attribute> attributes;
    for (const Flight& flight : std::exchange(sent, {})) {
      attributes.push_back(attribute_of(flight.mad));
    }
    return attributes;
  }
  bool keep_sent = true;

 private:
  std::optional<Instant> next_time() const {
    std::optional<Instant> next;
    if (!flights_.empty()) next = flights_.begin()->first;
    for (const auto& node : all_) {
      const auto deadline = node->engine.deadline();
      if (deadline && (!next || *deadline < *next)) next = deadline;
    }
    return next;
  }
  void step(Instant at) {
    now = std::max(now, at);
    if (!flights_.empty() && flights_.begin()->first <= now) {
      auto first = flights_.extract(flights_.begin());
      const Flight& flight = first.mapped();
      all_[flight.to]->engine.receive(flight.mad, flight.address, now);
    } else {
      for (auto& node : all_) node->engine.on_time(now);
    }
    collect();
    for (auto& node : all_) {
      if (!node->events.empty()) on_events(*node);
    }
    collect();
  }
  void put(Node& from, const OutgoingMad& mad) {
    const unsigned to = node_at(mad.to);
    if (to >= all_.size()) return;
    Flight flight{from.number, to, mad.to, mad.mad};
    std::swap(flight.address.local_lid, flight.address.remote_lid);
    std::swap(flight.address.local_gid, flight.address.remote_gid);
    flight.address.local_lid = lid_of(to);
    flight.address.remote_lid = mad.to.is_global ? 0 : lid_of(from.number);
    if (keep_sent) sent.push_back(flight);
    for (const Duration delay : link(flight)) flights_.emplace(now + delay, flight);
  }
  unsigned node_at(const MadAddress& to) const {
    for (const auto& node : all_) {
      if (to.is_global ? to.remote_gid == gid_of(node->number)
                       : (to.remote_lid & 0xff) == lid_of(node->number)) {
        return node->number;
      }
    }
    return size();
  }

  std::vector<std::unique_ptr<Node>> all_;
  std::multimap<Instant, Flight> flights_;
};

// Two nodes, the second listens.
class Pair : public testing::Test {
 protected:
  Pair() { listen(); }
  explicit Pair(const Limits& limits) : world(3, limits) { listen(); }
  void listen() {
    const auto listener = z.engine.listen({.service_id = kService});
    ASSERT_TRUE(listener.has_value());
    listener_ = *listener;
  }
  ConnectionId connect(const ConnectRequest& request) {
    const auto id = a.engine.connect(request, world.now);
    EXPECT_TRUE(id.has_value());
    return id ? *id : ConnectionId{};
  }
  ConnectionId connect(std::uint32_t qpn = 0x11) { return connect(request_between(0, 1, qpn)); }
  RequestReceived requested() {
    world.deliver();
    return z.take<RequestReceived>();
  }
  // Both ends established, and all events taken.
  std::pair<ConnectionId, ConnectionId> establish(std::uint32_t qpn = 0x11) {
    const ConnectionId active = connect(qpn);
    const ConnectionId passive = requested().id;
    EXPECT_EQ(z.engine.accept(passive, reply_with(qpn + 0x100), world.now), Status::Ok);
    world.deliver();
    EXPECT_EQ(a.take<ReplyReceived>().id, active);
    EXPECT_EQ(a.engine.establish(active, {}, world.now), Status::Ok);
    world.deliver();
    EXPECT_EQ(z.take<Established>().id, passive);
    world.take_sent();
    return {active, passive};
  }
  // The next messages of these kinds are lost.
  void lose(std::multiset<Attribute> attributes) {
    lost_ = std::move(attributes);
    world.link = [this](const World::Flight& flight) -> std::vector<Duration> {
      const auto found = lost_.find(attribute_of(flight.mad));
      if (found == lost_.end()) return {World::kDelay};
      lost_.erase(found);
      return {};
    };
  }
  void cut() {
    world.link = [](const World::Flight&) { return std::vector<Duration>(); };
  }
  void heal() {
    world.link = [](const World::Flight&) { return std::vector<Duration>{World::kDelay}; };
  }
  void expect_nothing_left() {
    EXPECT_TRUE(world.settle());
    EXPECT_EQ(a.engine.connection_count(), 0u);
    EXPECT_EQ(z.engine.connection_count(), 0u);
  }

  World world{3};
  Node& a = world[0];
  Node& z = world[1];
  ListenerId listener_{};

 private:
  std::multiset<Attribute> lost_;
};

inline const Duration kTimeWait = 2 * time_of(kLifetime) + time_of(kAckDelay);
inline const Duration kReqInterval = 2 * time_of(kLifetime) + time_of(kResponse);

inline std::vector<std::uint8_t> text(const char* chars) {
  return {chars, chars + std::char_traits<char>::length(chars)};
}
template <std::size_t N>
std::string text_of(const Bytes<N>& bytes) {
  const auto view = bytes.view();
  return {view.begin(), std::find(view.begin(), view.end(), std::uint8_t{0})};
}

}  // namespace ib::cm::test
