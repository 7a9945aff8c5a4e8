// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Messages of several packets between agents of two nodes.
#include "mad/mgmt_class.h"
#include "services_world.h"

#include <gtest/gtest.h>

namespace ib::services::test {
namespace {

using namespace std::chrono_literals;

constexpr std::uint8_t kClass = 0x31;
constexpr std::uint32_t kOui = 0x0002c9;
constexpr std::size_t kLong = 100u << 10;

std::vector<std::byte> message_of(std::uint8_t method, std::size_t bytes, std::uint64_t tid = 9,
                                  bool rmpp = false) {
  std::vector<std::byte> message(mad::header_size(kClass) + bytes);
  for (std::size_t i = mad::header_size(kClass); i < message.size(); ++i) {
    message[i] = std::byte(i * 31 + i / 200);
  }
  mad::MadHeader header;
  header = {1, kClass, 1, method, 0, 0, tid, 0x40, 0, 0};
  std::memcpy(message.data(), &header, sizeof header);
  message[mad::kOuiOffset] = std::byte(kOui >> 16);
  message[mad::kOuiOffset + 1] = std::byte(kOui >> 8 & 0xff);
  message[mad::kOuiOffset + 2] = std::byte(kOui & 0xff);
  if (rmpp) message[mad::kRmppOffset + 2] = std::byte{mad::rmpp_flag::kActive};
  return message;
}

class GsiTransferTest : public ::testing::TestWithParam<verbs::LinkLayer> {
 protected:
  void SetUp() override { begin(); }
  void begin() {
    world->emitted.leave_out(kClass);
    ASSERT_EQ(world->ensure("node0"), Status::Ok);
    ASSERT_EQ(world->ensure("node1"), Status::Ok);
    GsiAgent agent;
    agent.name = "table";
    agent.mgmt_class = kClass;
    agent.oui = kOui;
    agent.methods = {mad::method::kGetTable, mad::method::kGetMulti};
    agent.on_message = [this](const GsiMessage& message) { serve(message); };
    server = *world->gsi->add_agent(std::move(agent), reason);
    client = *world->gsi->add_agent({.name = "client", .mgmt_class = kClass, .oui = kOui}, reason);
  }
  void serve(const GsiMessage& message) {
    ++requests;
    request.assign(message.bytes.begin(), message.bytes.end());
    if (silent) return;
    const auto table = message_of(message.header.method | mad::method::kResponseBit, answer_bytes,
                                  message.header.transaction_id, true);
    EXPECT_EQ(world->gsi->respond(server, message.from, table,
                                  [this](Status s, std::string_view) {
                                    ++sent_calls;
                                    sent = s;
                                  }),
              Status::Ok);
  }
  RequestId ask(std::uint8_t method, std::size_t bytes, std::uint32_t retries = 3) {
    const auto message = message_of(method, bytes);
    const auto id =
        world->gsi->request(client, {world->address(0, 1), message, 500ms, retries},
                            [this](Status s, std::string_view why, const GsiMessage* got) {
                              ++calls;
                              status = s;
                              reason = why;
                              if (got != nullptr)
                                answer.assign(got->bytes.begin(), got->bytes.end());
                            });
    EXPECT_TRUE(id);
    return id ? *id : 0;
  }
  // The data, and the headers but for those of RMPP.
  static void expect_same(const std::vector<std::byte>& a, std::vector<std::byte> b) {
    std::copy_n(a.begin() + mad::kRmppOffset, sizeof(mad::RmppHeader),
                b.begin() + mad::kRmppOffset);
    EXPECT_EQ(a.size(), b.size());
    EXPECT_TRUE(a == b);
  }

