// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Mailboxes: a client that writes to the page as it likes, and offers.
#include "linux/mailbox.h"

#include "linux/client/client_mailbox.h"
#include "linux/echo_server_test.h"
#include "linux/process/client_handle.h"
#include "linux/server/event_loop.h"
#include "linux/server/server_connection.h"
#include "linux/server/server_mailbox.h"
#include "linux/server/server_message_io.h"
#include "verbs/control.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstring>
#include <random>
#include <string>
#include <thread>
#include <vector>

namespace ib::os {
namespace {

using namespace std::chrono_literals;
namespace control = verbs::control;
using platform::NativeHandle;

// A client that does as it likes; the loop runs when it is told to.
class Mailbox : public testing::Test {
 public:
  ~Mailbox() override {
    if (page_ != nullptr) ::munmap(page_, MailboxPage::kBytes);
  }

 protected:
  Mailbox() {
    int ends[2] = {-1, -1};
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends), 0);
    server_ = std::make_unique<EchoServer>(loop_, own_descriptor(ends[0]));
    client_ = own_descriptor(ends[1]);
  }

  // Until there is nothing to do, and longer than the loop polls before it sleeps. On a busy
  // machine that time may be over at once: what has come by then is done first, step by step.
  void run(Duration time = 2ms) {
    constexpr int kMostSteps = 1000;
    const auto end = loop_.at(loop_.now() + time, [this] { stop_after(kMostSteps); });
    loop_.run();
  }
  void stop_after(int steps) {
    if (steps == 0) return loop_.stop();
    loop_.post([this, steps] { stop_after(steps - 1); });
  }
  static std::vector<std::byte> request(std::uint32_t code, std::uint64_t tag,
                                        const std::string& body = {}) {
    control::RequestHeader header;
    std::vector<std::byte> bytes(sizeof header + body.size());
    header.length = static_cast<std::uint32_t>(bytes.size());
    header.code = code;
    header.tag = tag;
    std::memcpy(bytes.data(), &header, sizeof header);
    std::memcpy(bytes.data() + sizeof header, body.data(), body.size());
    return bytes;
  }
  void send(const std::vector<std::byte>& bytes) {
    EXPECT_EQ(::send(client_.get(), bytes.data(), bytes.size(), 0),
              static_cast<ssize_t>(bytes.size()));
  }
  void ring() { send(std::vector<std::byte>(kBellBytes)); }
  // The size of the next message; -1: there is none. Keeps its descriptor.
  ssize_t receive() {
    ServerMessage message;
    file_.reset();
    if (receive_message(client_.get(), buffer_, message) != Transfer::Done) return -1;
    file_ = std::move(message.handles[0]);
    return static_cast<ssize_t>(message.bytes.size());
  }
  void open() {
    send(request(static_cast<std::uint32_t>(control::Code::OpenMailbox), 1));
    run();
    ASSERT_EQ(receive(), static_cast<ssize_t>(sizeof(control::ReplyHeader)));
    ASSERT_TRUE(file_.valid());
    void* at =
        ::mmap(nullptr, MailboxPage::kBytes, PROT_READ | PROT_WRITE, MAP_SHARED, file_.get(), 0);
    ASSERT_NE(at, MAP_FAILED);
    page_ = static_cast<MailboxPage*>(at);
  }
  void put(const std::vector<std::byte>& bytes) {
    std::memcpy(page_->request, bytes.data(), bytes.size());
    page_->request_length = static_cast<std::uint32_t>(bytes.size());
    page_->asked.fetch_add(1);
  }
  bool is_answered() const { return page_->answered.load() == page_->asked.load(); }
  std::string answer() const {
    const std::size_t skip = sizeof(control::ReplyHeader);
    return {reinterpret_cast<const char*>(page_->answer) + skip,
            page_->answer_length.load() - skip};
  }

  EventLoop loop_;
  std::unique_ptr<EchoServer> server_;
  NativeHandle client_;
  NativeHandle file_;
  std::array<std::byte, 8192> buffer_{};
  MailboxPage* page_ = nullptr;
};

TEST_F(Mailbox, ARequestNeedsABellUnlessItIsWatched) {
  open();
  EXPECT_EQ(page_->watched, 0u);
  put(request(kEcho, 2, "hello"));
  run();
  EXPECT_FALSE(is_answered());
  ring();
  server_->stops = true;
  run();
  server_->stops = false;
  EXPECT_TRUE(is_answered());
  EXPECT_EQ(answer(), "hello");
  EXPECT_EQ(receive(), -1);  // no bell: the client does not sleep
  EXPECT_EQ(page_->watched, 1u);
  put(request(kEcho, 3, "again"));
  run();
  EXPECT_EQ(answer(), "again");
  EXPECT_EQ(page_->watched, 0u);  // the loop has slept
}

// A side that waits on the other's core has to yield it.
TEST_F(Mailbox, EachSideSaysOnWhichCoreItWas) {
  open();
  EXPECT_EQ(page_->server_core, 0u) << "not known";
  cpu_set_t before;
  ASSERT_EQ(::sched_getaffinity(0, sizeof before, &before), 0);
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(static_cast<unsigned>(::sched_getcpu()), &one);
  ASSERT_EQ(::sched_setaffinity(0, sizeof one, &one), 0);
  const auto here = static_cast<std::uint32_t>(::sched_getcpu() + 1);
  put(request(kEcho, 2, "hello"));
  ring();
  run();
  EXPECT_EQ(page_->server_core, here);
  ClientMailbox client(page_);
  (void)client.post(sizeof(control::RequestHeader));
  EXPECT_EQ(page_->client_core, here);
  EXPECT_EQ(::sched_setaffinity(0, sizeof before, &before), 0);
}

