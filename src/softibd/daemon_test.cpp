// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The whole daemon, on a thread of this process, as its clients see it.
#include "softibd/daemon.h"

#include "linux/client/client_channel.h"
#include "services/gsi/gsi.h"
#include "setup/fabric_shape.h"
#include "softibd/in_process_daemon.h"
#include "verbs/control_status.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <future>
#include <iterator>
#include <memory>
#include <thread>
#include <vector>

namespace ib::softib {
namespace {

namespace control = verbs::control;
using control::Code;
using platform::ControlChannel;
using platform::ControlReply;
using namespace std::chrono_literals;

template <class In>
std::span<const std::byte> bytes_of(const In& in) {
  return std::as_bytes(std::span(&in, 1));
}
ControlReply call(ControlChannel& channel, Code code, std::uint32_t file = 0,
                  std::span<const std::byte> in = {}, std::span<std::byte> out = {}) {
  return channel.call(static_cast<std::uint32_t>(code), file, in, out);
}

class DaemonTest : public ::testing::Test {
 protected:
  void start(DaemonOptions options) {
    std::string reason;
    auto started = InProcessDaemon::start(std::move(options), reason);
    ASSERT_TRUE(started) << reason;
    daemon = *std::move(started);
  }
  static DaemonOptions kept() {
    DaemonOptions options;
    options.keep = true;
    return options;
  }
  static DaemonOptions hasty() {
    DaemonOptions options;
    options.idle_exit = 20ms;
    options.first_client = 100ms;
    return options;
  }
  std::unique_ptr<ControlChannel> connect() {
    std::string reason;
    auto channel = os::connect_channel(daemon->socket_path(), reason);
    EXPECT_TRUE(channel) << reason;
    return channel ? *std::move(channel) : nullptr;
  }
  static control::AttachOut attach(ControlChannel& channel, const char* node = "") {
    control::AttachIn in;
    std::strncpy(in.node.data(), node, in.node.size() - 1);
    std::strcpy(in.program.data(), "daemon_test");
    control::AttachOut out;
    const ControlReply reply =
        call(channel, Code::Attach, 0, bytes_of(in), std::as_writable_bytes(std::span(&out, 1)));
    EXPECT_EQ(reply.status, Status::Ok) << reply.reason;
    EXPECT_TRUE(reply.handles[0].valid());
    return out;
  }
  static ControlReply open(ControlChannel& channel, const std::string& path,
                           control::OpenOut& out) {
    control::OpenIn in;
    std::strncpy(in.path.data(), path.c_str(), in.path.size() - 1);
    return call(channel, Code::Open, 0, bytes_of(in), std::as_writable_bytes(std::span(&out, 1)));
  }
  bool ends_within(Duration limit) const {
    for (Duration waited = 0ms; waited < limit; waited += 5ms) {
      if (daemon->has_ended()) return true;
      // tidy: allow(sleep) time itself is what is tested, or a poll with a deadline
      std::this_thread::sleep_for(5ms);
    }
    return daemon->has_ended();
  }

