// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Joins against a server: shares come and go at random, answers are late or lost, ports go down and
// up. When all is quiet, the server has the memberships that the shares need.
#include "sa/client/joins.h"
#include "sa/test/server_fixture_test.h"

#include <cstdlib>
#include <deque>
#include <random>
#include <set>

namespace ib::sa {
namespace {

class JoinsWorld : public SaTest {
 protected:
  void TestBody() override {}

 public:
  explicit JoinsWorld(unsigned seed) : random_(seed) {}

  void run() {
    for (int i = 0; i < 300; ++i) step();
    settle();
    compare();
    // All shares are given back: nothing stays anywhere.
    for (const auto& [ticket, share] : shares_) joins_.leave(ticket);
    settle();
    EXPECT_EQ(joins_.membership_count(), 0u);
    EXPECT_EQ(joins_.share_count(), 0u);
    EXPECT_EQ(left_, given_back_ + shares_.size());
    EXPECT_EQ(server.groups().membership_count(), 0u);
    EXPECT_EQ(server.groups().group_count(), 0u);
  }

 private:
  struct Share {
    std::size_t port = 0;
    std::uint8_t group = 0;
    std::uint8_t state = 0;
    bool is_joined = false;
    bool is_void = false;
  };

  unsigned roll(unsigned sides) { return static_cast<unsigned>(random_() % sides); }

  void step() {
    switch (roll(6)) {
      case 0:
      case 1: join(); break;
      case 2: leave(); break;
      case 3: deliver(); break;
      case 4:
        if (roll(20) == 0) lose_port(roll(2));
        break;
      default:
        if (roll(10) == 0) joins_.on_reregister(gid(roll(2)));
        break;
    }
    collect();
  }
  void join() {
    const std::size_t port = roll(2);
    const auto group = static_cast<std::uint8_t>(1 + roll(2));
    const std::uint8_t state =
        roll(3) == 0 ? join_state::kFullMember | join_state::kNonMember : join_state::kFullMember;
    shares_[++last_] = {port, group, state};
    McMemberRecord record = membership(port, mgid(group), state);
    ASSERT_EQ(joins_.join(last_, mc_component::kToCreate, record, {}), Status::Ok);
  }
  void leave() {
    if (shares_.empty()) return;
    auto share = shares_.begin();
    std::advance(share, roll(static_cast<unsigned>(shares_.size())));
    joins_.leave(share->first);
    shares_.erase(share);
    ++given_back_;
  }
  // The port goes down and comes up: the server has dropped what it had, and so have the shares.
  void lose_port(std::size_t port) {
    take_down(port);
    joins_.on_port_lost(gid(port), Status::InvalidState, "down");
    collect();
    std::erase_if(under_way_, [&](const Outgoing& out) { return out.port_gid == gid(port); });
    bring_up(static_cast<std::uint32_t>(port));
  }
  // Answers one of the requests that are under way. Each has been heard by the server before, once
  // or twice; the answer may be lost. Requests that only lose the answer are told to have failed,
  // and for the comparison that must not happen to a join.
  void deliver() {
    if (under_way_.empty()) return;
    auto next = under_way_.begin();
    std::advance(next, roll(static_cast<unsigned>(under_way_.size())));
    const Outgoing out = *next;
    under_way_.erase(next);
    const std::size_t from = out.port_gid == gid(0) ? 0 : 1;
    Answer answer;
    for (unsigned i = 0; i <= (out.method == method::kSet ? roll(2) : 0); ++i) {
      answer = ask(from, out.method, out.attribute, out.components,
                   decode_some<McMemberRecord>(out.record));
    }
    if (out.method == method::kDelete && roll(4) == 0) {
      return joins_.on_answer(out.operation, {Status::Timeout, 0, "lost"}, {});
    }
    joins_.on_answer(out.operation, {Status::Ok, answer.status, {}}, answer.bytes);
  }
  void collect() {
    while (auto out = joins_.poll_outgoing()) under_way_.push_back(*out);
    while (const auto event = joins_.poll_event()) {
      if (const auto* joined = std::get_if<Joins::Joined>(&*event)) {
        const auto share = shares_.find(joined->ticket);
        if (share == shares_.end()) continue;
        EXPECT_FALSE(share->second.is_void);
        share->second.is_joined = joined->outcome.is_ok();
        share->second.is_void = !joined->outcome.is_ok();
      } else {
        const Ticket ticket = std::get<Joins::Left>(*event).ticket;
        EXPECT_TRUE(left_tickets_.insert(ticket).second);
        ++left_;
      }
    }
  }
  void settle() {
    collect();
    while (!under_way_.empty()) {
      deliver();
      collect();
    }
  }
  void compare() {
    std::map<std::pair<std::size_t, std::uint8_t>, std::uint8_t> needed;
    for (const auto& [ticket, share] : shares_) {
      EXPECT_TRUE(share.is_joined || share.is_void);
      if (share.is_joined) needed[{share.port, share.group}] |= share.state;
    }
    for (std::size_t port = 0; port < 2; ++port) {
      for (std::uint8_t group = 1; group <= 2; ++group) {
        const Answer answer =
            ask(port, method::kGet, attribute::kMcMemberRecord,
                mc_component::kMgid | mc_component::kPortGid, membership(port, mgid(group)));
        const std::uint8_t actual =
            answer.count == 1 ? records<McMemberRecord>(answer)[0].join_state : std::uint8_t{0};
        EXPECT_EQ(actual, (needed[{port, group}])) << "port " << port << ", group " << int(group);
      }
    }
  }

  std::mt19937 random_;
  Joins joins_;
  std::map<Ticket, Share> shares_;
  std::deque<Outgoing> under_way_;
  std::set<Ticket> left_tickets_;
  std::size_t left_ = 0;
  std::size_t given_back_ = 0;
  Ticket last_ = 0;
};

TEST(JoinsRandomTest, TheServerHasWhatTheSharesNeed) {
  const char* given = std::getenv("SA_SEED");
  const unsigned first = given != nullptr ? static_cast<unsigned>(std::atoi(given)) : 1;
  const unsigned count = given != nullptr ? 1 : 300;
  for (unsigned seed = first; seed < first + count; ++seed) {
    JoinsWorld(seed).run();
    ASSERT_FALSE(testing::Test::HasFailure())
        << "repeat: SA_SEED=" << seed << " sa_test --gtest_filter='JoinsRandomTest.*'";
  }
}

}  // namespace
}  // namespace ib::sa
