// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// softibd with --verify, as its clients see it: their leftovers are listed, and with faults each of
// their requests fails in every way before it succeeds.
#include "base/buffers.h"
#include "linux/client/client_channel.h"
#include "softibd/daemon.h"
#include "softibd/in_process_daemon.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <set>

namespace ib::softib {
namespace {

namespace control = verbs::control;
using control::Code;
using platform::ControlReply;

class VerifyTest : public ::testing::Test {
 protected:
  void start(Verify how) {
    DaemonOptions options;
    options.keep = true;
    options.verify = how;
    options.log = log_;
    std::string reason;
    auto started = InProcessDaemon::start(std::move(options), reason);
    ASSERT_TRUE(started) << reason;
    daemon = *std::move(started);
    connect();
  }
  void connect() {
    std::string reason;
    channel = *os::connect_channel(daemon->socket_path(), reason);
  }
  void TearDown() override { std::filesystem::remove(log_); }

  // `tries`: until it works.
  template <class In>
  ControlReply ask(Code code, std::uint32_t file, const In& in, int tries = 1) {
    return ask_bytes(code, file, bytes_of(in), tries);
  }
  ControlReply ask_bytes(Code code, std::uint32_t file, std::span<const std::byte> in,
                         int tries = 1) {
    for (;;) {
      ControlReply reply = channel->call(static_cast<std::uint32_t>(code), file, in, room_of(out));
      if (reply.status != Status::Ok) ++failures[code][reply.status];
      if (reply.status == Status::Ok || --tries == 0) return reply;
    }
  }
  std::uint32_t open(int tries = 1) {
    control::AttachIn attach;
    put_text(attach.program, "verify_test");
    EXPECT_EQ(ask(Code::Attach, 0, attach, tries).status, Status::Ok);
    control::OpenIn in;
    put_text(in.path, "\\Device\\ibal");
    const ControlReply opened = ask(Code::Open, 0, in, tries);
    EXPECT_EQ(opened.status, Status::Ok) << opened.reason;
    return static_cast<std::uint32_t>(opened.information);
  }
  std::uint32_t made(const ControlReply& reply) {
    EXPECT_EQ(reply.status, Status::Ok) << reply.reason;
    return static_cast<std::uint32_t>(reply.information);
  }
  // Ends softibd and returns its log.
  std::string log() {
    channel.reset();
    EXPECT_EQ(daemon->stop(), DaemonExit::Ended);
    daemon.reset();
    std::ifstream file(log_);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  const std::string log_ = "/tmp/softib-verify-test-" + std::to_string(::getpid()) + ".log";
  std::unique_ptr<InProcessDaemon> daemon;
  std::unique_ptr<platform::ControlChannel> channel;
  std::array<std::byte, 4096> out{};
  std::map<Code, std::map<Status, int>> failures;
};

TEST_F(VerifyTest, TellsWhatAProcessLeavesWithItsHolderAndWhy) {
  start(Verify::On);
  const std::uint32_t file = open();
  const std::uint32_t pd = made(ask_bytes(Code::AllocPd, file, {}));
  control::CreateAhIn address;
  address.pd = pd;
  address.av.dlid = 1;
  address.av.port = 1;
  const std::uint32_t ah = made(ask(Code::CreateAh, file, address));
  const std::string text = log();
  const std::string who = "verify: left: pid " + std::to_string(::getpid()) +
                          " (verify_test) on node0 ends and leaves HCA softib0 (file " +
                          std::to_string(file) + ") with address handle " +
                          std::to_string(control::index_of(ah)) + ", protection domain " +
                          std::to_string(control::index_of(pd)) + " (used by 1 address handle)";
  EXPECT_NE(text.find(who), std::string::npos) << text;
  EXPECT_NE(text.find("verify: findings: 0"), std::string::npos) << text;
}

TEST_F(VerifyTest, AlsoWhatAFileIsClosedWithAndNothingOfThoseWhoCleanUp) {
  start(Verify::On);
  const std::uint32_t file = open();
  const std::uint32_t pd = made(ask_bytes(Code::AllocPd, file, {}));
  EXPECT_EQ(ask(Code::DeallocPd, file, control::IndexIn{pd, 0}).status, Status::Ok);
  EXPECT_EQ(ask(Code::Close, 0, control::CloseIn{file, 0}).status, Status::Ok);
  control::OpenIn in;
  put_text(in.path, "\\Device\\ibal");
  const std::uint32_t second = made(ask(Code::Open, 0, in));
  const std::uint32_t left = made(ask_bytes(Code::AllocPd, second, {}));
  EXPECT_EQ(ask(Code::Close, 0, control::CloseIn{second, 0}).status, Status::Ok);
  const std::string text = log();
  const std::string closes = "closes HCA softib0 (file " + std::to_string(second) +
                             ") with protection domain " + std::to_string(control::index_of(left));
  const std::size_t at = text.find("verify: left: ");
  ASSERT_NE(at, std::string::npos) << text;
  EXPECT_NE(text.find(closes, at), std::string::npos) << text;
  EXPECT_EQ(text.find("verify: left: ", at + 1), std::string::npos) << text;
}

TEST_F(VerifyTest, WithFaultsEveryRequestFailsInEveryWayAndNothingIsLeft) {
  constexpr int kTries = 40;
  start(Verify::Faults);
  (void)open(kTries);
  connect();  // the attach of the first program waits for devices, and no fault is after a wait
  const std::uint32_t file = open(kTries);
  for (int round = 0; round < 12; ++round) {
    const std::uint32_t pd = made(ask_bytes(Code::AllocPd, file, {}, kTries));
    const std::uint32_t cq = made(ask(Code::CreateCq, file, control::CreateCqIn{64}, kTries));
    control::CreateQpIn in;
    in.pd = pd;
    in.send_cq = in.recv_cq = cq;
    in.caps = {16, 16, 1, 1, 0, 0};
    const std::uint32_t qp = made(ask(Code::CreateQp, file, in, kTries));
    EXPECT_EQ(ask(Code::DestroyQp, file, control::IndexIn{qp, 0}).status, Status::Ok);
    EXPECT_EQ(ask(Code::DestroyCq, file, control::IndexIn{cq, 0}).status, Status::Ok);
    EXPECT_EQ(ask(Code::DeallocPd, file, control::IndexIn{pd, 0}).status, Status::Ok);
  }
  // Besides the statuses: no room for the object, no device memory for objects with rings, and for
  // the first of them no growth of the file.
  struct Case {
    Code code;
    int allocations;
    int refusals;
  };
  for (const Case& tested :
       {Case{Code::AllocPd, 1, 0}, Case{Code::CreateCq, 2, 1}, Case{Code::CreateQp, 2, 0}}) {
    std::map<Status, int> wanted;
    for (const Status status : io::Verifier::kFaultStatuses) wanted[status] = 1;
    wanted[Status::InsufficientResources] += tested.allocations;
    wanted[Status::IoError] += tested.refusals;
    EXPECT_EQ(failures[tested.code], wanted) << static_cast<unsigned>(tested.code);
  }
  EXPECT_EQ(failures[Code::Attach][Status::IoError], 1) << "its descriptor";
  const std::string text = log();
  EXPECT_NE(text.find("verify: findings: 0"), std::string::npos) << text;
  EXPECT_EQ(text.find("verify: left"), std::string::npos) << text;
}

}  // namespace
}  // namespace ib::softib