  std::unique_ptr<InProcessDaemon> daemon;
};

TEST_F(DaemonTest, ServesAProcessFromAttachToClose) {
  start(kept());
  const auto channel = connect();
  EXPECT_EQ(call(*channel, Code::Ping).status, Status::Ok);
  control::OpenOut opened;
  EXPECT_EQ(open(*channel, "\\Device\\ibal", opened).status, Status::InvalidState);
  const control::AttachOut attached = attach(*channel);
  EXPECT_STREQ(attached.node.data(), "node0");
  ASSERT_EQ(attached.ca_count, 1u);

  const ControlReply reply = open(*channel, "\\Device\\ibal", opened);
  ASSERT_EQ(reply.status, Status::Ok) << reply.reason;
  EXPECT_EQ(opened.ca.node_guid, attached.cas[0].node_guid);
  const auto file = static_cast<std::uint32_t>(reply.information);
  control::CaAttr attr;
  const ControlReply query =
      call(*channel, Code::QueryCa, file, {}, std::as_writable_bytes(std::span(&attr, 1)));
  EXPECT_EQ(query.status, Status::Ok) << query.reason;
  EXPECT_EQ(query.out_size, sizeof(attr));
  EXPECT_EQ(attr.node_guid, attached.cas[0].node_guid);

  const control::CloseIn close{file, 0};
  EXPECT_EQ(call(*channel, Code::Close, 0, bytes_of(close)).status, Status::Ok);
  EXPECT_EQ(call(*channel, Code::QueryCa, file).status, Status::NotFound);
}

TEST_F(DaemonTest, NodesSeeTheirOwnHcas) {
  DaemonOptions options = kept();
  options.shape.nodes = {"a", "b"};
  options.shape.hcas_per_node = 2;
  start(std::move(options));
  const auto channel = connect();
  const auto other = connect();
  const control::AttachOut a = attach(*channel, "a");
  const control::AttachOut b = attach(*other, "b");
  ASSERT_EQ(a.ca_count, 2u);
  control::OpenOut opened;
  EXPECT_EQ(open(*channel, "\\Device\\ibal", opened).status, Status::InvalidParameter);
  for (const control::CaName& ca : {a.cas[0], a.cas[1]}) {
    std::array<char, 64> path{};
    std::snprintf(path.data(), path.size(), "\\Device\\ibal\\%016llx",
                  static_cast<unsigned long long>(ca.node_guid));
    EXPECT_EQ(open(*channel, path.data(), opened).status, Status::Ok);
    EXPECT_EQ(opened.ca.node_guid, ca.node_guid);
    EXPECT_EQ(open(*other, path.data(), opened).status, Status::NotFound);
  }
  EXPECT_STREQ(b.node.data(), "b");
}

TEST_F(DaemonTest, StatusNamesTheFabricAndWhetherItIsKept) {
  start(kept());
  const auto channel = connect();
  const auto text = [&] {
    const ControlReply reply = call(*channel, Code::Status);
    std::array<char, 200> buffer{};
    EXPECT_GT(::pread(reply.handles[0].get(), buffer.data(), buffer.size() - 1, 0), 0);
    return std::string(buffer.data());
  };
  EXPECT_EQ(
      text().find(
          "{\n  \"fabric\": \"default\",\n  \"link_layer\": \"infiniband\",\n  \"kept\": true,\n"),
      0u)
      << text();
  const control::KeepIn keep{0, 0};
  EXPECT_EQ(call(*channel, Code::Keep, 0, bytes_of(keep)).status, Status::Ok);
  EXPECT_NE(text().find("\"kept\": false"), std::string::npos);
}

TEST_F(DaemonTest, StatusHasOneNodeOrNoneIfThatIsAllThatIsWanted) {
  DaemonOptions options = kept();
  options.shape.nodes = {"a", "b", "c"};
  options.shape.ports_per_hca = 2;
  start(std::move(options));
  const auto channel = connect();
  const auto state = [&](std::span<const std::byte> in) {
    const ControlReply reply = call(*channel, Code::Status, 0, in);
    EXPECT_EQ(reply.status, Status::Ok) << reply.reason;
    std::string text(reply.information != 0 ? reply.information : 64 << 10, ' ');
    EXPECT_GT(::pread(reply.handles[0].get(), text.data(), text.size(), 0), 0);
    return nlohmann::json::parse(text);
  };
  const auto part = [&](const char* node, std::uint32_t number = ~0u) {
    control::StatusIn in;
    std::strncpy(in.node.data(), node, in.node.size() - 1);
    in.number = number;
    return state(bytes_of(in));
  };
  const nlohmann::json all = state({});
  ASSERT_EQ(all["nodes"].size(), 3u);
  EXPECT_EQ(part("")["nodes"].size(), 0u);
  EXPECT_EQ(part("nowhere", 0)["nodes"].size(), 0u);
  EXPECT_EQ(part("", 3)["nodes"].size(), 0u);
  for (const nlohmann::json& one : {part("c"), part("", 2), part("c", 0)}) {
    ASSERT_EQ(one["nodes"].size(), 1u);
    EXPECT_EQ(one["nodes"][0], all["nodes"][2]);
    EXPECT_EQ(one["shape"], all["shape"]);
    EXPECT_EQ(one.size(), all.size());
  }
  EXPECT_EQ(all["shape"]["nodes"], 3);
  EXPECT_EQ(all["shape"]["hcas"], 3);
  EXPECT_EQ(all["shape"]["hcas_per_node"], nlohmann::json::array({1, 1}));
  EXPECT_EQ(all["shape"]["ports_per_hca"], nlohmann::json::array({2, 2}));
  EXPECT_EQ(all["shape"]["names_digest"], names_digest({"a", "b", "c"}));
  EXPECT_EQ(call(*channel, Code::Status, 0, bytes_of(control::KeepIn{})).status, Status::Malformed);
}

TEST_F(DaemonTest, ANodeHasDevicesFromItsFirstProgramOn) {
  DaemonOptions options = kept();
  options.shape.nodes = {"a", "b"};
  start(std::move(options));
  const auto has_devices = [&](const char* node) {
    bool found = false;
    daemon->on_loop([&] {
      std::string reason;
      found = static_cast<bool>(daemon->access_layer().resolve(node, "\\Device\\ibal", reason));
    });
    return found;
  };
  EXPECT_FALSE(has_devices("a"));
  auto channel = connect();
  attach(*channel, "a");
  EXPECT_TRUE(has_devices("a"));
  EXPECT_FALSE(has_devices("b"));
}

TEST_F(DaemonTest, GoesIfNoClientComes) {
  start(hasty());
  EXPECT_TRUE(ends_within(2s));
  EXPECT_FALSE(std::filesystem::exists(daemon->socket_path()));
}

TEST_F(DaemonTest, GoesAfterItsLastClient) {
  start(hasty());
  auto channel = connect();
  attach(*channel);
  auto watcher = connect();
  // tidy: allow(sleep) time itself is what is tested, or a poll with a deadline
  std::this_thread::sleep_for(200ms);
  channel.reset();
  // tidy: allow(sleep) time itself is what is tested, or a poll with a deadline
  std::this_thread::sleep_for(60ms);
  EXPECT_FALSE(daemon->has_ended());  // somebody is still connected
  watcher.reset();
  EXPECT_TRUE(ends_within(2s));
}

TEST_F(DaemonTest, ToolsThatOnlyLookAreNotTheClientItWaitsFor) {
  DaemonOptions options = hasty();
  options.first_client = 300ms;
  start(std::move(options));
  EXPECT_EQ(call(*connect(), Code::Ping).status, Status::Ok);
  // tidy: allow(sleep) time itself is what is tested, or a poll with a deadline
  std::this_thread::sleep_for(100ms);
  EXPECT_FALSE(daemon->has_ended());
  EXPECT_TRUE(ends_within(2s));
}

TEST_F(DaemonTest, KeepHoldsItAndLetsItGo) {
  start(hasty());
  control::KeepIn keep{1, 0};
  EXPECT_EQ(call(*connect(), Code::Keep, 0, bytes_of(keep)).status, Status::Ok);
  // tidy: allow(sleep) time itself is what is tested, or a poll with a deadline
  std::this_thread::sleep_for(200ms);
  EXPECT_FALSE(daemon->has_ended());
  keep.keep = 0;
  EXPECT_EQ(call(*connect(), Code::Keep, 0, bytes_of(keep)).status, Status::Ok);
  EXPECT_TRUE(ends_within(2s));
}

TEST_F(DaemonTest, GoesNowIfNobodyElseIsConnected) {
  DaemonOptions options = hasty();
  options.first_client = options.idle_exit = 100s;
  start(std::move(options));
  const control::KeepIn now{0, 1};
  auto other = connect();
  EXPECT_EQ(call(*connect(), Code::Keep, 0, bytes_of(now)).status, Status::DeviceBusy);
  EXPECT_EQ(call(*other, Code::Keep, 0, bytes_of(control::KeepIn{1, 0})).status, Status::Ok);
  EXPECT_EQ(call(*other, Code::Keep, 0, bytes_of(now)).status, Status::DeviceBusy);
  EXPECT_EQ(call(*other, Code::Keep, 0, bytes_of(control::KeepIn{0, 0})).status, Status::Ok);
  // Programs that have ended do not count, however busy the loop is.
  std::vector<std::unique_ptr<ControlChannel>> gone;
  for (int i = 0; i < 100; ++i) gone.push_back(connect());
  gone.clear();
  EXPECT_EQ(call(*other, Code::Keep, 0, bytes_of(now)).status, Status::Ok);
  EXPECT_TRUE(ends_within(2s));
}

TEST_F(DaemonTest, ShutdownEndsClientsThatWait) {
  start(kept());
  const auto waiting = connect();
  const control::AttachOut attached = attach(*waiting);
  const auto events = connect();
  ControlReply event;
  std::thread waiter([&] {
    const control::GenerationIn in{attached.slot, attached.slot_generation};
    control::EventOut out;
    event =
        call(*events, Code::WaitEvent, 0, bytes_of(in), std::as_writable_bytes(std::span(&out, 1)));
  });
  // tidy: allow(sleep) time itself is what is tested, or a poll with a deadline
  std::this_thread::sleep_for(20ms);
  EXPECT_EQ(call(*connect(), Code::Shutdown).status, Status::Ok);
  waiter.join();
  EXPECT_NE(event.status, Status::Ok);
  EXPECT_TRUE(ends_within(2s));
  EXPECT_EQ(call(*waiting, Code::Ping).status, Status::Disconnected);
  EXPECT_EQ(daemon->stop(), DaemonExit::Ended);
}

TEST_F(DaemonTest, ASecondOneOfTheSameNameIsRefused) {
  start(kept());
  DaemonOptions options = kept();
  options.runtime_dir = daemon->runtime_dir();
  std::string reason;
  const auto log = no_log();
  EXPECT_EQ(Daemon::create(options, *log, reason).error(), Status::AlreadyExists);
  EXPECT_NE(reason.find("already up (softibd, pid " + std::to_string(::getpid())),
            std::string::npos)
      << reason;
  options.fabric = "other";
  EXPECT_TRUE(Daemon::create(options, *log, reason)) << reason;
}

TEST_F(DaemonTest, SaysWhatIsWrongWithAShape) {
  DaemonOptions options;
  options.shape.nodes = {"x", "x"};
  std::string reason;
  EXPECT_EQ(InProcessDaemon::start(options, reason).error(), Status::InvalidParameter);
  EXPECT_NE(reason.find("must be different"), std::string::npos);
}

TEST_F(DaemonTest, ManyClientsComeAndGoAtOnce) {
  start(kept());
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([this] {
      for (int i = 0; i < 25; ++i) {
        const auto channel = connect();
        attach(*channel);
        control::OpenOut opened;
        EXPECT_EQ(open(*channel, "\\Device\\ibal", opened).status, Status::Ok);
        EXPECT_EQ(call(*channel, Code::AllocPd, 1).status, Status::Ok);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

// They have the HCA of a node open, which nobody's removal of it fails for, and which no end of the
// fabric waits for.
TEST_F(DaemonTest, ServicesOpenANodeWhenTheyAreToldTo) {
  DaemonOptions options = kept();
  options.verify = Verify::On;
  start(std::move(options));
  const auto channel = connect();
  EXPECT_EQ(call(*channel, Code::Ping).status, Status::Ok);  // answered once it is up
  const auto ensure = [this] {
    io::Irp irp;
    std::promise<void> done;
    daemon->on_loop([&] {
      daemon->gsi().ensure("node0", irp.start(
                                        [](io::Irp&, void* context) {
                                          static_cast<std::promise<void>*>(context)->set_value();
                                        },
                                        &done));
    });
    done.get_future().wait();
    EXPECT_EQ(irp.status, Status::Ok) << irp.reason;
  };
  const auto open_ports = [this] {
    std::size_t count = 0;
    daemon->on_loop([&] {
      count = static_cast<std::size_t>(std::ranges::count_if(
          daemon->gsi().ports(), [](const services::GsiPort& port) { return port.is_open; }));
    });
    return count;
  };
  EXPECT_EQ(open_ports(), 0u);
  ensure();
  EXPECT_EQ(open_ports(), 1u);
  control::ChangeHcaIn change;
  std::strcpy(change.ca.data(), "softib0");
  change.action = control::HcaAction::Remove;
  const ControlReply removed = call(*channel, Code::ChangeHca, 0, bytes_of(change));
  EXPECT_EQ(removed.status, Status::Ok) << removed.reason;
  EXPECT_EQ(open_ports(), 0u);
  change.action = control::HcaAction::Add;
  control::CaName name;
  const ControlReply added = call(*channel, Code::ChangeHca, 0, bytes_of(change),
                                  std::as_writable_bytes(std::span(&name, 1)));
  EXPECT_EQ(added.status, Status::Ok) << added.reason;
  ensure();
  EXPECT_EQ(open_ports(), 1u);
  EXPECT_EQ(daemon->stop(), DaemonExit::Ended);
}

TEST_F(DaemonTest, LogsToItsFile) {
  const std::string path = "/tmp/softib-daemon-test-" + std::to_string(::getpid()) + ".log";
  DaemonOptions options = kept();
  options.log = path;
  start(std::move(options));
  EXPECT_EQ(call(*connect(), Code::Ping).status, Status::Ok);  // answered once it is up
  daemon.reset();
  std::ifstream file(path);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  EXPECT_NE(text.find("fabric default is up: 1 node, 1 port"), std::string::npos) << text;
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace ib::softib
