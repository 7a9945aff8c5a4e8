// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// RandomLives: consumers on a few nodes that connect, answer, disconnect and destroy as a seed
// decides, over a link that loses, doubles, reorders and delays, among peers that vanish and MADs
// that nobody sent; and the promises that have to hold nevertheless.
//
// * Two ends agree or the one that is left has been told: an established end has an established
//   counterpart with the same values, unless the message that ended the other one was lost.
// * Each end that is over has been told so by one event, or its consumer ended it.
// * When all is destroyed, nothing is left after time-wait.
#pragma once

#include "cm/test/link_world_test.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>

namespace ib::cm::test {

class RandomLives {
 public:
  explicit RandomLives(unsigned seed, unsigned nodes)
      : random_(seed), world_(nodes, limits(), seed), vanished_(nodes, false) {
    world_.keep_sent = false;
    loss_ = one_of({0, 0, 5, 20, 40});
    doubles_ = one_of({0, 10, 30});
    slowest_us_ = one_of({200, 3000, 40000});
    hostile_ = one_of({0, 0, 5, 20});
    prompt_ = one_of({50, 90, 100});
    world_.link = [this](const World::Flight& flight) { return carry(flight); };
    world_.on_events = [this](Node& node) { take_events(node); };
    for (unsigned i = 0; i < world_.size(); ++i) {
      EXPECT_TRUE(world_[i].engine.listen({.service_id = kService}).has_value());
    }
  }

  // How often the seeds so far came to what they are for.
  struct Counts {
    unsigned pairs = 0, alone = 0, crossed = 0, peers = 0, paths = 0, delays = 0, by_data = 0;
    unsigned refused = 0, timed_out = 0, datagrams = 0;
  };
  static Counts counts;

  void run() {
    const unsigned steps = 5 + number(30);
    for (unsigned i = 0; i < steps; ++i) {
      act();
      take_all_events();
      const unsigned us[] = {0, 300, 5000, 90000};
      world_.advance(std::chrono::microseconds(us[number(4)]));
      if (happens(hostile_)) attack();
      take_all_events();
    }
    if (happens(8)) vanished_[number(world_.size())] = true;
    is_healed_ = true;
    EXPECT_TRUE(world_.settle());
    check_agreement();
    end_all();
  }

 private:
  struct Life {
    unsigned node = 0;
    ConnectionId id{};
    bool is_over = false;  // the consumer was told, or has ended it
    bool is_destroyed = false;
  };
  using End = std::pair<unsigned, std::uint32_t>;  // a node and its communication ID

  static Limits limits() {
    Limits limits;
    limits.sidr_answers = 300ms;
    return limits;
  }
  unsigned number(unsigned below) { return static_cast<unsigned>(random_() % below); }
  bool happens(unsigned percent) { return number(100) < percent; }
  unsigned one_of(std::initializer_list<unsigned> values) {
    return values.begin()[number(static_cast<unsigned>(values.size()))];
  }

  // --- the link

  std::vector<Duration> carry(const World::Flight& flight) {
    const bool is_lost =
        vanished_[flight.from] || vanished_[flight.to] || (!is_healed_ && happens(loss_));
    if (std::getenv("SOFTIB_TRACE") != nullptr) print(flight, is_lost);
    if (is_lost) {
      note_lost_end(flight);
      return {};
    }
    remember(flight);
    std::vector<Duration> arrivals{delay()};
    if (!is_healed_ && happens(doubles_)) arrivals.push_back(delay());
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
                      : Duration(std::chrono::microseconds(50 + number(slowest_us_)));
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
      seen_[number(16)] = flight;
    }
  }
  // A replay of what was sent once; or a changed copy, whose sender can only guess IDs; or noise.
  void attack() {
    if (seen_.empty()) return;
    World::Flight flight = seen_[number(static_cast<unsigned>(seen_.size()))];
    const unsigned kind = number(3);
    if (kind > 0) {
      for (unsigned i = 0; i < 1 + number(8); ++i) {
        const std::size_t first = kind == 1 ? sizeof(mad::MadHeader) : 0;
        const std::size_t at = first + number(static_cast<unsigned>(mad::kMadSize - first));
        flight.mad[at] = static_cast<std::byte>(random_());
      }
      for (const std::size_t id : {0u, 4u, 16u, 20u, 32u}) {  // IDs, CA GUID, QPN
        for (std::size_t i = 0; i < 3; ++i) {
          flight.mad[sizeof(mad::MadHeader) + id + i] = static_cast<std::byte>(random_());
        }
      }
    }
    world_.inject(flight.to, flight.mad, kind == 0 ? flight.from : number(world_.size()));
  }

  // --- the consumers

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

