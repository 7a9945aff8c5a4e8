// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The server against naive models: paths of random subnets, by trying everything; groups, by books
// that a child would keep.
#include "sa/test/server_fixture_test.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <random>
#include <set>
#include <string>
#include <tuple>

namespace ib::sa {
namespace {

class RandomWorld : public SaTest {
 protected:
  void TestBody() override {}

 public:
  explicit RandomWorld(unsigned seed) : random_(seed) { shuffle(); }

  void query_paths() {
    for (int i = 0; i < 30; ++i) query_path();
  }
  void use_groups() {
    for (int i = 0; i < 400; ++i) step();
    compare_groups();
    for (std::size_t port = 0; port < subnet.ports.size(); ++port) {
      if (subnet.ports[port].is_up) take_down(port);
    }
    EXPECT_EQ(server.groups().group_count(), 0u);
    EXPECT_EQ(server.groups().membership_count(), 0u);
  }

 private:
  unsigned roll(unsigned sides) { return static_cast<unsigned>(random_() % sides); }
  bool flip() { return roll(2) == 0; }

  void shuffle() {
    constexpr std::uint8_t kRates[]{2, 3, 5, 15, 16, 20};
    constexpr std::uint16_t kPkeys[]{0xffff, 0x7fff, 0x8001, 0x0001, 0x0000};
    for (FakePort& port : subnet.ports) {
      port.lmc = static_cast<std::uint8_t>(roll(3));
      port.mtu = static_cast<std::uint8_t>(1 + roll(5));
      port.rate = kRates[roll(6)];
      port.sl = static_cast<std::uint8_t>(roll(2));
      port.life = static_cast<std::uint8_t>(roll(4) + 10);
      port.island = roll(5) == 0 ? 1 : 0;
      port.reversible = roll(4) != 0;
      port.is_up = roll(6) != 0;
      port.pkeys.assign(1 + roll(2), 0);
      for (std::uint16_t& pkey : port.pkeys) pkey = kPkeys[roll(5)];
      if (flip()) port.gids.push_back(verbs::make_gid(kPrefix, 0x1000u + port.lid));
    }
  }

  // --- Paths ---

  static bool shares(std::uint16_t a, std::uint16_t b) {
    return (a & 0x7fff) != 0 && (a & 0x7fff) == (b & 0x7fff) && ((a | b) & 0x8000) != 0;
  }
  bool sees(std::size_t a, std::size_t b) const {
    if (a == b) return true;
    for (const auto one : subnet.ports[a].pkeys) {
      for (const auto other : subnet.ports[b].pkeys) {
        if (shares(one, other)) return true;
      }
    }
    return false;
  }
  bool has_bit(std::uint64_t bit) const { return (mask_ & bit) != 0; }

  // The best value that the selector lets through, of those that a path may be used with; -1: none.
  template <class Allowed, class Better>
  int best_of(int count, Selector selector, int wanted, Allowed allowed, Better better,
              bool by_rate) const {
    int best = -1;
    for (int value = 0; value < count; ++value) {
      if (!allowed(value)) continue;
      const int a = by_rate ? int(rate_in_100_mbps(static_cast<std::uint8_t>(value))) : value;
      const int b = by_rate ? int(rate_in_100_mbps(static_cast<std::uint8_t>(wanted))) : wanted;
      const bool fits =
          (selector == Selector::Greater && a > b) || (selector == Selector::Less && a < b) ||
          (selector == Selector::Exactly && value == wanted) || selector == Selector::Best;
      if (fits && (best < 0 || better(value, best))) best = value;
    }
    return best;
  }

