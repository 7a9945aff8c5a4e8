// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Kernel clients that go away, and HCAs that do: nothing stays half open.
#include "cm_world.h"
#include "drivers/root/fabric_tree.h"
#include "platform/module_host.h"

#include <optional>
#include <random>
#include <utility>

namespace ib::services::test {
namespace {

using al::CmEventKind;

// One of each: requests of a client, waiting.
struct AllOfThem {
  explicit AllOfThem(CmClient& client, CmClient& peer, std::size_t from, std::size_t to)
      : pair(test::connect(client, peer, from, to)) {
    CmWorld& w = client.world;
    get.begin(client, client.listen(kService + 1));
    event.begin(client, pair.active);
    connect.in = connect_in(w, from, to, 0x200, kService + 2);
    connect.in.remote_response_timeout = 20;
    peer_get.begin(peer, peer.listen(kService + 2));
    connect.begin(client);
    peer.listen(kService + 3, al::CmServices::Datagrams);
    resolve.in.service_id = kService + 3;
    resolve.in.path = w.path(from, to);
    resolve.begin(client);
    load.in.handle = pair.active;
    load.in.path = w.path(from, to);
    load.in.path.port = 2;
    load.in.path.sgid = w.hca(from).ports[1].gid();
    load.in.path.slid = w.hca(from).ports[1].lid;
    load.begin(client);
    EXPECT_TRUE(w.comes([&] { return peer_get.is_done(); }));
    EXPECT_EQ(done(), 0);
  }
  int done() const {
    return get.is_done() + event.is_done() + connect.is_done() + resolve.is_done() + load.is_done();
  }
  void expect(Status status) const {
    EXPECT_EQ(done(), 5);
    EXPECT_EQ(get.status(), status);
    EXPECT_EQ(event.status(), status);
    EXPECT_EQ(connect.status(), status);
    EXPECT_EQ(resolve.status(), status);
    EXPECT_EQ(load.status(), status);
  }