  void take_all_events() {
    world_.collect();
    for (unsigned i = 0; i < world_.size(); ++i) take_events(world_[i]);
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
    if (event.peer_to_peer) ++counts.peers;
    if (happens(prompt_)) answer_request(node, event.id);
  }
  void on(Node& node, const ReplyReceived& event) {
    at(node, event.id);
    if (happens(prompt_)) answer_reply(node, event.id);
  }
  void on(Node& node, const Established& event) {
    EXPECT_FALSE(at(node, event.id).is_over);
    if (event.by_data) ++counts.by_data;
    if (happens(10)) disconnect(node, event.id);
  }
  void end(Node& node, ConnectionId id) {
    Life& life = at(node, id);
    EXPECT_FALSE(life.is_over) << "an end that is told twice";
    life.is_over = true;
    if (happens(50)) destroy(life);
  }
  void on(Node& node, const Rejected& event) {
    ++counts.refused;
    end(node, event.id);
  }
  void on(Node& node, const TimedOut& event) {
    ++counts.timed_out;
    end(node, event.id);
  }
  void on(Node& node, const Disconnected& event) {
    at(node, event.id).is_over = true;  // its disconnect(), or a stale connection
    if (event.by == Disconnected::By::Crossed) ++counts.crossed;
    if (happens(50)) destroy(at(node, event.id));
  }
  void on(Node& node, const DisconnectRequested& event) {
    end(node, event.id);
    if (!happens(90)) return destroy(at(node, event.id));
    (void)node.engine.confirm_disconnect(event.id, {}, world_.now);
  }
  void on(Node& node, const TimeWaitEnded& event) {
    EXPECT_TRUE(at(node, event.id).is_over);
    EXPECT_EQ(node.state(event.id), State::Closed);
  }
  void on(Node& node, const Delayed& event) {
    at(node, event.id);
    ++counts.delays;
  }
  void on(Node& node, const AlternatePathOffered& event) {
    at(node, event.id);
    const auto status = happens(80) ? AlternatePathStatus::Loaded : AlternatePathStatus::Rejected;
    (void)node.engine.answer_alternate_path(event.id, {status, {}, {}}, world_.now);
  }
  void on(Node& node, const AlternatePathAnswered& event) {
    if (event.status != AlternatePathStatus::Loaded) return;
    ++counts.paths;
    const ConnectionInfo one = node.info(event.id);
    for (Life& life : lives_) {
      if (life.is_destroyed || vanished_[life.node]) continue;
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
    if (happens(70)) {
      (void)node.engine.answer_sidr(event.id, {.qpn = 5}, world_.now);
    }
    node.engine.destroy(event.id, world_.now);
  }
  void on(Node& node, const SidrAnswered& event) {
    ++counts.datagrams;
    node.engine.destroy(event.id, world_.now);
  }
  void on(Node& node, const SidrTimedOut& event) { node.engine.destroy(event.id, world_.now); }

  void answer_request(Node& node, ConnectionId id) {
    const unsigned choice = number(20);
    Life& life = at(node, id);
    if (life.is_destroyed) return;
    if (choice == 0) return destroy(life);
    if (choice == 1) {
      if (node.engine.reject(id, {}, world_.now) == Status::Ok) life.is_over = true;
      return;
    }
    if (choice == 2) (void)node.engine.delay(id, 12, {}, world_.now);
    (void)node.engine.accept(id, reply_with(++qpn_), world_.now);
  }
  void answer_reply(Node& node, ConnectionId id) {
    const unsigned choice = number(20);
    Life& life = at(node, id);
    if (life.is_destroyed) return;
    if (choice == 0) return destroy(life);
    if (choice == 1) {
      if (node.engine.reject(id, {}, world_.now) == Status::Ok) life.is_over = true;
      return;
    }
    if (choice == 2) (void)node.engine.delay(id, 12, {}, world_.now);
    (void)node.engine.establish(id, {}, world_.now);
  }
  void disconnect(Node& node, ConnectionId id) {
    if (node.engine.disconnect(id, {}, world_.now) == Status::Ok) at(node, id).is_over = true;
  }
  void destroy(Life& life) {
    if (life.is_destroyed) return;
    life.is_over = life.is_destroyed = true;
    world_[life.node].engine.destroy(life.id, world_.now);
  }

  // --- what consumers do of their own accord

  void connect(unsigned from, bool peer_to_peer) {
    const unsigned to = number(world_.size());
    auto request = request_between(from, to, ++qpn_);
    if (happens(20)) request.primary = roce_path_between(from, to);
    if (happens(5)) request.service_id += 1;
    request.max_cm_retries = static_cast<std::uint8_t>(number(6));
    request.peer_to_peer = peer_to_peer;
    if (peer_to_peer) request.service_id += 2;
    const auto id = world_[from].engine.connect(request, world_.now);
    ASSERT_TRUE(id.has_value());
    lives_.push_back({from, *id});
    if (peer_to_peer && from != to && happens(90)) {
      auto other = request_between(to, from, ++qpn_);
      other.primary =
          request.primary.has_lids() ? path_between(to, from) : roce_path_between(to, from);
      other.service_id = request.service_id;
      other.peer_to_peer = true;
      const auto second = world_[to].engine.connect(other, world_.now);
      ASSERT_TRUE(second.has_value());
      lives_.push_back({to, *second});
    }
  }
  void act() {
    const unsigned from = number(world_.size());
    const unsigned choice = number(10);
    if (choice < 3 || lives_.empty()) return connect(from, happens(15));
    if (choice == 3) return resolve(from);
    Life& life = lives_[number(static_cast<unsigned>(lives_.size()))];
    if (life.is_destroyed) return;
    Node& node = world_[life.node];
    switch (node.state(life.id)) {
      case State::ReqReceived:
      case State::ReqReceivedMraSent: return answer_request(node, life.id);
      case State::RepReceived:
      case State::RepReceivedMraSent: return answer_reply(node, life.id);
      case State::RepSent:
      case State::RepSentMraReceived: return data_arrives(node, life);
      case State::Established: return use(node, life);
      case State::ReqSent:
      case State::ReqSentMraReceived:
      case State::DreqSent:
      case State::DreqReceived:
      case State::TimeWait:
      case State::Closed:
        if (happens(20)) destroy(life);
    }
  }
  void use(Node& node, Life& life) {
    const ConnectionInfo info = node.info(life.id);
    const auto remote = static_cast<unsigned>(info.remote_ca_guid - guid_of(0));
    Path path = path_between(life.node, remote);
    path.slid = lid_of(life.node, 1 + number(50));
    path.dlid = lid_of(remote, 1 + number(50));
    switch (number(5)) {
      case 0: return destroy(life);
      case 1: return disconnect(node, life.id);
      case 2: (void)node.engine.path_has_migrated(life.id); break;
      default: (void)node.engine.load_alternate_path(life.id, path, {}, world_.now);
    }
  }
  void resolve(unsigned from) {
    SidrRequest request;
    request.service_id = kService + number(2);
    request.path = path_between(from, number(world_.size()));
    request.response_timeout = kResponse;
    request.max_retries = static_cast<std::uint8_t>(number(4));
    EXPECT_TRUE(world_[from].engine.resolve_sidr(request, world_.now).has_value());
  }
  // Data of the other side comes only if that side is established.
  void data_arrives(Node& node, const Life& life) {
    const ConnectionInfo info = node.info(life.id);
    for (const Life& other : lives_) {
      if (guid_of(other.node) == info.remote_ca_guid && !other.is_destroyed &&
          static_cast<std::uint32_t>(other.id) == info.remote_comm_id &&
          world_[other.node].state(other.id) == State::Established) {
        (void)node.engine.data_has_arrived(life.id, world_.now);
        return;
      }
    }
  }

  // --- the promises

  void check_agreement() {
    for (Life& life : lives_) {
      if (life.is_destroyed || vanished_[life.node]) continue;
      const ConnectionInfo info = world_[life.node].info(life.id);
      const bool is_over = info.state == State::Closed || info.state == State::TimeWait;
      EXPECT_EQ(is_over && !life.is_over, false) << "an end that nobody was told of";
      if (info.state == State::Established) check_counterpart(life, info);
    }
  }
  void check_counterpart(const Life& life, const ConnectionInfo& info) {
    const End end{life.node, info.local_comm_id};
    const auto remote = static_cast<unsigned>(info.remote_ca_guid - guid_of(0));
    ASSERT_LT(remote, world_.size());
    if (vanished_[remote]) return;
    const auto other = world_[remote].engine.query(ConnectionId{info.remote_comm_id});
    if (!other || other->state != State::Established) {
      EXPECT_TRUE(not_told_.contains(end)) << "established alone: node " << life.node;
      ++counts.alone;
      return;
    }
    ++counts.pairs;
    EXPECT_EQ(other->remote_comm_id, info.local_comm_id);
    EXPECT_EQ(other->remote_qpn, info.local_qpn);
    EXPECT_EQ(other->local_qpn, info.remote_qpn);
    EXPECT_EQ(other->send_psn, info.receive_psn);
    EXPECT_NE(other->role, info.role);
  }
  void end_all() {
    std::fill(vanished_.begin(), vanished_.end(), false);
    for (Life& life : lives_) destroy(life);
    EXPECT_TRUE(world_.settle());
    for (Life& life : lives_) destroy(life);  // requests that came late
    EXPECT_TRUE(world_.settle());
    for (unsigned i = 0; i < world_.size(); ++i) {
      EXPECT_EQ(world_[i].engine.connection_count(), 0u) << "node " << i;
      EXPECT_EQ(world_[i].engine.sidr_count(), 0u) << "node " << i;
      EXPECT_FALSE(world_[i].engine.deadline().has_value());
      EXPECT_TRUE(world_[i].events.empty());
    }
  }

  std::mt19937 random_;
  World world_;
  std::vector<bool> vanished_;
  std::vector<Life> lives_;
  std::vector<World::Flight> seen_;
  std::set<End> not_told_;
  unsigned loss_ = 0, doubles_ = 0, slowest_us_ = 0, hostile_ = 0, prompt_ = 0;
  bool is_healed_ = false;
  std::uint32_t qpn_ = 0x100;
};

inline RandomLives::Counts RandomLives::counts;

}  // namespace ib::cm::test