  // The expected fields of paths from a to b; empty if there is none.
  struct Expected {
    int mtu = 0;
    int rate = 0;
    int life = 0;
  };
  std::optional<Expected> expect(std::size_t a, std::size_t b) const {
    const FakePort& from = subnet.ports[a];
    const FakePort& to = subnet.ports[b];
    if (!from.is_up || !to.is_up || from.island != to.island) return std::nullopt;
    if (!sees(requester_, a) || !sees(requester_, b)) return std::nullopt;
    if (has_bit(path_component::kReversible) && wanted_.reversible && !from.reversible) {
      return std::nullopt;
    }
    if (has_bit(path_component::kRawTraffic) && wanted_.raw_traffic) return std::nullopt;
    if (has_bit(path_component::kSl) && wanted_.sl != from.sl) return std::nullopt;
    bool partition = false;
    for (const auto one : from.pkeys) {
      for (const auto other : to.pkeys) {
        partition |= shares(one, other) &&
                     (!has_bit(path_component::kPkey) || (one & 0x7fff) == (wanted_.pkey & 0x7fff));
      }
    }
    if (!partition) return std::nullopt;
    const int mtu = std::min(from.mtu, to.mtu);
    const auto rate = std::min(rate_in_100_mbps(from.rate), rate_in_100_mbps(to.rate));
    const auto choose = [&](std::uint64_t bit, std::uint64_t selector_bit, Selector selector) {
      if (!has_bit(bit)) return Selector::Best;
      return has_bit(selector_bit) ? selector : Selector::Exactly;
    };
    const auto more = [](int x, int y) { return x > y; };
    const auto less = [](int x, int y) { return x < y; };
    const auto faster = [](int x, int y) {
      return rate_in_100_mbps(static_cast<std::uint8_t>(x)) >
             rate_in_100_mbps(static_cast<std::uint8_t>(y));
    };
    Expected expected;
    expected.mtu = best_of(
        64, choose(path_component::kMtu, path_component::kMtuSelector, wanted_.mtu_selector),
        wanted_.mtu, [&](int v) { return v >= 1 && v <= mtu; }, more, false);
    expected.rate = best_of(
        25, choose(path_component::kRate, path_component::kRateSelector, wanted_.rate_selector),
        wanted_.rate,
        [&](int v) {
          const auto speed = rate_in_100_mbps(static_cast<std::uint8_t>(v));
          return speed != 0 && speed <= rate;
        },
        faster, true);
    expected.life = best_of(
        64, choose(path_component::kLife, path_component::kLifeSelector, wanted_.life_selector),
        wanted_.life, [&](int v) { return v >= from.life; }, less, false);
    if (expected.mtu < 0 || expected.rate < 0 || expected.life < 0) return std::nullopt;
    return expected;
  }

  bool names_end(std::size_t port, std::uint64_t gid_bit, const verbs::Gid& gid,
                 std::uint64_t lid_bit, std::uint16_t lid) const {
    const FakePort& p = subnet.ports[port];
    if (has_bit(gid_bit) && std::find(p.gids.begin(), p.gids.end(), gid) == p.gids.end()) {
      return false;
    }
    return !has_bit(lid_bit) || (lid >= p.lid && lid < p.lid + (1 << p.lmc));
  }

  void choose_query() {
    const auto some_gid = [&] {
      const FakePort& port = subnet.ports[roll(4)];
      return port.gids[roll(static_cast<unsigned>(port.gids.size()))];
    };
    const auto some_lid = [&] { return static_cast<std::uint16_t>(10 * (1 + roll(4)) + roll(3)); };
    const auto selector = [&] { return static_cast<Selector>(roll(4)); };
    wanted_ = {};
    wanted_.sgid = some_gid();
    wanted_.dgid = some_gid();
    wanted_.slid = some_lid();
    wanted_.dlid = some_lid();
    wanted_.pkey = flip() ? 0xffff : 0x0001;
    wanted_.sl = static_cast<std::uint8_t>(roll(2));
    wanted_.reversible = flip();
    wanted_.raw_traffic = roll(4) == 0;
    wanted_.mtu_selector = selector();
    wanted_.mtu = static_cast<std::uint8_t>(roll(7));
    wanted_.rate_selector = selector();
    wanted_.rate = static_cast<std::uint8_t>(roll(26));
    wanted_.life_selector = selector();
    wanted_.life = static_cast<std::uint8_t>(roll(16));
    mask_ = 0;
    for (const std::uint64_t bit :
         {path_component::kSgid, path_component::kDgid, path_component::kSlid,
          path_component::kDlid, path_component::kReversible, path_component::kPkey,
          path_component::kSl, path_component::kMtu, path_component::kMtuSelector,
          path_component::kRate, path_component::kRateSelector, path_component::kLife,
          path_component::kLifeSelector, path_component::kRawTraffic}) {
      if (roll(3) == 0) mask_ |= bit;
    }
  }

