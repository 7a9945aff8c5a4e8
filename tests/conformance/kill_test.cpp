// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// kill -9 at random moments. Pairs of real processes exchange a mix of everything (traffic.h); one
// is killed. The other must get the end of every request within its retry time, destroy what it
// has, and leave softibd with nothing. Then the same with softibd as the victim. Both happen on
// InfiniBand and on Ethernet.
//
// SOFTIB_ROUNDS=n: n kills per path; SOFTIB_SEED=n: only that round.
#include "base/sanitizer.h"
#include "fabric.h"
#include "peer/child.h"
#include "peer/peer_socket.h"
#include "peer/programs.h"
#include "side.h"
#include "traffic.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <random>
#include <tuple>

namespace ib::conformance {
namespace {

constexpr int kTooLong = 60'000;  // ms; longer is a hang
// 4.096 us << 8, twice, is 2 ms; the rest is slack for a busy machine. The limit does not measure
// speed; it proves that no request waits for a timer of seconds.
constexpr std::uint64_t kRetryTimeAndSlack = 3'000'000'000;

std::uint64_t number_from(const char* name, std::uint64_t otherwise) {
  const char* value = std::getenv(name);
  return value == nullptr ? otherwise : std::strtoull(value, nullptr, 0);
}

struct Pair {
  Pair(const std::string& socket, const std::string& path, const std::string& node,
       std::uint64_t seed, verbs::LinkLayer expected)
      : link_layer(expected) {
    for (std::size_t i = 0; i < 2; ++i) {
      const std::string place = is_tree() && i == 1 ? kWest : node;
      process[i] = Child(
          {conformance_peer(), socket, path, place, "--traffic", std::to_string(2 * seed + i)});
    }
  }
  // Exchanges their places and starts the traffic. Ports of another link layer are a failure.
  bool begin() {
    TrafficPlace place[2];
    for (std::size_t i = 0; i < 2; ++i) {
      if (!process[i].has_output(kTooLong) ||
          !read_all(process[i].socket(), &place[i], sizeof place[i]) || place[i].ok != 1) {
        return false;
      }
      // Ports of Ethernet are reached by GID alone.
      const bool is_ethernet = place[i].way.is_global != 0;
      if (is_ethernet != (link_layer == verbs::LinkLayer::Ethernet)) return false;
    }
    for (std::size_t i = 0; i < 2; ++i) {
      if (!write_all(process[i].socket(), &place[1 - i], sizeof place[i])) return false;
    }
    std::uint8_t byte = 0;
    for (const Child& child : process) {
      if (!child.has_output(kTooLong) || !read_all(child.socket(), &byte, 1)) return false;
    }
    return write_all(process[0].socket(), &byte, 1) && write_all(process[1].socket(), &byte, 1);
  }
  verbs::LinkLayer link_layer;
  Child process[2];
};

class Kill : public ::testing::TestWithParam<const char*> {};

TEST_P(Kill, TheSurvivorLearnsOfItInTimeAndNothingIsLeft) {
  TestFabric& fabric = TestFabric::shared();
  const bool one = std::getenv("SOFTIB_SEED") != nullptr;
  const std::uint64_t first = number_from("SOFTIB_SEED", 1);
  const std::uint64_t rounds =
      one ? 1 : number_from("SOFTIB_ROUNDS", IB_ADDRESS_SANITIZER != 0 ? 40 : 100);
  std::uint64_t completed = 0;
  for (std::uint64_t seed = first; seed < first + rounds; ++seed) {
    SCOPED_TRACE("repeat with: SOFTIB_SEED=" + std::to_string(seed) +
                 " test-bin/kill_test --gtest_filter='*/" + GetParam() + "'");
    std::mt19937_64 random(seed);
    // Every other pair is joined by Ethernet, if there is one.
    const bool is_ethernet = seed % 2 == 0 && !is_tree();
    Pair pair(fabric.socket(), GetParam(), is_ethernet ? kNorth : kEast, seed,
              is_ethernet ? verbs::LinkLayer::Ethernet : verbs::LinkLayer::InfiniBand);
    ASSERT_TRUE(pair.begin());
    const std::size_t victim = random() % 2;
    Child& survivor = pair.process[1 - victim];
    // Kills at a random moment of the traffic; neither process reports before it.
    const auto moment = static_cast<int>(random() % 12);
    ASSERT_FALSE(survivor.has_output(moment)) << "it reports before anybody was killed";
    pair.process[victim].kill();
    std::uint8_t byte = 0;
    ASSERT_TRUE(write_all(survivor.socket(), &byte, 1));
    ASSERT_TRUE(survivor.has_output(kTooLong)) << "the survivor hangs";
    TrafficReport report;
    ASSERT_TRUE(read_all(survivor.socket(), &report, sizeof report)) << "the survivor crashed";
    EXPECT_EQ(report.outstanding, 0u) << "requests that never completed";
    EXPECT_EQ(report.surprises, 0u) << "completions of nothing that was outstanding";
    EXPECT_EQ(report.odd_errors, 0u) << "the first was status " << report.first_error;
    EXPECT_LT(report.waited_ns, kRetryTimeAndSlack);
    ASSERT_TRUE(write_all(survivor.socket(), &byte, 1));
    EXPECT_EQ(survivor.wait(kTooLong), 0) << "it cannot destroy what it has";
    ASSERT_EQ(fabric.wait_until_empty(), "") << "softibd still has objects";
    completed += report.completed;
    if (HasFailure()) return;
  }
  EXPECT_GT(completed, rounds);
}
INSTANTIATE_TEST_SUITE_P(Every, Kill, ::testing::Values("adopted", "process_vm", "bounce"),
                         [](const auto& tested) { return std::string(tested.param); });

// --- softibd itself ---

class Softibd {
 public:
  explicit Softibd(verbs::LinkLayer link_layer) : link_layer_(link_layer) {
    char name[] = "/tmp/softib-kill-XXXXXX";
    directory_ = ::mkdtemp(name);
  }
  ~Softibd() {
    child_.kill();
    std::error_code ignored;
    std::filesystem::remove_all(directory_, ignored);
  }
  bool start() {
    const bool is_ethernet = link_layer_ == verbs::LinkLayer::Ethernet;
    child_ = Child({kSoftibd, "--foreground", "--keep", "--link-layer",
                    is_ethernet ? "ethernet" : "infiniband", "--runtime-dir", directory_, "--log",
                    directory_ + "/log", "--ready-fd", "0"});
    return child_.lives() && child_.has_output(kTooLong) && [this] {
      char line[512] = {};
      const ssize_t got = ::recv(child_.socket(), line, sizeof line - 1, 0);
      ready_ = got > 0 ? std::string(line, static_cast<std::size_t>(got)) : std::string();
      return got > 0;
    }();
  }
  void kill() { child_.kill(); }
  const std::string& ready() const { return ready_; }
  std::string socket() const { return directory_ + "/default.sock"; }
  Side side(const char* path, bool other_process, const char* name) const {
    HostSettings settings;
    settings.socket = socket();
    settings.path = path;
    std::string reason;
    auto channel = other_process ? make_process_channel(settings, reason)
                                 : make_local_channel(settings, reason);
    if (!channel) {
      ADD_FAILURE() << reason << "; softibd said " << ready_;
      std::abort();
    }
    return Side(name, std::move(channel));
  }

