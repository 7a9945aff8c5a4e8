// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A channel with a mailbox, whose other side runs in a thread: every call gets its own answer.
#include "linux/client/client_channel.h"
#include "linux/echo_server_test.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <future>
#include <random>
#include <thread>

namespace ib::os {
namespace {

using namespace std::chrono_literals;
namespace control = verbs::control;

class MailboxChannel : public testing::Test {
 public:
  ~MailboxChannel() override {
    channels_.clear();
    loop_.post([this] {
      servers_.clear();
      loop_.stop();
    });
    thread_.join();
  }

 protected:
  void SetUp() override {
    thread_ = std::thread([this] { loop_.run(); });
  }
  platform::ControlChannel& make_channel() {
    int ends[2] = {-1, -1};
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
    ::fcntl(ends[0], F_SETFL, O_NONBLOCK);
    loop_.post([this, end = ends[0]] {
      servers_.push_back(std::make_unique<EchoServer>(loop_, own_descriptor(end)));
      last_ = servers_.back().get();
    });
    channels_.push_back(channel_over(own_descriptor(ends[1])));
    return *channels_.back();
  }
  // Returns false, and says why, if the answer is not what the code makes of the request.
  static bool check(platform::ControlChannel& channel, std::uint32_t code, std::size_t size,
                    unsigned char fill) {
    const std::vector<std::byte> in(size, std::byte{fill});
    std::vector<std::byte> out(control::kMaxMessage);
    const platform::ControlReply reply = channel.call(code, 0, in, out, {});
    const std::vector<std::byte> wanted =
        code == kLongAnswer ? std::vector<std::byte>(kLong, std::byte{'l'}) : in;
    out.resize(reply.out_size);
    EXPECT_EQ(reply.status, Status::Ok) << reply.reason;
    EXPECT_EQ(reply.handles[0].valid(), code == kHandleAnswer);
    EXPECT_TRUE(out == wanted) << "code " << code << ", " << size << " bytes";
    return !testing::Test::HasFailure();
  }