  Pair pair;
  GetRequest get;
  WaitEvent event;
  Connect connect;
  Resolve resolve;
  LoadPath load;
  GetRequest peer_get;
};

TEST(KernelCmLeaving, AClosedClientLeavesNothingHalfOpen) {
  CmWorld w;
  CmClient peer(w, 1);
  auto client = std::make_unique<CmClient>(w, 0);
  AllOfThem all(*client, peer, 0, 1);
  EXPECT_EQ(client->run([&](io::IrpRef irp) { client->ca.close(std::move(irp)); }),
            Status::DeviceBusy);
  bool closed = false;
  io::Irp close;
  const auto on_close = [](io::Irp&, void* context) { *static_cast<bool*>(context) = true; };
  client->cm.close(close.start(on_close, &closed));
  EXPECT_TRUE(closed);
  all.expect(Status::Cancelled);
  client.reset();

  // The peer was offered a path; then its connection ended, and the request was withdrawn.
  WaitEvent offered;
  offered.begin(peer, all.pair.passive);
  ASSERT_TRUE(w.comes([&] { return offered.is_done(); }));
  EXPECT_EQ(offered.out.kind, CmEventKind::PathOffered);
  WaitEvent ended;
  ended.begin(peer, all.pair.passive);
  ASSERT_TRUE(w.comes([&] { return ended.is_done(); }));
  EXPECT_EQ(ended.out.kind, CmEventKind::Disconnecting);
  WaitEvent withdrawn;
  withdrawn.begin(peer, all.peer_get.out.handle);
  ASSERT_TRUE(w.comes([&] { return withdrawn.is_done(); }));
  EXPECT_EQ(withdrawn.out.kind, CmEventKind::Rejected);
  peer.close();
  EXPECT_TRUE(w.comes([&] { return w.is_over(); }, std::chrono::minutes(2)));
}

TEST(KernelCmLeaving, NothingIsCalledBackAfterClose) {
  CmWorld w;
  CmClient peer(w, 1);
  auto client = std::make_unique<CmClient>(w, 0);
  AllOfThem all(*client, peer, 0, 1);
  // It closes when the first of its requests ends; Close comes last of all.
  struct Order {
    AllOfThem* all;
    CmClient* client;
    io::Irp close;
    int done_before = -1;
  } order{&all, client.get(), {}, -1};
  WaitEvent second;
  second.in.handle = all.pair.active;
  const auto on_event = [](io::Irp&, void* context) {
    auto& o = *static_cast<Order*>(context);
    o.client->cm.close(o.close.start(
        [](io::Irp&, void* c) {
          auto& self = *static_cast<Order*>(c);
          self.done_before = self.all->done();
        },
        &o));
  };
  client->cm.wait_event(second.in, second.out, second.outcome.irp.start(on_event, &order));
  second.outcome.irp.cancel();
  EXPECT_EQ(order.done_before, 5);
  EXPECT_FALSE(client->cm.is_open());
  all.expect(Status::Cancelled);
}

TEST(KernelCmLeaving, AnHcaThatIsPulledOutEndsAllRequests) {
  CmWorld w;
  CmClient peer(w, 1);
  CmClient client(w, 0);
  AllOfThem all(client, peer, 0, 1);
  EXPECT_EQ(w.eject(0), Status::Ok);
  ASSERT_TRUE(w.comes([&] { return all.done() == 5; }));
  all.expect(Status::DeviceRemoved);
  al::CmListenIn in;
  in.service_id = kService;
  EXPECT_EQ(client.run([&](io::IrpRef irp) { client.cm.listen(in, std::move(irp)); }),
            Status::DeviceRemoved);
  EXPECT_EQ(client.destroy(all.pair.active), Status::Ok);
  client.close();
  EXPECT_EQ(w.plug_in(0), Status::Ok);
  CmClient again(w, 0);
  const Pair pair = connect(again, peer, 0, 1, 0x400);
  EXPECT_NE(pair.active, 0u);
}

TEST(KernelCmLeaving, AVetoedRemovalChangesNothing) {
  CmWorld w;
  CmClient peer(w, 1);
  CmClient client(w, 0);
  const Pair pair = connect(client, peer, 0, 1);
  EXPECT_EQ(w.remove(0), Status::DeviceBusy);
  w.run();
  WaitEvent event;
  event.begin(peer, pair.passive);
  Disconnect disconnect;
  disconnect.begin(client, pair.active);
  ASSERT_TRUE(w.comes([&] { return event.is_done(); }));
  EXPECT_EQ(event.out.kind, CmEventKind::Disconnecting);
  EXPECT_EQ(peer.confirm(pair.passive), Status::Ok);
  EXPECT_TRUE(w.comes([&] { return disconnect.is_done(); }));
  EXPECT_EQ(disconnect.out.by, al::CmEndedBy::Answer);
}

// A function driver of a port's child that closes its client when the HCA is to be removed, as
// examples/driver_echo does.
class LeavingDriver final : public platform::ModuleHost {
 public:
  LeavingDriver() { current = this; }
  LeavingDriver(const LeavingDriver&) = delete;
  LeavingDriver& operator=(const LeavingDriver&) = delete;
  ~LeavingDriver() override { current = nullptr; }

  drivers::FabricTreeOptions options() {
    drivers::FabricTreeOptions options;
    options.modules = {{"leaving", io::DriverKind::Function, {"IBA\\IPoIB"}, {}, "", "leaving.so"}};
    options.loader = this;
    return options;
  }
  void open(const std::string&, const std::string&, Opened opened) override {
    opened(std::shared_ptr<platform::Module>(std::make_shared<Code>()), {});
  }

  CmClient* client = nullptr;

 private:
  struct Code final : platform::Module {
    void* symbol(const char*) override { return reinterpret_cast<void*>(&entry); }
  };
  struct Device final : io::DeviceObject {
    explicit Device(io::DriverObject& driver)
        : DeviceObject(driver, driver.name, io::DeviceKind::Functional) {}
  };
  static Status entry(io::DriverObject& driver, std::string&) {
    driver.add_device = [](io::DriverObject& self, io::DeviceNode&,
                           std::string&) -> Result<std::unique_ptr<io::DeviceObject>> {
      return std::unique_ptr<io::DeviceObject>(std::make_unique<Device>(self));
    };
    driver.on(io::Major::Pnp) = &on_pnp;
    return Status::Ok;
  }
  static void on_pnp(io::DeviceObject& device, io::IrpRef irp) {
    const bool is_query = static_cast<io::PnpMinor>(irp->code) == io::PnpMinor::QueryRemove;
    if (!is_query || current->client == nullptr) return io::pass_down(device, std::move(irp));
    current->device_ = &device;
    current->query_.emplace(std::move(irp));
    current->client->cm.close(current->step_.start(&cm_closed, current));
  }
  static void cm_closed(io::Irp&, void* context) {
    auto& self = *static_cast<LeavingDriver*>(context);
    self.client->ca.close(self.step_.start(&ca_closed, &self));
  }
  static void ca_closed(io::Irp&, void* context) {
    auto& self = *static_cast<LeavingDriver*>(context);
    self.client = nullptr;
    io::pass_down(*self.device_, *std::exchange(self.query_, std::nullopt));
  }

