// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Random schedules with real threads: clients come, make objects, exchange messages and go at any
// point, while other threads plug and pull HCAs, take ports down, change partitions, put hosts to
// sleep and load and unload drivers. Every request is answered, and nothing is left.
//
// A failing seed is printed with the command that repeats it. The schedule of threads is not part
// of the seed, so a failure may need some runs. A watchdog reports a hang. More seeds than the
// default: SOFTIB_SEEDS=1000.
#include "base/buffers.h"
#include "drivers/test/repeat_command_test.h"
#include "fabric.h"
#include "linux/client/client_channel.h"
#include "pair_life.h"
#include "peer/raw_client.h"
#include "softibd/in_process_daemon.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <thread>

namespace ib::conformance {
namespace {

using control::Code;
using control::HcaAction;
using control::PowerState;
using drivers::test::number_from;

constexpr const char* kNodes[] = {kEast, kWest, kNorth, kSouth};

// A tool: sends one administrative request after another, each of which may be refused.
class Chaos {
 public:
  Chaos(const std::string& socket, std::uint64_t seed) : random_(seed) {
    std::string reason;
    auto channel = os::connect_channel(socket, reason);
    if (!channel) {
      ADD_FAILURE() << reason;
      return;
    }
    channel_ = *std::move(channel);
  }

  void step() {
    switch (pick(16)) {
      case 0: return hca(HcaAction::Remove, some_hca());
      case 1:
      case 2: return hca(HcaAction::Eject, some_hca());
      case 3:
      case 4: return port(pick(2));
      case 5:
      case 6: return partition();
      case 7: return power(some_node(), PowerState::Sleep);
      case 8: return power("", pick(2) == 0 ? PowerState::Sleep : PowerState::Hibernate);
      case 9: return driver(pick(2));
      case 10: return put_drivers_back();
      case 11:
      case 12: return wake_all();
      default: return hca(HcaAction::Add, pick(2) == 0 ? "" : "softib0");
    }
  }
  void pause() {
    const auto end = std::chrono::steady_clock::now() + std::chrono::microseconds(pick(3000));
    while (std::chrono::steady_clock::now() < end) std::this_thread::yield();
  }
  // Wakes all hosts and HCAs so that every client can end.
  void wake_all() {
    power("", PowerState::Working);
    for (const char* node : kNodes) power(node, PowerState::Working);
  }
  void put_drivers_back() {
    for (const char* name : {"soft_hca", "ib_bus"}) driver_named(name, 0);
  }
  std::string text(Code code) {
    platform::ControlReply reply = call(code, control::TraceReadIn{}, code == Code::TraceRead);
    std::string all(1u << 20, '\0');
    const ssize_t got = ::pread(reply.handles[0].get(), all.data(), all.size(), 0);
    all.resize(got < 0 ? 0 : static_cast<std::size_t>(got));
    return all;
  }

 private:
  unsigned pick(unsigned n) { return static_cast<unsigned>(random_() % n); }
  const char* some_node() { return kNodes[pick(2)]; }
  const char* some_hca() { return pick(3) == 0 ? "softib1" : "softib0"; }
  template <class In>
  platform::ControlReply call(Code code, const In& in, bool has_input = true) {
    return channel_->call(static_cast<std::uint32_t>(code), 0,
                          has_input ? bytes_of(in) : std::span<const std::byte>(), room_of(out_));
  }
  template <class In>
  void send_request(Code code, const In& in) {
    const platform::ControlReply reply = call(code, in);
    static constexpr Status kFair[] = {Status::Ok,
                                       Status::NotFound,
                                       Status::DeviceBusy,
                                       Status::InvalidState,
                                       Status::AlreadyExists,
                                       Status::DeviceRemoved,
                                       Status::LimitExceeded,
                                       Status::NotSupported};
    EXPECT_NE(std::find(std::begin(kFair), std::end(kFair), reply.status), std::end(kFair))
        << "request " << static_cast<unsigned>(code) << ": " << status_text(reply.status) << ": "
        << reply.reason;
  }
  void hca(HcaAction action, const char* name) {
    control::ChangeHcaIn in;
    put_text(in.node, some_node());
    put_text(in.ca, name);
    in.action = action;
    send_request(Code::ChangeHca, in);
  }
  void port(unsigned up) {
    control::SetPortIn in;
    put_text(in.node, some_node());
    put_text(in.ca, some_hca());
    in.port = 1 + pick(2);
    in.up = up;
    send_request(Code::SetPort, in);
  }
  void partition() {
    control::ChangePartitionIn in;
    put_text(in.node, some_node());
    put_text(in.ca, some_hca());
    in.port = 1 + pick(2);
    const unsigned which = pick(3);
    in.pkey = static_cast<std::uint16_t>(0x8001 + which);
    put_text(in.name, "i" + std::string(1, static_cast<char>('a' + which)));
    in.remove = static_cast<std::uint16_t>(pick(2));
    send_request(Code::ChangePartition, in);
  }
  void power(const char* node, PowerState state) {
    control::SetPowerIn in;
    put_text(in.node, node);
    in.state = state;
    send_request(Code::SetPower, in);
  }
  void driver(unsigned unload) { driver_named(pick(3) == 0 ? "soft_hca" : "ib_bus", unload); }
  void driver_named(const char* name, unsigned unload) {
    control::ChangeDriverIn in;
    put_text(in.name, name);
    in.unload = unload;
    send_request(Code::ChangeDriver, in);
  }

