// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Requests, short and long, while HCAs, ports, power and agents change at random: each request ends
// once or was withdrawn, answers are byte-exact, nothing is left.
#include "base/sanitizer.h"
#include "mad/mgmt_class.h"
#include "services_world.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <map>
#include <random>

namespace ib::services::test {
namespace {

using namespace std::chrono_literals;

constexpr std::uint8_t kClass = 0x31;

std::vector<std::byte> message_of(std::uint8_t method, std::size_t bytes, std::uint64_t tid) {
  std::vector<std::byte> message(mad::header_size(kClass) + bytes);
  for (std::size_t i = mad::header_size(kClass); i < message.size(); ++i) {
    message[i] = std::byte(i * 31 + tid * 7);
  }
  mad::MadHeader header;
  header = {1, kClass, 1, method, 0, 0, tid, 0x40, 0, 0};
  std::memcpy(message.data(), &header, sizeof header);
  return message;
}

class Scenario {
 public:
  Scenario(unsigned seed, verbs::LinkLayer link_layer) : random_(seed), w_(link_layer) {
    w_.emitted.leave_out(kClass);
    add_server();
    for (const char* node : {"node0", "node1"}) {
      const Status opened = chance(80) ? w_.ensure(node) : Status::Ok;
      EXPECT_EQ(opened, Status::Ok);
    }
    add_client();
  }

  void run(int steps) {
    for (int step = 0; step < steps && !::testing::Test::HasFailure(); ++step) act();
    for (const std::size_t node : {0u, 1u}) settle(node);
    if (chance(50)) w_.run(200s);
    w_.close();
    w_.run(10s);
    for (const auto& [tid, request] : requests_) {
      EXPECT_LE(request.times, 1) << tid;
      EXPECT_TRUE(request.times == 1 || request.is_withdrawn) << tid;
    }
    for (const auto& irp : irps_) EXPECT_EQ(irp->outcome.times, 1);
    for (const auto& opened : ensured_) EXPECT_EQ(opened->times, 1);
  }
  int answered() const { return answered_; }

 private:
  struct Request {
    RequestId id = 0;
    int times = 0;
    bool is_withdrawn = false;
  };
  struct ByIrp {
    GsiAnswer answer;
    Outcome outcome;
  };

  int number(int most) { return std::uniform_int_distribution<>(0, most)(random_); }
  bool chance(int percent) { return number(99) < percent; }

  void add_server() {
    GsiAgent agent;
    agent.name = "server";
    agent.mgmt_class = kClass;
    agent.methods = {mad::method::kGetTable, mad::method::kGetMulti};
    agent.on_message = [this](const GsiMessage& message) { serve(message); };
    std::string reason;
    if (const auto id = w_.gsi->add_agent(std::move(agent), reason)) server_ = *id;
  }
  void add_client() {
    std::string reason;
    client_ = *w_.gsi->add_agent({.name = "client", .mgmt_class = kClass}, reason);
  }
  // The answer follows from the id: its length and bytes.
  static std::size_t answer_size(std::uint64_t tid) { return tid * 7919 % 9000; }
  void serve(const GsiMessage& message) {
    if (chance(5)) return;
    const std::uint64_t tid = message.header.modifier;
    auto answer =
        message_of(message.header.method | mad::method::kResponseBit, answer_size(tid), tid);
    mad::MadHeader header = message.header;
    header.method |= mad::method::kResponseBit;
    std::memcpy(answer.data(), &header, sizeof header);
    if (chance(50)) answer[mad::kRmppOffset + 2] = std::byte{mad::rmpp_flag::kActive};
    (void)w_.gsi->respond(server_, message.from, answer);
  }
  void check(std::uint64_t tid, std::span<const std::byte> bytes) {
    const auto expected = message_of(0, answer_size(tid), tid);
    const std::size_t headers = mad::header_size(kClass);
    ASSERT_GE(bytes.size(), expected.size());
    EXPECT_TRUE(std::equal(expected.begin() + headers, expected.end(), bytes.begin() + headers));
    EXPECT_EQ(header_of(bytes).transaction_id, tid);
  }