 private:
  verbs::LinkLayer link_layer_;
  std::string directory_;
  std::string ready_;
  Child child_;
};

Status wait_channel(Side& side, std::uint32_t channel) {
  constexpr std::uint32_t kMilliseconds = 40000;
  return side.call(Command::WaitChannel, Message().put(channel).put(kMilliseconds)).status;
}

class KillSoftibd : public ::testing::TestWithParam<std::tuple<const char*, verbs::LinkLayer>> {
 protected:
  static const char* path() { return std::get<0>(GetParam()); }
  static verbs::LinkLayer link_layer() { return std::get<1>(GetParam()); }
};

TEST_P(KillSoftibd, ClientsGetAFatalEventFlushesAndClearErrors) {
  Softibd daemon(link_layer());
  ASSERT_TRUE(daemon.start()) << daemon.ready();
  {
    Side a = daemon.side(path(), false, "A");
    Side b = daemon.side(path(), true, "B");
    for (const Side* side : {&a, &b}) ASSERT_EQ(side->info().port.link_layer, link_layer());
    const std::uint32_t channels[] = {a.new_channel(), b.new_channel()};
    const Qp qa = a.new_qp();
    const Qp qb = b.new_qp();
    connect(qa, qb, QpType::Rc);
    const Region ma = a.region(8192);
    const Region mb = b.region(8192);
    qa.send(rdma(WrOpcode::RdmaWrite, 1, {ma.sge(0, 64)}, mb));
    (void)a.cq().one(WcStatus::Success);
    for (std::uint64_t i = 0; i < 3; ++i) {
      qa.receive(10 + i, {});
      qa.send(send_work(20 + i, {}));  // no receive is posted: they wait
    }
    daemon.kill();
    for (Side* side : {&a, &b}) {
      const auto event = side->event();
      ASSERT_TRUE(event.has_value()) << side->name();
      EXPECT_EQ(event->type, verbs::EventType::DeviceFatal);
      EXPECT_EQ(event->object, control::EventObject::Device);
    }
    // A thread that waits at a completion channel is not left there: the channel ends.
    EXPECT_EQ(wait_channel(a, channels[0]), Status::IoError);
    EXPECT_EQ(wait_channel(b, channels[1]), Status::IoError);
    std::vector<std::uint64_t> sends;
    std::vector<std::uint64_t> receives;
    for (const Completion& c : a.cq().wait(6)) {
      EXPECT_EQ(c.status, WcStatus::WrFlushErr);
      (c.wr_id >= 20 ? sends : receives).push_back(c.wr_id);
    }
    EXPECT_EQ(sends, (std::vector<std::uint64_t>{20, 21, 22}));
    EXPECT_EQ(receives, (std::vector<std::uint64_t>{10, 11, 12}));
    EXPECT_TRUE(a.cq().stays_empty());
    // Work that is posted now is flushed, too, and requests to softibd are answered.
    qa.send(send_work(40, {}));
    EXPECT_EQ(a.cq().one(WcStatus::WrFlushErr).wr_id, 40u);
    for (Side* side : {&a, &b}) {
      EXPECT_EQ(side->call(Command::AllocPd).status, Status::Disconnected);
      EXPECT_FALSE(side->reason().empty());
      EXPECT_EQ(side->call(Command::QueryPort, Message().put(std::uint32_t{1})).status,
                Status::Disconnected);
      EXPECT_EQ(side->call(Command::DestroyAll).status, Status::Ok) << side->reason();
    }
  }
  // A new softibd finds the socket and the lock of the old one and starts afresh.
  ASSERT_TRUE(daemon.start()) << daemon.ready();
  Side a = daemon.side(path(), false, "A");
  Side b = daemon.side(path(), true, "B");
  const Qp qa = a.new_qp();
  const Qp qb = b.new_qp();
  connect(qa, qb, QpType::Rc);
  qb.receive(1, {});
  qa.send(send_work(2, {}));
  (void)a.cq().one(WcStatus::Success);
  (void)b.cq().one(WcStatus::Success);
}

TEST_P(KillSoftibd, InTheMiddleOfTrafficNobodyHangs) {
  Softibd daemon(link_layer());
  for (std::uint64_t round = 0; round < 5; ++round) {
    ASSERT_TRUE(daemon.start()) << daemon.ready();
    Pair pair(daemon.socket(), path(), "", round, link_layer());
    ASSERT_TRUE(pair.begin());
    ASSERT_FALSE(pair.process[0].has_output(static_cast<int>(3 * round)));
    daemon.kill();
    std::uint8_t byte = 0;
    for (const Child& child : pair.process) ASSERT_TRUE(write_all(child.socket(), &byte, 1));
    for (Child& child : pair.process) {
      TrafficReport report;
      ASSERT_TRUE(child.has_output(kTooLong)) << "it hangs";
      ASSERT_TRUE(read_all(child.socket(), &report, sizeof report)) << "it crashed";
      EXPECT_EQ(report.outstanding, 0u);
      EXPECT_EQ(report.surprises, 0u);
      EXPECT_LT(report.waited_ns, kRetryTimeAndSlack);
      ASSERT_TRUE(write_all(child.socket(), &byte, 1));
      EXPECT_EQ(child.wait(kTooLong), 0);
    }
  }
}
INSTANTIATE_TEST_SUITE_P(
    Every, KillSoftibd,
    ::testing::Combine(::testing::Values("adopted", "process_vm", "bounce"),
                       ::testing::Values(verbs::LinkLayer::InfiniBand, verbs::LinkLayer::Ethernet)),
    [](const auto& tested) {
      const bool is_ethernet = std::get<1>(tested.param) == verbs::LinkLayer::Ethernet;
      return std::string(std::get<0>(tested.param)) + (is_ethernet ? "_ethernet" : "_infiniband");
    });

}  // namespace
}  // namespace ib::conformance