  std::unique_ptr<ServicesWorld> world = std::make_unique<ServicesWorld>(GetParam());
  AgentId server = 0;
  AgentId client = 0;
  std::size_t answer_bytes = kLong;
  bool silent = false;
  int requests = 0;
  std::vector<std::byte> request;
  int sent_calls = 0;
  Status sent = Status::Pending;
  int calls = 0;
  Status status = Status::Pending;
  std::string reason;
  std::vector<std::byte> answer;
};
INSTANTIATE_TEST_SUITE_P(LinkLayers, GsiTransferTest,
                         ::testing::Values(verbs::LinkLayer::InfiniBand,
                                           verbs::LinkLayer::Ethernet),
                         [](const auto& layer) {
                           return layer.param == verbs::LinkLayer::Ethernet ? "Ethernet"
                                                                            : "InfiniBand";
                         });

TEST_P(GsiTransferTest, ATableOf100KibComesByteExact) {
  ask(mad::method::kGetTable, 100);
  ASSERT_TRUE(world->comes([&] { return calls > 0; }));
  EXPECT_EQ(status, Status::Ok) << reason;
  expect_same(answer, message_of(mad::method::kGetTableResp, kLong));
  EXPECT_EQ(requests, 1);
  EXPECT_EQ(sent_calls, 1);
  EXPECT_EQ(sent, Status::Ok);
  world->run(60s);
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(world->gsi->under_way(), 0u);
}

TEST_P(GsiTransferTest, AnEmptyTableIsOnePacketWithoutData) {
  answer_bytes = 0;
  ask(mad::method::kGetTable, 0);
  ASSERT_TRUE(world->comes([&] { return calls > 0; }));
  expect_same(answer, message_of(mad::method::kGetTableResp, 0));
}

TEST_P(GsiTransferTest, ALongRequestHasALongAnswer) {
  ask(mad::method::kGetMulti, kLong);
  ASSERT_TRUE(world->comes([&] { return calls > 0; }));
  EXPECT_EQ(status, Status::Ok) << reason;
  EXPECT_EQ(request.size(), mad::header_size(kClass) + kLong);
  EXPECT_TRUE(std::equal(request.begin() + 40, request.end(),
                         message_of(mad::method::kGetMulti, kLong).begin() + 40));
  expect_same(answer, message_of(mad::method::kGetMultiResp, kLong));
}

TEST_P(GsiTransferTest, ALongRequestThatNobodyAnswersTimesOutAndIsSentOnce) {
  silent = true;
  ask(mad::method::kGetMulti, kLong, 2);
  world->run(5s);
  EXPECT_EQ(requests, 1);
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(status, Status::Timeout);
}

TEST_P(GsiTransferTest, ALongRequestForNobodyTimesOut) {
  world->gsi->remove_agent(server);
  ask(mad::method::kGetMulti, kLong, 2);
  world->run(60s);
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(status, Status::Timeout);
  EXPECT_NE(reason.find("no acknowledgement"), std::string::npos) << reason;
}

TEST_P(GsiTransferTest, APortThatGoesDownInTheMiddleAndComesBackLosesNothing) {
  ask(mad::method::kGetTable, 100);
  const Instant until = world->bench.executor.now() + 1s;
  for (int step = 0; step < 60; ++step) (void)world->bench.executor.step(until);
  ASSERT_EQ(calls, 0);
  world->set_port(1, false);
  world->run(3s);
  EXPECT_EQ(calls, 0);
  world->set_port(1, true);
  world->run(20s);
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(status, Status::Ok) << reason;
  expect_same(answer, message_of(mad::method::kGetTableResp, kLong));
}

TEST_P(GsiTransferTest, ASenderThatSleepsForLongIsGivenUpByBothEnds) {
  ask(mad::method::kGetTable, 100);
  const Instant until = world->bench.executor.now() + 1s;
  for (int step = 0; step < 60; ++step) (void)world->bench.executor.step(until);
  ASSERT_EQ(calls, 0);
  world->power(1, io::SystemPower::Sleep);
  world->run(200s);
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(status, Status::Timeout) << reason;
  EXPECT_EQ(sent, Status::Timeout);
  world->power(1, io::SystemPower::Working);
  answer_bytes = 1000;
  ask(mad::method::kGetTable, 100);
  ASSERT_TRUE(world->comes([&] { return calls > 1; }));
  EXPECT_EQ(status, Status::Ok);
}

TEST_P(GsiTransferTest, AnHcaThatIsPulledOutEndsItsTransfersOnce) {
  for (const std::size_t end : {0u, 1u}) {
    calls = sent_calls = 0;
    ask(mad::method::kGetTable, 100);
    const Instant until = world->bench.executor.now() + 1s;
    for (int step = 0; step < 60; ++step) (void)world->bench.executor.step(until);
    ASSERT_EQ(calls, 0);
    ASSERT_EQ(world->eject(end), Status::Ok);
    world->run(300s);
    EXPECT_EQ(calls, 1);
    EXPECT_EQ(sent_calls, 1);
    EXPECT_EQ(status, end == 0 ? Status::DeviceRemoved : Status::Timeout) << reason;
    EXPECT_EQ(sent, end == 0 ? Status::Timeout : Status::DeviceRemoved);
    EXPECT_EQ(world->gsi->under_way(), 0u);
    ASSERT_EQ(world->plug_in(end), Status::Ok);
    world->run(100ms);
  }
}

TEST_P(GsiTransferTest, ACancelledRequestStopsTheTransferOfItsAnswer) {
  const RequestId id = ask(mad::method::kGetTable, 100);
  const Instant until = world->bench.executor.now() + 1s;
  for (int step = 0; step < 60; ++step) (void)world->bench.executor.step(until);
  world->gsi->cancel(id);
  world->run(1s);
  EXPECT_EQ(calls, 0);
  EXPECT_EQ(sent, Status::Disconnected) << "the receiver has said so";
  EXPECT_EQ(world->gsi->under_way(), 0u);
}

TEST_P(GsiTransferTest, RemovedAgentsHearNothingMore) {
  ask(mad::method::kGetTable, 100);
  const Instant until = world->bench.executor.now() + 1s;
  for (int step = 0; step < 60; ++step) (void)world->bench.executor.step(until);
  world->gsi->remove_agent(server);
  world->run(300s);
  EXPECT_EQ(sent_calls, 0);
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(status, Status::Disconnected) << reason;
}

// At each moment of a transfer.
TEST_P(GsiTransferTest, CloseInTheMiddleCallsBackOnceAndNeverAgain) {
  for (int steps = 0; steps < 400; steps += 7) {
    world.reset();
    world = std::make_unique<ServicesWorld>(GetParam());
    begin();
    calls = sent_calls = 0;
    ask(mad::method::kGetMulti, 20000);
    const Instant until = world->bench.executor.now() + 1s;
    for (int step = 0; step < steps; ++step) (void)world->bench.executor.step(until);
    const int before = calls;
    Outcome closed;
    world->gsi->close(closed.start());
    EXPECT_TRUE(world->comes([&] { return closed.is_done(); }));
    EXPECT_EQ(calls, 1) << steps;
    const int sent_before = sent_calls;
    world->run(60s);
    EXPECT_EQ(calls, 1);
    EXPECT_EQ(sent_calls, sent_before);
    EXPECT_TRUE(before == 1 || status == Status::Cancelled);
    world->gsi.reset();
  }
}

}  // namespace
}  // namespace ib::services::test