  void ask() {
    const std::uint64_t tid = ++last_;
    auto message =
        message_of(chance(30) ? mad::method::kGetMulti : mad::method::kGetTable,
                   static_cast<std::size_t>(chance(30) ? number(5000) : number(150)), tid);
    mad::MadHeader header = header_of(message);
    header.modifier = static_cast<std::uint32_t>(tid);
    std::memcpy(message.data(), &header, sizeof header);
    const auto from = static_cast<std::size_t>(number(1));
    const GsiRequest request{w_.address(from, static_cast<std::size_t>(number(1)), chance(20)),
                             message, std::chrono::milliseconds(1 + number(300)),
                             static_cast<std::uint32_t>(number(3))};
    if (chance(30)) {
      ByIrp& irp = *irps_.emplace_back(std::make_unique<ByIrp>());
      w_.gsi->request(client_, request, irp.answer, irp.outcome.start());
      return;
    }
    const auto id = w_.gsi->request(
        client_, request, [this, tid](Status status, std::string_view, const GsiMessage* answer) {
          ++requests_[tid].times;
          if (status == Status::Ok) ++answered_;
          EXPECT_EQ(status == Status::Ok, answer != nullptr);
          EXPECT_FALSE(requests_[tid].is_withdrawn);
          // A refusal of a request for nobody has no data.
          if (answer != nullptr && answer->header.status == 0) check(tid, answer->bytes);
          if (chance(10)) withdraw_one();
        });
    if (id) requests_[tid].id = *id;
  }
  void withdraw_one() {
    for (auto& [tid, request] : requests_) {
      if (request.times > 0 || request.is_withdrawn || !chance(30)) continue;
      w_.gsi->cancel(request.id);
      request.is_withdrawn = true;
      return;
    }
  }
  void settle(std::size_t node) {
    if (asleep_[node]) w_.power(node, io::SystemPower::Working);
    asleep_[node] = false;
    if (w_.hca(node).present) w_.set_port(node, true);
  }
  void act() {
    const auto node = static_cast<std::size_t>(number(1));
    switch (number(16)) {
      case 0: return settle(node);
      case 1:
        if (w_.hca(node).present && !asleep_[node]) w_.set_port(node, chance(50));
        return;
      case 2:
        if (asleep_[node]) return;
        w_.power(node, io::SystemPower::Sleep);
        asleep_[node] = true;
        return;
      case 3:
        if (asleep_[node] || !w_.hca(node).present) return;
        EXPECT_EQ(chance(50) ? w_.eject(node) : w_.remove(node), Status::Ok);
        return;
      case 4:
        if (w_.hca(node).present || asleep_[node]) return;
        EXPECT_EQ(w_.plug_in(node), Status::Ok);
        return;
      case 5: {
        ensured_.push_back(std::make_unique<Outcome>());
        w_.gsi->ensure(node == 0 ? "node0" : "node1", ensured_.back()->start());
        return;
      }
      case 6: return withdraw_one();
      case 7:
        if (chance(20)) {
          w_.gsi->remove_agent(client_);
          for (auto& [tid, request] : requests_) request.is_withdrawn |= request.times == 0;
          add_client();
        } else if (chance(20)) {
          w_.gsi->remove_agent(server_);
          add_server();
        }
        return;
      case 8:
        if (!irps_.empty()) {
          auto& irp = *irps_[static_cast<std::size_t>(number(static_cast<int>(irps_.size()) - 1))];
          if (!irp.outcome.is_done()) irp.outcome.irp.cancel();
        }
        return;
      case 9: return w_.run(std::chrono::milliseconds(number(3000)));
      case 10: {
        const Instant until = w_.bench.executor.now() + 1s;
        for (int i = number(100); i > 0; --i) (void)w_.bench.executor.step(until);
        return;
      }
      default: return ask();
    }
  }

  std::mt19937 random_;
  ServicesWorld w_;
  AgentId server_ = 0;
  AgentId client_ = 0;
  std::uint64_t last_ = 0;
  std::map<std::uint64_t, Request> requests_;
  std::vector<std::unique_ptr<ByIrp>> irps_;
  std::vector<std::unique_ptr<Outcome>> ensured_;
  bool asleep_[2] = {false, false};
  int answered_ = 0;
};

unsigned setting(const char* name, unsigned otherwise) {
  const char* text = std::getenv(name);
  return text != nullptr ? static_cast<unsigned>(std::strtoul(text, nullptr, 10)) : otherwise;
}

TEST(GsiRandomTest, EachRequestEndsOnceWhateverHappens) {
  const unsigned first = setting("SOFTIB_FIRST_SEED", 1);
  const unsigned seeds = setting("SOFTIB_SEEDS", IB_ADDRESS_SANITIZER != 0 ? 100 : 400);
  std::printf("seeds %u to %u\n", first, first + seeds - 1);
  int answered = 0;
  for (unsigned seed = first; seed < first + seeds && !HasFailure(); ++seed) {
    SCOPED_TRACE("repeat with SOFTIB_FIRST_SEED=" + std::to_string(seed) + " SOFTIB_SEEDS=1");
    Scenario scenario(seed,
                      seed % 2 == 0 ? verbs::LinkLayer::Ethernet : verbs::LinkLayer::InfiniBand);
    scenario.run(120);
    answered += scenario.answered();
  }
  std::printf("%d requests were answered\n", answered);
  EXPECT_GT(answered, static_cast<int>(seeds));
}

}  // namespace
}  // namespace ib::services::test
