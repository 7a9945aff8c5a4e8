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
#include "cm/test/random_choice_test.h"
#include "cm/test/random_consumers_test.h"
#include "cm/test/random_link_test.h"

namespace ib::cm::test {

class RandomLives {
 public:
  explicit RandomLives(unsigned seed, unsigned nodes)
      : random_(seed),
        world_(nodes, limits(), seed),
        link_(random_, world_),
        consumers_(random_, world_, link_) {
    world_.keep_sent = false;
    for (unsigned i = 0; i < world_.size(); ++i) {
      EXPECT_TRUE(world_[i].engine.listen({.service_id = kService}).has_value());
    }
  }

  void run() {
    const unsigned steps = 5 + random_.number(30);
    for (unsigned i = 0; i < steps; ++i) {
      act();
      consumers_.take_all_events();
      const unsigned us[] = {0, 300, 5000, 90000};
      world_.advance(std::chrono::microseconds(us[random_.number(4)]));
      link_.attack_perhaps();
      consumers_.take_all_events();
    }
    if (random_.happens(8)) link_.vanish(random_.number(world_.size()));
    link_.heal();
    EXPECT_TRUE(world_.settle());
    check_agreement();
    end_all();
  }

 private:
  using Life = RandomConsumers::Life;

  static Limits limits() {
    Limits limits;
    limits.sidr_answers = 300ms;
    return limits;
  }

  // --- what consumers do of their own accord

  void connect(unsigned from, bool peer_to_peer) {
    const unsigned to = random_.number(world_.size());
    auto request = request_between(from, to, consumers_.next_qpn());
    if (random_.happens(20)) request.primary = roce_path_between(from, to);
    if (random_.happens(5)) request.service_id += 1;
    request.max_cm_retries = static_cast<std::uint8_t>(random_.number(6));
    request.peer_to_peer = peer_to_peer;
    if (peer_to_peer) request.service_id += 2;
    const auto id = world_[from].engine.connect(request, world_.now);
    ASSERT_TRUE(id.has_value());
    consumers_.lives().push_back({from, *id});
    if (peer_to_peer && from != to && random_.happens(90)) {
      auto other = request_between(to, from, consumers_.next_qpn());
      other.primary =
          request.primary.has_lids() ? path_between(to, from) : roce_path_between(to, from);
      other.service_id = request.service_id;
      other.peer_to_peer = true;
      const auto second = world_[to].engine.connect(other, world_.now);
      ASSERT_TRUE(second.has_value());
      consumers_.lives().push_back({to, *second});
    }
  }
  void act() {
    const unsigned from = random_.number(world_.size());
    const unsigned choice = random_.number(10);
    if (choice < 3 || consumers_.lives().empty()) return connect(from, random_.happens(15));
    if (choice == 3) return resolve(from);
    Life& life =
        consumers_.lives()[random_.number(static_cast<unsigned>(consumers_.lives().size()))];
    if (life.is_destroyed) return;
    Node& node = world_[life.node];
    switch (node.state(life.id)) {
      case State::ReqReceived:
      case State::ReqReceivedMraSent: return consumers_.answer_request(node, life.id);
      case State::RepReceived:
      case State::RepReceivedMraSent: return consumers_.answer_reply(node, life.id);
      case State::RepSent:
      case State::RepSentMraReceived: return data_arrives(node, life);
      case State::Established: return use(node, life);
      case State::ReqSent:
      case State::ReqSentMraReceived:
      case State::DreqSent:
      case State::DreqReceived:
      case State::TimeWait:
      case State::Closed:
        if (random_.happens(20)) consumers_.destroy(life);
    }
  }
  void use(Node& node, Life& life) {
    const ConnectionInfo info = node.info(life.id);
    const auto remote = static_cast<unsigned>(info.remote_ca_guid - guid_of(0));
    Path path = path_between(life.node, remote);
    path.slid = lid_of(life.node, 1 + random_.number(50));
    path.dlid = lid_of(remote, 1 + random_.number(50));
    switch (random_.number(5)) {
      case 0: return consumers_.destroy(life);
      case 1: return consumers_.disconnect(node, life.id);
      case 2: (void)node.engine.path_has_migrated(life.id); break;
      default: (void)node.engine.load_alternate_path(life.id, path, {}, world_.now);
    }
  }
  void resolve(unsigned from) {
    SidrRequest request;
    request.service_id = kService + random_.number(2);
    request.path = path_between(from, random_.number(world_.size()));
    request.response_timeout = kResponse;
    request.max_retries = static_cast<std::uint8_t>(random_.number(4));
    EXPECT_TRUE(world_[from].engine.resolve_sidr(request, world_.now).has_value());
  }
  // Data of the other side comes only if that side is established.
  void data_arrives(Node& node, const Life& life) {
    const ConnectionInfo info = node.info(life.id);
    for (const Life& other : consumers_.lives()) {
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
    for (Life& life : consumers_.lives()) {
      if (life.is_destroyed || link_.has_vanished(life.node)) continue;
      const ConnectionInfo info = world_[life.node].info(life.id);
      const bool is_over = info.state == State::Closed || info.state == State::TimeWait;
      EXPECT_EQ(is_over && !life.is_over, false) << "an end that nobody was told of";
      if (info.state == State::Established) check_counterpart(life, info);
    }
  }
  void check_counterpart(const Life& life, const ConnectionInfo& info) {
    const RandomLink::End end{life.node, info.local_comm_id};
    const auto remote = static_cast<unsigned>(info.remote_ca_guid - guid_of(0));
    ASSERT_LT(remote, world_.size());
    if (link_.has_vanished(remote)) return;
    const auto other = world_[remote].engine.query(ConnectionId{info.remote_comm_id});
    if (!other || other->state != State::Established) {
      EXPECT_TRUE(link_.was_not_told(end)) << "established alone: node " << life.node;
      ++life_counts.alone;
      return;
    }
    ++life_counts.pairs;
    EXPECT_EQ(other->remote_comm_id, info.local_comm_id);
    EXPECT_EQ(other->remote_qpn, info.local_qpn);
    EXPECT_EQ(other->local_qpn, info.remote_qpn);
    EXPECT_EQ(other->send_psn, info.receive_psn);
    EXPECT_NE(other->role, info.role);
  }
  void end_all() {
    link_.bring_all_back();
    for (Life& life : consumers_.lives()) consumers_.destroy(life);
    EXPECT_TRUE(world_.settle());
    for (Life& life : consumers_.lives()) consumers_.destroy(life);  // requests that came late
    EXPECT_TRUE(world_.settle());
    for (unsigned i = 0; i < world_.size(); ++i) {
      EXPECT_EQ(world_[i].engine.connection_count(), 0u) << "node " << i;
      EXPECT_EQ(world_[i].engine.sidr_count(), 0u) << "node " << i;
      EXPECT_FALSE(world_[i].engine.deadline().has_value());
      EXPECT_TRUE(world_[i].events.empty());
    }
  }

  RandomChoice random_;
  World world_;
  RandomLink link_;
  RandomConsumers consumers_;
};

}  // namespace ib::cm::test
