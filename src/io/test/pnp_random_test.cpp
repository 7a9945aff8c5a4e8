// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Random schedules of devices that come and go, sleep and wake, are opened and get requests, while
// drivers refuse, delay and fail. Virtual time; a failing seed is printed and repeats the run:
//   SOFTIB_SEED=17 io_test --gtest_filter='PnpRandom.*'
#include "io/pnp_removal.h"
#include "io/test/test_tree.h"

#include <cstdlib>
#include <random>

namespace ib::io::test {
namespace {

constexpr const char* kFn = "TEST\\FN";

class Schedule : public TestTree {
 public:
  explicit Schedule(unsigned seed) : random_(seed) {
    for (const char* host : {"h0", "h1"}) hosts_.push_back(plug(*root, host, ""));
    add_driver("filter", {kFn}, DriverKind::Filter);
    begin();
  }

  void step() {
    switch (pick(12)) {
      case 0: return add_thing();
      case 1: return pull_thing();
      case 2: return ask_removal();
      case 3: return withdraw_removal();
      case 4: return on_node([&](DeviceNode& n) { pnp.surprise_remove(n.id(), count()); });
      case 5: return on_node([&](DeviceNode& n) { pnp.start({n.id()}, count()); });
      case 6:
        return on_node(
            [&](DeviceNode& n) { power.set(n.id(), static_cast<SystemPower>(pick(3)), count()); });
      case 7: return open_file();
      case 8: return close_file();
      case 9: return send_request();
      case 10: return misbehave();
      default: return pass_time();
    }
  }

  // All drivers and clients behave from now on: everything must end.
  void settle() {
    behaviour.clear();
    files_.clear();
    for (int i = 0; i < 100; ++i) {
      while (auto irp = slow.take()) (*std::move(irp)).complete(Status::Ok);
      for (Request& request : requests_) request.irp.cancel();
      (void)run();
    }
    EXPECT_EQ(started_, ended_);
    EXPECT_TRUE(tree.leaving().empty());
    for (const Request& request : requests_) EXPECT_EQ(request.times_done, 1);
    requests_.clear();
    Status last = Status::Pending;
    power.set(tree.root()->id(), SystemPower::Working, into(last));
    (void)run();
    std::vector<std::uint64_t> hosts;
    for (const auto& host : tree.root()->children()) hosts.push_back(host->id());
    pnp.remove(hosts, into(last));
    (void)run();
    EXPECT_EQ(last, Status::Ok) << reason;
    EXPECT_EQ(functions, 0u);
  }

 private:
  struct Request {
    Irp irp;
    int times_done = 0;
  };

  unsigned pick(unsigned n) { return static_cast<unsigned>(random_() % n); }
  PnpManager::Done count() {
    ++started_;
    return [this](Status, const std::string&) { ++ended_; };
  }
  template <class F>
  void on_node(F what) {
    std::vector<std::uint64_t> ids =
        DeviceTree::ids_of(*tree.root(), DeviceTree::Order::ParentsFirst);
    DeviceNode& node = *tree.find(ids[pick(static_cast<unsigned>(ids.size()))]);
    if (&node != tree.root()) what(node);
  }
  void add_thing() {
    Thing* parent = hosts_[pick(2)].get();
    if (!parent->children.empty() && pick(2) == 0) parent = parent->children.front().get();
    plug(*parent, "t" + std::to_string(next_++), pick(5) == 0 ? "TEST\\UNKNOWN" : kFn);
    ask_bus(*parent);
  }
  void pull_thing() {
    Thing* parent = hosts_[pick(2)].get();
    if (!parent->children.empty() && pick(2) == 0) parent = parent->children.front().get();
    if (parent->children.empty()) return;
    unplug(*parent, parent->children[pick(static_cast<unsigned>(parent->children.size()))]->name());
    ask_bus(*parent);
  }
  void ask_bus(const Thing& thing) {
    if (DeviceNode* asked = node(thing.name())) pnp.enumerate(asked->id(), count());
  }
  void ask_removal() {
    on_node([&](DeviceNode& n) { removal_ = pnp.remove({n.id()}, count()); });
  }
  void withdraw_removal() {
    if (removal_ != nullptr) pnp.cancel(*removal_);
  }
  void open_file() {
    on_node([&](DeviceNode& n) {
      if (!n.is_started() || files_.size() > 5) return;
      files_.push_back(std::make_unique<FileObject>(n.top(), 1, client_, nullptr));
    });
  }
  void close_file() {
    if (!files_.empty()) files_.erase(files_.begin() + pick(static_cast<unsigned>(files_.size())));
  }
  void send_request() {
    if (files_.empty()) return;
    Request& request = requests_.emplace_back();
    call_driver(
        files_[pick(static_cast<unsigned>(files_.size()))]->device(),
        request.irp.start([](Irp&, void* context) { ++static_cast<Request*>(context)->times_done; },
                          &request));
  }
  void misbehave() {
    Behaviour& b = behaviour["t" + std::to_string(pick(next_ + 1))];
    b = {};
    switch (pick(7)) {
      case 0: b.refuse_start = "no"; break;
      case 1: b.veto_remove = "no"; break;
      case 2: b.veto_power = "no"; break;
      case 3: b.fail_power_down = "no"; break;
      case 4: b.fail_wake = "no"; break;
      case 5: b.take_time = true; break;
      default: break;
    }
  }
  void pass_time() {
    if (pick(2) == 0) {
      if (auto irp = slow.take()) (*std::move(irp)).complete(Status::Ok);
    }
    (void)run(std::chrono::microseconds(pick(3000)));
  }

  std::mt19937 random_;
  std::vector<std::shared_ptr<Thing>> hosts_;
  Client client_{1, 1, 0, ""};
  std::vector<std::unique_ptr<FileObject>> files_;
  std::list<Request> requests_;
  std::shared_ptr<PnpManager::Removal> removal_;
  unsigned next_ = 0;
  int started_ = 0;
  int ended_ = 0;
};

TEST(PnpRandom, EverythingEndsAndNothingIsLeft) {
  const char* wanted = std::getenv("SOFTIB_SEED");
  const unsigned first = wanted != nullptr ? static_cast<unsigned>(std::atoi(wanted)) : 1;
  const unsigned last = wanted != nullptr ? first : 2000;
  for (unsigned seed = first; seed <= last && !testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE("SOFTIB_SEED=" + std::to_string(seed));
    Schedule schedule(seed);
    for (int i = 0; i < 150; ++i) schedule.step();
    schedule.settle();
  }
}

}  // namespace
}  // namespace ib::io::test