  void query_path() {
    requester_ = roll(4);
    if (!subnet.ports[requester_].is_up) return;
    choose_query();
    const Answer answer =
        ask(requester_, method::kGetTable, attribute::kPathRecord, mask_, wanted_);
    std::map<std::pair<std::size_t, std::size_t>, std::set<std::pair<int, int>>> lids;
    for (const PathRecord& path : records<PathRecord>(answer)) {
      const auto from = subnet.find_gid(path.sgid);
      const auto to = subnet.find_gid(path.dgid);
      ASSERT_TRUE(from && to);
      const auto expected = expect(from->index, to->index);
      ASSERT_TRUE(expected.has_value()) << "a path that cannot be";
      EXPECT_EQ(path.mtu, expected->mtu);
      EXPECT_EQ(path.rate, expected->rate);
      EXPECT_EQ(path.life, expected->life);
      EXPECT_TRUE(path.slid >= from->lid && path.slid < from->lid + (1 << from->lmc));
      EXPECT_TRUE(path.dlid >= to->lid && path.dlid < to->lid + (1 << to->lmc));
      EXPECT_TRUE((lids[{from->index, to->index}].insert({path.slid, path.dlid}).second))
          << "the same path twice";
    }
    check_all_are_there(answer, lids);
  }

  void check_all_are_there(
      const Answer& answer,
      const std::map<std::pair<std::size_t, std::size_t>, std::set<std::pair<int, int>>>& lids) {
    for (std::size_t a = 0; a < subnet.ports.size(); ++a) {
      for (std::size_t b = 0; b < subnet.ports.size(); ++b) {
        const bool is_wanted = names_end(a, path_component::kSgid, wanted_.sgid,
                                         path_component::kSlid, wanted_.slid) &&
                               names_end(b, path_component::kDgid, wanted_.dgid,
                                         path_component::kDlid, wanted_.dlid) &&
                               expect(a, b).has_value();
        const auto found = lids.find({a, b});
        EXPECT_EQ(found != lids.end(), is_wanted)
            << a << " to " << b << ", mask " << mask_ << ", status " << answer.status;
        if (!is_wanted || found == lids.end()) continue;
        const auto lids_at = [&](std::size_t port, std::uint64_t named) {
          return has_bit(named) ? std::size_t{1} : std::size_t{1} << subnet.ports[port].lmc;
        };
        EXPECT_EQ(found->second.size(),
                  lids_at(a, path_component::kSlid) * lids_at(b, path_component::kDlid));
      }
    }
  }

  // --- Groups ---

  struct Book {
    std::uint16_t pkey = 0;
    std::uint8_t mtu = 0;
    std::uint8_t rate = 0;
    std::map<std::size_t, std::uint8_t> states;  // by port
  };
  bool is_in_partition(std::size_t port, std::uint16_t pkey) const {
    return (pkey & 0x7fff) != 0 &&
           std::any_of(subnet.ports[port].pkeys.begin(), subnet.ports[port].pkeys.end(),
                       [&](std::uint16_t own) { return ((own ^ pkey) & 0x7fff) == 0; });
  }