  static inline LeavingDriver* current = nullptr;
  io::DeviceObject* device_ = nullptr;
  std::optional<io::IrpRef> query_;
  io::Irp step_;
};

// The services let go of the HCA after the drivers of its children: the DREQ still gets out.
TEST(KernelCmLeaving, AnOrderlyRemovalTellsThePeers) {
  LeavingDriver driver;
  CmWorld w(verbs::LinkLayer::InfiniBand, {}, driver.options());
  CmClient peer(w, 1);
  CmClient client(w, 0);
  const Pair pair = test::connect(client, peer, 0, 1);
  WaitEvent told;
  told.begin(peer, pair.passive);
  driver.client = &client;
  std::string reason;
  EXPECT_EQ(w.remove(0, &reason), Status::Ok) << reason;
  EXPECT_EQ(driver.client, nullptr);
  ASSERT_TRUE(w.comes([&] { return told.is_done(); }));
  EXPECT_EQ(told.status(), Status::Ok);
  EXPECT_EQ(told.out.kind, CmEventKind::Disconnecting) << "a DREQ, not a time-out";
}

// A client that lives for a while: it does whatever is possible, and closes at any time.
class Life {
 public:
  Life(CmWorld& w, std::size_t node, std::mt19937& random)
      : w_(w), node_(node), random_(random), client_(std::make_unique<CmClient>(w, node)) {
    if (random_() % 2 == 0) {
      al::CmListenIn in;
      in.service_id = kService;
      if (client_->run([&](io::IrpRef irp) { client_->cm.listen(in, std::move(irp)); }) ==
          Status::Ok) {
        listener_ = static_cast<al::CmHandle>(client_->last_information);
      }
    }
  }

  void act() {
    switch (random_() % 16) {
      case 0:
      case 1:
      case 2: return connect();
      case 3:
      case 4: return get();
      case 5:
      case 6:
      case 7:
      case 8: return accept();
      case 9:
      case 10:
      case 11:
      case 12: return follow();
      case 13: return disconnect();
      case 14: return end_one();
      default: return cancel();
    }
  }
  // Everything ends with it.
  void close() {
    client_->close();
    for (const auto& one : connects_) EXPECT_EQ(one->outcome.times, 1);
    for (const auto& one : gets_) EXPECT_EQ(one->outcome.times, 1);
    for (const auto& one : accepts_) EXPECT_EQ(one->outcome.times, 1);
    for (const auto& one : events_) EXPECT_EQ(one->outcome.times, 1);
    for (const auto& one : disconnects_) EXPECT_EQ(one->outcome.times, 1);
  }

 private:
  static inline std::uint32_t last_qpn = 0x1000;