  EventLoop loop_;
  std::vector<std::unique_ptr<EchoServer>> servers_;  // the loop's thread
  std::atomic<EchoServer*> last_ = nullptr;           // of them, once it has answered
  std::vector<std::unique_ptr<platform::ControlChannel>> channels_;
  std::thread thread_;
};

TEST_F(MailboxChannel, EveryAnswerComes) {
  platform::ControlChannel& channel = make_channel();
  std::mt19937 random(11);
  for (int i = 0; i < 20'000; ++i) {
    const auto code = static_cast<std::uint32_t>(kEcho + random() % 4);
    // Around what fits into the mailbox, and small ones.
    const std::size_t size =
        random() % 4 == 0 ? MailboxPage::kRequestBytes - 40 + random() % 64 : random() % 100;
    ASSERT_TRUE(check(channel, code, size, static_cast<unsigned char>(random())));
  }
}

// More of them than the loop watches.
TEST_F(MailboxChannel, ManyAtOnce) {
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < 3 * EventLoop::kMostWatched; ++i) {
    platform::ControlChannel& channel = make_channel();
    threads.emplace_back([&channel, i] {
      for (unsigned call = 0; call < 500; ++call) {
        if (!check(channel, call % 7 == 0 ? kEchoLater : kEcho, call % 200,
                   static_cast<unsigned char>(i)))
          return;
      }
    });
  }
  for (std::thread& each : threads) each.join();
}

TEST_F(MailboxChannel, AChildHasNoneAndHarmsNone) {
  platform::ControlChannel& channel = make_channel();
  for (int i = 0; i < 20; ++i) ASSERT_TRUE(check(channel, kEcho, 10, 1));
  const pid_t child = ::fork();
  if (child == 0) {
    const bool refused = channel.call(kEcho, 0, {}, {}, {}).status == Status::Disconnected;
    channels_.back().reset();
    ::_exit(refused ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  for (int i = 0; i < 20; ++i) ASSERT_TRUE(check(channel, kEcho, 10, 2));
}

TEST_F(MailboxChannel, SaysWhenTheOtherSideGoes) {
  platform::ControlChannel& channel = make_channel();
  for (int i = 0; i < 20; ++i) ASSERT_TRUE(check(channel, kEcho, 10, 1));
  loop_.post([this] { servers_.clear(); });
  const std::vector<std::byte> in(10);
  std::vector<std::byte> out(10);
  while (channel.call(kEcho, 0, in, out, {}).status == Status::Ok) {}
  EXPECT_EQ(channel.call(kEcho, 0, in, out, {}).status, Status::Disconnected);
}

// Over the socket, over the mailbox and where it waits.
TEST_F(MailboxChannel, AThreadIsCancelledAfterItsCall) {
  platform::ControlChannel& channel = make_channel();
  for (int i = 0; i < 50; ++i) {
    std::atomic<bool> answered = false;
    std::thread caller([&] {
      ::pthread_cancel(::pthread_self());
      answered = channel.call(kEchoLater, 0, {}, {}, {}).status == Status::Ok;
      static_cast<void>(channel.submit(kEchoLater, 0, {}));
      channel.settle();
      ::pthread_testcancel();
      answered = false;
    });
    caller.join();
    EXPECT_TRUE(answered);
    for (unsigned char c = 0; c < 5; ++c) ASSERT_TRUE(check(channel, kEcho, 10u + c, c));
  }
}

class SubmittedRequest : public MailboxChannel {
 protected:
  SubmittedRequest() : channel_(make_channel()) {}
  void SetUp() override {
    MailboxChannel::SetUp();
    while (!is_submitted(kEcho, 1)) {
      ASSERT_TRUE(check(channel_, kEcho, 10, 1));
    }
    channel_.settle();
    forget_sizes();
  }
  bool is_submitted(std::uint32_t code, std::size_t size) {
    return channel_.submit(code, 0, std::vector<std::byte>(size));
  }
  // Runs `work` on the other side's thread.
  void on_loop(const std::function<void()>& work) {
    std::promise<void> done;
    loop_.post([&] {
      work();
      done.set_value();
    });
    done.get_future().wait();
  }
  void forget_sizes() {
    on_loop([this] { last_.load()->sizes.clear(); });
  }
  // Of the requests' inputs, in the order in which they came.
  std::vector<std::size_t> sizes() {
    std::vector<std::size_t> sizes;
    on_loop([&] { sizes = last_.load()->sizes; });
    std::erase(sizes, kBellBytes);
    for (std::size_t& size : sizes) size -= sizeof(control::RequestHeader);
    return sizes;
  }

  platform::ControlChannel& channel_;
};

TEST_F(MailboxChannel, NothingIsSubmittedWithoutAMailbox) {
  platform::ControlChannel& channel = make_channel();
  const std::vector<std::byte> in(10);
  EXPECT_FALSE(channel.submit(kEcho, 0, in));
  channel.settle();
  ASSERT_TRUE(check(channel, kEcho, 10, 1));
  EXPECT_FALSE(channel.submit(kEcho, 0, in));
}

TEST_F(SubmittedRequest, NobodyWaitsForItsAnswer) {
  std::promise<void> release;
  loop_.post([&] { release.get_future().wait(); });
  auto submitted = std::async(std::launch::async, [&] { return is_submitted(kEcho, 3); });
  EXPECT_EQ(submitted.wait_for(20s), std::future_status::ready) << "the other side is busy";
  release.set_value();
  EXPECT_TRUE(submitted.get());
  channel_.settle();
  EXPECT_EQ(sizes(), std::vector<std::size_t>{3});
}

TEST_F(SubmittedRequest, GoesBeforeEachLaterOne) {
  std::mt19937 random(5);
  std::vector<std::size_t> sent;
  for (int i = 0; i < 5'000; ++i) {
    const auto size = static_cast<std::size_t>(random() % 200);
    sent.push_back(size);
    if (random() % 3 != 0) {
      ASSERT_TRUE(is_submitted(random() % 2 == 0 ? kEcho : kEchoLater, size));
      continue;
    }
    // Also through the socket, which the mailbox must not be behind.
    if (random() % 4 == 0) sent.back() += MailboxPage::kRequestBytes;
    ASSERT_TRUE(check(channel_, random() % 2 == 0 ? kEcho : kEchoLater, sent.back(), 7));
  }
  channel_.settle();
  EXPECT_EQ(sizes(), sent);
}

TEST_F(SubmittedRequest, AnAnswerThatComesElsewhereIsDropped) {
  for (const std::uint32_t code : {kLongAnswer, kHandleAnswer}) {
    for (int i = 0; i < 20; ++i) {
      ASSERT_TRUE(is_submitted(code, 5));
      if (i % 2 == 0) channel_.settle();
      ASSERT_TRUE(check(channel_, kEcho, 10, 2));
    }
  }
}

TEST_F(SubmittedRequest, OneThatIsTooLongIsForACall) {
  EXPECT_FALSE(is_submitted(kEcho, MailboxPage::kRequestBytes));
  ASSERT_TRUE(check(channel_, kEcho, MailboxPage::kRequestBytes, 2));
  EXPECT_EQ(sizes(), std::vector<std::size_t>{MailboxPage::kRequestBytes});
}

TEST_F(SubmittedRequest, OfAProcessIsNotItsChilds) {
  ASSERT_TRUE(is_submitted(kEcho, 4));
  const pid_t child = ::fork();
  if (child == 0) {
    const std::vector<std::byte> in(4);
    const bool refused = !channel_.submit(kEcho, 0, in);
    channel_.settle();
    ::_exit(refused ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  ASSERT_TRUE(check(channel_, kEcho, 10, 2));
}

TEST_F(SubmittedRequest, EndsWithTheOtherSide) {
  loop_.post([this] { servers_.clear(); });
  while (is_submitted(kEcho, 4)) {}
  channel_.settle();
  EXPECT_EQ(channel_.call(kEcho, 0, {}, {}, {}).status, Status::Disconnected);
}

}  // namespace
}  // namespace ib::os