  std::mt19937_64 random_;
  std::unique_ptr<platform::ControlChannel> channel_;
  std::array<std::byte, 4096> out_{};
};

// Ends the program if a seed takes too long, and prints softibd's status.
class Watchdog {
 public:
  Watchdog(std::chrono::seconds limit, std::string socket)
      : thread_([this, limit, socket = std::move(socket)] {
          std::unique_lock guard(lock_);
          if (done_.wait_for(guard, limit, [this] { return over_; })) return;
          std::fprintf(stderr, "a hang: this seed takes more than %d s\n",
                       static_cast<int>(limit.count()));
          drivers::test::print_command();
          ::alarm(20);  // the status request itself may hang
          Chaos tool(socket, 0);
          for (const Code code : {Code::Status, Code::Devices, Code::TraceRead}) {
            std::fprintf(stderr, "%s\n", tool.text(code).c_str());
          }
          std::abort();
        }) {}
  ~Watchdog() {
    {
      const std::lock_guard guard(lock_);
      over_ = true;
    }
    done_.notify_one();
    thread_.join();
  }
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

 private:
  std::mutex lock_;
  std::condition_variable done_;
  bool over_ = false;
  std::thread thread_;
};

std::string log_path() {
  return "/tmp/softib-threads-" + std::to_string(::getpid()) + ".log";
}

// Ends softibd. Findings of the verifier, and anything that it had to wait for, are in its log.
void end_softibd(softib::InProcessDaemon& daemon) {
  const bool good = daemon.stop() == softib::DaemonExit::Ended;
  EXPECT_TRUE(good);
  if (testing::Test::HasFailure()) {
    std::ifstream log(log_path());
    std::fputs(std::string(std::istreambuf_iterator<char>(log), {}).c_str(), stderr);
  }
  std::filesystem::remove(log_path());
}

std::unique_ptr<softib::InProcessDaemon> start_softibd(unsigned seed) {
  softib::DaemonOptions options;
  options.keep = true;
  options.shape = test_shape();
  options.verify = softib::Verify::On;
  options.verify_seed = seed;
  options.log = log_path();
  std::string reason;
  auto daemon = softib::InProcessDaemon::start(options, reason);
  if (!daemon) ADD_FAILURE() << "softibd does not start: " << reason;
  return daemon ? *std::move(daemon) : nullptr;
}

void run(unsigned seed) {
  constexpr std::chrono::seconds kLimit(100);
  constexpr unsigned kChaosSteps = 50;
  const auto daemon = start_softibd(seed);
  ASSERT_NE(daemon, nullptr);
  const std::string& socket = daemon->socket_path();
  const Watchdog watchdog(kLimit, socket);
  std::array<Memories, 3> memories;
  std::atomic<bool> stop = false;
  std::vector<std::thread> clients;
  for (unsigned i = 0; i < 5; ++i) {
    clients.emplace_back([&, i] {
      std::mt19937_64 random(seed * 16ull + i);
      do {
        if (i < memories.size()) {
          PairLife(socket, random(), memories[i]).run();
        } else {
          RawLife(socket, random()).run();
        }
      } while (!stop);
    });
  }
  Chaos last(socket, seed);
  std::vector<std::thread> tools;
  for (unsigned i = 0; i < 2; ++i) {
    tools.emplace_back([&socket, seed, i] {
      Chaos chaos(socket, seed * 16ull + 8 + i);
      for (unsigned step = 0; step < kChaosSteps; ++step) {
        chaos.step();
        chaos.pause();
      }
    });
  }
  for (std::thread& tool : tools) tool.join();
  stop = true;
  last.wake_all();
  for (std::thread& client : clients) client.join();
  last.put_drivers_back();
  EXPECT_EQ(wait_until_empty(socket), "") << "softibd still has objects or clients";
  end_softibd(*daemon);
}

TEST(ThreadsRandom, EverythingEndsAndNothingIsLeft) {
  constexpr unsigned kSeeds = IB_THREAD_SANITIZER != 0 ? 100 : 20;
  const unsigned first = number_from("SOFTIB_FIRST_SEED", 1);
  const unsigned seeds = number_from("SOFTIB_SEEDS", kSeeds);
  drivers::test::print_command_at_death();
  for (unsigned seed = first; seed - first < seeds && !HasFailure(); ++seed) {
    drivers::test::set_repeat_command(seed, "ThreadsRandom.*");
    run(seed);
    if (HasFailure()) drivers::test::print_command();
  }
  drivers::test::repeat_command = {};
  // With few seeds every HCA may be absent, and no message passes.
  EXPECT_TRUE(seeds < kSeeds || PairLife::messages() > seeds);
}

}  // namespace
}  // namespace ib::conformance