  void connect() {
    if (connects_.size() > 20) return;
    auto one = std::make_unique<Connect>();
    one->in = connect_in(w_, node_, 1 - node_, ++last_qpn);
    one->in.max_retries = 1;
    one->in.remote_response_timeout = one->in.local_response_timeout = 15;  // 0.13 s
    connects_.push_back(std::move(one));
    connects_.back()->begin(*client_);
  }
  void get() {
    if (listener_ == 0 || gets_.size() > 20) return;
    gets_.push_back(std::make_unique<GetRequest>());
    gets_.back()->begin(*client_, listener_);
  }
  void accept() {
    if (gets_.empty()) return;
    const GetRequest& get = *gets_[random_() % gets_.size()];
    if (!get.is_done() || get.status() != Status::Ok) return;
    auto one = std::make_unique<Accept>();
    one->in.handle = get.out.handle;
    one->in.qpn = ++last_qpn;
    accepts_.push_back(std::move(one));
    accepts_.back()->begin(*client_);
  }
  al::CmHandle any() {
    std::vector<al::CmHandle> all;
    for (const auto& one : connects_) {
      if (one->is_done() && one->status() == Status::Ok) all.push_back(one->out.handle);
    }
    for (const auto& one : gets_) {
      if (one->is_done() && one->status() == Status::Ok) all.push_back(one->out.handle);
    }
    return all.empty() ? 0 : all[random_() % all.size()];
  }
  void follow() {
    const al::CmHandle handle = any();
    if (handle == 0) return;
    static_cast<void>(random_() % 2 == 0 ? client_->establish(handle) : client_->confirm(handle));
    if (events_.size() > 20) return;
    events_.push_back(std::make_unique<WaitEvent>());
    events_.back()->begin(*client_, handle);
  }
  void disconnect() {
    const al::CmHandle handle = any();
    if (handle == 0 || disconnects_.size() > 20) return;
    disconnects_.push_back(std::make_unique<Disconnect>());
    disconnects_.back()->begin(*client_, handle);
  }
  void end_one() {
    if (const al::CmHandle handle = any()) static_cast<void>(client_->destroy(handle));
  }
  void cancel() {
    if (!connects_.empty()) connects_[random_() % connects_.size()]->cancel();
    if (!accepts_.empty() && random_() % 2 == 0) accepts_.back()->cancel();
  }

  CmWorld& w_;
  std::size_t node_;
  std::mt19937& random_;
  std::unique_ptr<CmClient> client_;
  al::CmHandle listener_ = 0;
  std::vector<std::unique_ptr<Connect>> connects_;
  std::vector<std::unique_ptr<GetRequest>> gets_;
  std::vector<std::unique_ptr<Accept>> accepts_;
  std::vector<std::unique_ptr<WaitEvent>> events_;
  std::vector<std::unique_ptr<Disconnect>> disconnects_;
};

// Returns the number of connections that one engine has established.
std::size_t established(CmWorld& w, std::size_t node) {
  const cm::Engine& engine = w.service.manager_of(w.hca(node)).engine();
  std::size_t count = 0;
  for (const cm::ConnectionId id : engine.connections()) {
    const auto info = engine.query(id);
    if (info && info->state == cm::State::Established) ++count;
  }
  return count;
}

// Lives begin and end at any time while HCAs are pulled out and ports go down. At the
// end both engines are empty, and every request has ended once.
TEST(KernelCmRandom, LivesThatEndAnywhereLeaveNothing) {
  const char* seeds = std::getenv("SOFTIB_SEEDS");
  const unsigned count = seeds != nullptr ? static_cast<unsigned>(std::atoi(seeds)) : 40;
  std::size_t most = 0;
  for (unsigned seed = 1; seed <= count; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    std::mt19937 random(seed);
    CmWorld w;
    std::array<std::vector<std::unique_ptr<Life>>, 2> lives;
    for (int step = 0; step < 500; ++step) {
      const std::size_t node = random() % 2;
      auto& mine = lives[node];
      const auto dice = random() % 100;
      if (mine.empty() || (dice < 5 && mine.size() < 3)) {
        mine.push_back(std::make_unique<Life>(w, node, random));
      } else if (dice < 8) {
        const std::size_t which = random() % mine.size();
        mine[which]->close();
        mine.erase(mine.begin() + static_cast<std::ptrdiff_t>(which));
      } else if (dice == 8 && random() % 4 == 0) {
        EXPECT_EQ(w.eject(node), Status::Ok);
        for (const auto& life : mine) life->close();
        mine.clear();
        EXPECT_EQ(w.plug_in(node), Status::Ok);
      } else if (dice == 9 && random() % 2 == 0) {
        w.set_port(node, false);
        w.run(std::chrono::milliseconds(static_cast<int>(random() % 50)));
        w.set_port(node, true);
      } else {
        mine[random() % mine.size()]->act();
      }
      w.run(std::chrono::milliseconds(static_cast<int>(random() % 3)));
      most = std::max(most, established(w, 0));
    }
    for (auto& mine : lives) {
      for (const auto& life : mine) life->close();
      mine.clear();
    }
    EXPECT_TRUE(w.comes([&] { return w.is_over(); }, std::chrono::minutes(5)))
        << w.connections() << " connections are left";
    if (testing::Test::HasFailure()) return;
  }
  EXPECT_GT(most, 0u) << "nothing was ever connected";
}

}  // namespace
}  // namespace ib::services::test