TEST_F(Mailbox, AClientThatSleepsIsWokenOnce) {
  open();
  for (int i = 0; i < 3; ++i) {
    page_->client_sleeps = 1;
    put(request(kEchoLater, 2, "later"));
    ring();
    run();
    EXPECT_EQ(answer(), "later");
    EXPECT_EQ(page_->client_sleeps, 0u);
    EXPECT_EQ(receive(), static_cast<ssize_t>(kBellBytes));
    EXPECT_EQ(receive(), -1);
  }
}

TEST_F(Mailbox, WhatDoesNotFitComesThroughTheSocket) {
  open();
  for (const std::uint32_t code : {kLongAnswer, kHandleAnswer}) {
    put(request(code, 2));
    ring();
    run();
    EXPECT_TRUE(is_answered());
    EXPECT_EQ(page_->answer_length, 0u);
    const std::size_t size = sizeof(control::ReplyHeader) + (code == kLongAnswer ? kLong : 0);
    EXPECT_EQ(receive(), static_cast<ssize_t>(size));
    EXPECT_EQ(file_.valid(), code == kHandleAnswer);
  }
  // The socket serves beside it.
  send(request(kEcho, 3, "by the socket"));
  run();
  EXPECT_GT(receive(), 0);
}

TEST_F(Mailbox, ThereIsOneAndItCannotShrink) {
  open();
  EXPECT_NE(::ftruncate(file_.get(), 0), 0);
  send(request(static_cast<std::uint32_t>(control::Code::OpenMailbox), 2));
  run();
  EXPECT_GT(receive(), static_cast<ssize_t>(sizeof(control::ReplyHeader)));  // the reason
  EXPECT_FALSE(file_.valid());
}

TEST_F(Mailbox, ABellWithoutAMailboxIsAMessage) {
  ring();
  run();
  EXPECT_EQ(server_->sizes, std::vector<std::size_t>{kBellBytes});
}

TEST_F(Mailbox, WordsOfTheClientsMeanNothingElse) {
  open();
  server_->sizes.clear();
  put(request(kEcho, 2));
  page_->request_length = 0xffff'ffff;
  page_->answered = 77;
  page_->answer_length = 0xffff'ffff;
  page_->watched = 5;
  ring();
  run();
  EXPECT_EQ(server_->sizes, std::vector<std::size_t>{MailboxPage::kRequestBytes});
  // A number that is not the next one is one request, and without a change there is none.
  page_->request_length = 3;
  page_->asked = 0x8000'0000;
  for (int i = 0; i < 5; ++i) ring();
  run();
  EXPECT_EQ(server_->sizes.size(), 2u);  // no header: it is never answered
  page_->asked = 0;
  ring();
  run();
  EXPECT_EQ(server_->sizes.size(), 2u);
  EXPECT_FALSE(server_->closed);
}

TEST_F(Mailbox, WaitsWhileTheConnectionIsPaused) {
  open();
  server_->connection().pause();
  put(request(kEcho, 2, "patience"));
  ring();
  run();
  EXPECT_FALSE(is_answered());
  server_->connection().resume();
  run();
  EXPECT_EQ(answer(), "patience");
}

// All of the page written at random while softibd reads it: it survives, and the others are served.
TEST_F(Mailbox, SurvivesNoise) {
  open();
  std::mt19937 random(7);
  for (int round = 0; round < 300; ++round) {
    auto* words = reinterpret_cast<std::uint32_t*>(page_);
    for (int i = 0; i < 64; ++i)
      words[random() % (MailboxPage::kBytes / 4)] = static_cast<std::uint32_t>(random());
    ring();
    run(20us);
    while (receive() > 0) {}
  }
  int ends[2] = {-1, -1};
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends), 0);
  EchoServer other(loop_, own_descriptor(ends[0]));
  client_ = own_descriptor(ends[1]);
  send(request(kEcho, 9, "served"));
  run();
  EXPECT_GT(receive(), 0);
}

// Each offer has one end: the client's, or ours.
TEST(MailboxOffer, IsTakenOrWithdrawn) {
  NativeHandle file;
  std::string reason;
  auto made = ServerMailbox::create(file, reason);
  ASSERT_TRUE(made) << reason;
  ServerMailbox& server = **made;
  void* const at =
      ::mmap(nullptr, MailboxPage::kBytes, PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0);
  ASSERT_NE(at, MAP_FAILED);
  ClientMailbox client(static_cast<MailboxPage*>(at));
  constexpr std::uint32_t kOffers = 20'000;
  std::atomic<std::uint32_t> offered = 0;
  std::uint32_t taken = 0;
  std::thread thread([&] {
    for (std::uint32_t number = 1; number <= kOffers;) {
      if (client.take_offer(number)) ++taken;
      if (offered.load() > number) number = offered.load();
    }
  });
  std::uint32_t kept = 0;
  for (std::uint32_t number = 1; number <= kOffers; ++number) {
    server.offer(number);
    offered = number;
    if (number % 64 == 0) std::this_thread::yield();
    if (server.withdraw_offer(number)) ++kept;
  }
  offered = kOffers + 1;
  thread.join();
  EXPECT_EQ(taken + kept, kOffers);
  EXPECT_FALSE(client.take_offer(kOffers));
  ::munmap(at, MailboxPage::kBytes);
}

}  // namespace
}  // namespace ib::os