  void step() {
    const std::size_t port = roll(4);
    const auto number = static_cast<std::uint8_t>(1 + roll(3));
    const auto state = static_cast<std::uint8_t>(1 + roll(7));
    switch (roll(8)) {
      case 0:
        if (subnet.ports[port].is_up && roll(3) == 0) {
          take_down(port);
          forget(port);
        }
        break;
      case 1:
        if (!subnet.ports[port].is_up) bring_up(static_cast<std::uint32_t>(port));
        break;
      case 2:
      case 3:
        if (subnet.ports[port].is_up) leave_group(port, number, state);
        break;
      default:
        if (subnet.ports[port].is_up) join_group(port, number, state, flip());
        break;
    }
    EXPECT_EQ(server.groups().group_count(), books_.size());
  }
  void join_group(std::size_t port, std::uint8_t number, std::uint8_t state, bool creates) {
    McMemberRecord record = membership(port, mgid(number), state);
    record.pkey = flip() ? 0xffff : 0x8001;
    const std::uint64_t components = creates ? mc_component::kToCreate : mc_component::kToJoin;
    const Answer answer = ask(port, method::kSet, attribute::kMcMemberRecord, components, record);
    const FakePort& p = subnet.ports[port];
    const auto book = books_.find(number);
    bool may = false;
    if (book == books_.end()) {
      may = creates && (state & join_state::kKeepsGroup) != 0 && is_in_partition(port, record.pkey);
      if (may)
        books_[number] = {static_cast<std::uint16_t>(record.pkey | 0x8000), p.mtu, p.rate, {}};
    } else {
      const Book& b = book->second;
      may = is_in_partition(port, b.pkey) && p.mtu >= b.mtu &&
            rate_in_100_mbps(p.rate) >= rate_in_100_mbps(b.rate) &&
            (!creates || record.pkey == b.pkey);
    }
    ASSERT_EQ(answer.status == sa_status::kOk, may) << "port " << port << ", group " << int(number);
    if (!may) return;
    Book& joined = books_[number];
    joined.states[port] |= state;
    EXPECT_EQ(records<McMemberRecord>(answer).at(0).join_state, joined.states[port]);
  }
  void leave_group(std::size_t port, std::uint8_t number, std::uint8_t state) {
    const Answer answer = leave(port, mgid(number), state);
    const auto book = books_.find(number);
    const bool may = book != books_.end() && book->second.states.contains(port) &&
                     (state & ~book->second.states[port]) == 0;
    ASSERT_EQ(answer.status == sa_status::kOk, may);
    if (!may) return;
    std::uint8_t& left = book->second.states[port];
    left &= static_cast<std::uint8_t>(~state);
    if (left == 0) book->second.states.erase(port);
    close_book(number);
  }
  void close_book(std::uint8_t number) {
    for (const auto& [port, state] : books_[number].states) {
      if ((state & join_state::kKeepsGroup) != 0) return;
    }
    books_.erase(number);
  }
  void forget(std::size_t port) {
    for (std::uint8_t number = 1; number <= 3; ++number) {
      const auto book = books_.find(number);
      if (book == books_.end() || book->second.states.erase(port) == 0) continue;
      close_book(number);
    }
  }
  void compare_groups() {
    std::set<std::uint16_t> mlids;
    const auto up = std::find_if(subnet.ports.begin(), subnet.ports.end(),
                                 [](const FakePort& port) { return port.is_up; });
    if (up == subnet.ports.end()) return;
    const Answer all = ask(static_cast<std::size_t>(up - subnet.ports.begin()), method::kGetTable,
                           attribute::kMcMemberRecord, 0, McMemberRecord{}, kSmKey);
    std::size_t memberships = 0;
    for (const McMemberRecord& record : records<McMemberRecord>(all)) {
      const auto port = subnet.find_gid(record.port_gid);
      ASSERT_TRUE(port.has_value());
      const Book& book = books_.at(record.mgid[15]);
      EXPECT_EQ(record.join_state, book.states.at(port->index));
      EXPECT_EQ(record.pkey, book.pkey);
      mlids.insert(record.mlid);
      ++memberships;
    }
    std::size_t expected = 0;
    for (const auto& [number, book] : books_) expected += book.states.size();
    EXPECT_EQ(memberships, expected);
    EXPECT_EQ(mlids.size(), books_.size()) << "each group has an MLID of its own";
  }

  std::mt19937 random_;
  std::size_t requester_ = 0;
  std::uint64_t mask_ = 0;
  PathRecord wanted_;
  std::map<std::uint8_t, Book> books_;
};

template <class Run>
void for_seeds(unsigned count, const char* test, Run run) {
  const char* given = std::getenv("SA_SEED");
  const unsigned first = given != nullptr ? static_cast<unsigned>(std::atoi(given)) : 1;
  if (given != nullptr) count = 1;
  for (unsigned seed = first; seed < first + count; ++seed) {
    RandomWorld world(seed);
    run(world);
    ASSERT_FALSE(testing::Test::HasFailure())
        << "repeat: SA_SEED=" << seed << " sa_test --gtest_filter=" << test;
  }
}

TEST(ServerRandomTest, PathsAreThoseThatTryingEverythingFinds) {
  for_seeds(1000, "ServerRandomTest.Paths*", [](RandomWorld& world) { world.query_paths(); });
}
TEST(ServerRandomTest, GroupsHaveTheMembersThatJoinedAndDidNotLeave) {
  for_seeds(300, "ServerRandomTest.Groups*", [](RandomWorld& world) { world.use_groups(); });
}

}  // namespace
}  // namespace ib::sa
