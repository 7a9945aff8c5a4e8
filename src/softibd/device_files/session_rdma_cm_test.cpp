// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// GET_EVENT that waits in softibd for a moment, and events that come before it is sent
// (docs/design/0016-rdma-cm-device.md).
#include "al/system.h"
#include "linux/client/client_mailbox.h"
#include "linux/server/server_message_io.h"
#include "platform/executor.h"
#include "services/rdma_cm/command/ucma_layout.h"
#include "services/rdma_cm/device/rdma_cm_device.h"
#include "softibd/in_process_daemon.h"
#include "verbs/control.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <functional>
#include <future>
#include <memory>
#include <span>
#include <string>
#include <thread>

namespace ib::softib {
namespace {

namespace control = verbs::control;
namespace ucma = services::rdma_cm::ucma;
using control::Code;
using control::RdmaCmIn;
using control::RdmaCmOut;
using services::rdma_cm::RdmaCmDevice;
using namespace std::chrono_literals;

constexpr auto kLong = 20s;

template <class Body>
struct Message {
  control::RequestHeader header;
  Body in;
};

// A connection of a client, with its requests and their answers.
class Connection {
 public:
  explicit Connection(const std::string& path) {
    socket_ = ::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strncpy(address.sun_path, path.c_str(), sizeof address.sun_path - 1);
    EXPECT_EQ(::connect(socket_, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;
  ~Connection() {
    if (page_ != nullptr) ::munmap(page_, os::MailboxPage::kBytes);
    ::close(socket_);
  }

  template <class Body>
  static Message<Body> message(Code code, const Body& in) {
    return {{sizeof(Message<Body>), static_cast<std::uint32_t>(code), 1, 0, 0}, in};
  }
  template <class Body>
  void send(Code code, const Body& in) {
    const auto request = message(code, in);
    EXPECT_EQ(::send(socket_, &request, sizeof request, MSG_NOSIGNAL),
              static_cast<ssize_t>(sizeof request));
  }
  control::ReplyHeader receive() {
    control::ReplyHeader header;
    await_message();
    EXPECT_GE(::recv(socket_, &header, sizeof header, 0), static_cast<ssize_t>(sizeof header));
    EXPECT_EQ(header.status, 0u);
    return header;
  }
  // The head of the first answer that comes with a notice, or zeros.
  control::RdmaCmAhead receive_notice() {
    struct {
      control::ReplyHeader header;
      control::RdmaCmAhead first;
    } message{};
    await_message();
    EXPECT_GE(::recv(socket_, &message, sizeof message, 0),
              static_cast<ssize_t>(sizeof message.header));
    return message.first;
  }
  bool has_message() const {
    pollfd one{socket_, POLLIN, 0};
    return ::poll(&one, 1, 0) == 1;
  }

  void await_message() const {
    pollfd one{socket_, POLLIN, 0};
    EXPECT_EQ(::poll(&one, 1, 20'000), 1);
  }

  void open_mailbox() {
    const control::RequestHeader request{sizeof request,
                                         static_cast<std::uint32_t>(Code::OpenMailbox), 1, 0, 0};
    EXPECT_EQ(::send(socket_, &request, sizeof request, MSG_NOSIGNAL),
              static_cast<ssize_t>(sizeof request));
    std::array<std::byte, sizeof(control::ReplyHeader)> header;
    await_message();
    os::ServerMessage reply;
    ASSERT_EQ(os::receive_message(socket_, header, reply), os::Transfer::Done);
    ASSERT_TRUE(reply.handles[0].valid());
    void* at = ::mmap(nullptr, os::MailboxPage::kBytes, PROT_READ | PROT_WRITE, MAP_SHARED,
                      reply.handles[0].get(), 0);
    ASSERT_NE(at, MAP_FAILED);
    page_ = static_cast<os::MailboxPage*>(at);
    mailbox_ = os::ClientMailbox(page_);
  }
  void post(const RdmaCmIn& in) {
    const auto request = message(Code::RdmaCm, in);
    std::memcpy(mailbox_.request(), &request, sizeof request);
    const char bell = 0;
    if (!mailbox_.post(sizeof request)) return;
    EXPECT_EQ(::send(socket_, &bell, 1, MSG_NOSIGNAL), 1);
  }
  // The answer in the mailbox.
  RdmaCmOut answer() {
    const auto limit = std::chrono::steady_clock::now() + kLong;
    while (!mailbox_.has_answer() && std::chrono::steady_clock::now() < limit) os::relax_thread(16);
    EXPECT_TRUE(mailbox_.has_answer());
    RdmaCmOut out;
    EXPECT_GE(mailbox_.answer().size(), sizeof(control::ReplyHeader) + sizeof out);
    std::memcpy(&out, mailbox_.answer().data() + sizeof(control::ReplyHeader), sizeof out);
    return out;
  }
  RdmaCmOut ask(const RdmaCmIn& in) {
    post(in);
    return answer();
  }
  // The number of the offer that came with the answer; 0: none.
  std::uint32_t offer() {
    const auto answer = mailbox_.answer();
    constexpr std::size_t kBefore = sizeof(control::ReplyHeader) + sizeof(RdmaCmOut);
    control::RdmaCmAhead ahead;
    if (answer.size() < kBefore + sizeof ahead) return 0;
    std::memcpy(&ahead, answer.data() + kBefore, sizeof ahead);
    EXPECT_EQ(ahead.code, control::kRdmaCmGetEvent);
    return ahead.id;
  }
  // softibd closes its end, too.
  void end() const {
    ::shutdown(socket_, SHUT_WR);
    await_message();
    char byte;
    EXPECT_EQ(::recv(socket_, &byte, 1, 0), 0);
  }
  bool take(std::uint32_t offer) { return mailbox_.take_offer(offer); }

 private:
  int socket_ = -1;
  os::MailboxPage* page_ = nullptr;
  os::ClientMailbox mailbox_;
};

// softibd's loop does not sleep while this exists.
class KeepsAwake {
 public:
  explicit KeepsAwake(InProcessDaemon& daemon) : daemon_(daemon) {
    daemon_.on_loop([this] {
      executor_ = &daemon_.access_layer().executor;
      again();
    });
  }
  KeepsAwake(const KeepsAwake&) = delete;
  KeepsAwake& operator=(const KeepsAwake&) = delete;
  ~KeepsAwake() {
    is_over_ = true;
    while (!has_ended_) std::this_thread::yield();
  }

 private:
  void again() {
    if (is_over_) {
      has_ended_ = true;
    } else {
      executor_->post([this] { again(); });
    }
  }

  InProcessDaemon& daemon_;
  platform::Executor* executor_ = nullptr;
  std::atomic<bool> is_over_ = false;
  std::atomic<bool> has_ended_ = false;
};

class SessionRdmaCmTest : public ::testing::Test {
 protected:
  SessionRdmaCmTest() {
    std::string reason;
    auto started = InProcessDaemon::start(reason);
    EXPECT_TRUE(started) << reason;
    daemon_ = *std::move(started);
    device_ = std::make_unique<Connection>(daemon_->socket_path());
    device_->send(Code::OpenRdmaCm, control::OpenRdmaCmIn{});
    file_ = static_cast<std::uint32_t>(device_->receive().information);
    waiting_ = std::make_unique<Connection>(daemon_->socket_path());
    waiting_->open_mailbox();
    others_ = std::make_unique<Connection>(daemon_->socket_path());
    others_->open_mailbox();
  }

  static ucma::CreateId create_id() {
    ucma::CreateId in;
    in.uid = 1;
    in.ps = 0x106;  // RDMA_PS_TCP
    return in;
  }
  template <class Body>
  RdmaCmIn write(ucma::Code code, const Body& body, std::uint32_t flags = 0) const {
    const ucma::Header header{static_cast<std::uint32_t>(code), sizeof body, 1024};
    RdmaCmIn in;
    in.head.file = file_;
    in.head.size = sizeof header + sizeof body;
    in.head.flags = flags;
    std::memcpy(in.bytes.data(), &header, sizeof header);
    std::memcpy(in.bytes.data() + sizeof header, &body, sizeof body);
    return in;
  }
  RdmaCmIn get_event(std::uint32_t flags = control::rdma_cm_in_flag::kMayWait) const {
    return write(ucma::Code::GetEvent, ucma::GetEvent{}, flags);
  }
  // A command that causes an event, by an id of its own.
  RdmaCmIn resolve(std::uint32_t flags = 0) {
    const RdmaCmOut made = others_->ask(write(ucma::Code::CreateId, create_id()));
    EXPECT_EQ(made.result, 0);
    ucma::ResolveIp in;
    std::memcpy(&in.id, made.bytes.data(), sizeof in.id);
    sockaddr_in own{AF_INET, htons(1), {inet_addr("127.0.0.1")}, {}};
    std::memcpy(&in.dst_addr, &own, sizeof own);
    return write(ucma::Code::ResolveIp, in, flags);
  }
  // softibd finds both commands at once, however late its thread or this one gets a processor.
  void post_together(const RdmaCmIn& first, const RdmaCmIn& second) {
    std::promise<void> is_held;
    std::promise<void> are_posted;
    std::thread holder([&] {
      daemon_->on_loop([&] {
        is_held.set_value();
        are_posted.get_future().wait();
      });
    });
    is_held.get_future().wait();
    waiting_->post(first);
    others_->post(second);
    are_posted.set_value();
    holder.join();
  }
  // Whether a GET_EVENT that was there before its event has got it, and nobody else was told.
  bool gets_event_by_waiting() {
    const KeepsAwake busy(*daemon_);
    post_together(get_event(), resolve());
    EXPECT_EQ(others_->answer().result, 0);
    if (waiting_->answer().result == 0 && !device_->has_message()) return true;
    while (others_->ask(get_event(0)).result == 0) continue;
    while (device_->has_message()) device_->receive();
    return false;
  }
  // Whether an event was taken before softibd gave notice of it.
  bool takes_event_ahead() {
    const RdmaCmIn cause = resolve(control::rdma_cm_in_flag::kTakesAhead);
    EXPECT_EQ(others_->ask(cause).result, 0);
    const std::uint32_t offer = others_->offer();
    EXPECT_NE(offer, 0u);
    if (others_->take(offer)) return true;
    EXPECT_EQ(others_->ask(get_event(0)).result, 0);
    while (device_->has_message()) device_->receive();
    return false;
  }
  // Each try may fail: the wait is over, or the event was there first.
  bool gets_event_by_waiting_at_last() {
    const auto limit = std::chrono::steady_clock::now() + kLong;
    while (std::chrono::steady_clock::now() < limit) {
      if (gets_event_by_waiting()) return true;
    }
    return false;
  }

  std::unique_ptr<InProcessDaemon> daemon_;
  std::unique_ptr<Connection> device_;
  std::unique_ptr<Connection> waiting_;
  std::unique_ptr<Connection> others_;
  std::uint32_t file_ = 0;
};

TEST(RdmaCmCommand, EndsBehindItsData) {
  RdmaCmIn in;
  in.bytes[23] = 7;
  in.option[3] = 8;
  const auto read = [&in](std::size_t length) {
    return RdmaCmDevice::read_command(std::as_bytes(std::span(&in, 1)).first(length));
  };
  EXPECT_FALSE(read(23));
  EXPECT_TRUE(read(24));
  in.head.size = 24;
  EXPECT_FALSE(read(24 + 23));
  ASSERT_TRUE(read(24 + 24));
  ASSERT_EQ(read(24 + 24)->bytes.size(), 24u);
  EXPECT_EQ(read(24 + 24)->bytes[23], std::byte{7});
  EXPECT_TRUE(read(24 + 24)->option.empty());
  in.head.option_size = 4;
  EXPECT_FALSE(read(24 + 24));
  EXPECT_FALSE(read(24 + 512 + 3));
  ASSERT_TRUE(read(24 + 512 + 4));
  ASSERT_EQ(read(24 + 512 + 4)->option.size(), 4u);
  EXPECT_EQ(read(24 + 512 + 4)->option[3], std::byte{8});
  in.head.size = ~std::uint64_t{0};
  in.head.option_size = ~0u;
  EXPECT_FALSE(read(sizeof in - 1));
  ASSERT_TRUE(read(sizeof in));
  EXPECT_EQ(read(sizeof in)->bytes.size(), 512u);
  EXPECT_EQ(read(sizeof in)->option.size(), 512u);
  std::array<std::byte, sizeof in + 1> longer{};
  EXPECT_FALSE(RdmaCmDevice::read_command(longer));
}

TEST_F(SessionRdmaCmTest, AnEventIsTheAnswerToTheCommandThatWaitsForIt) {
  EXPECT_TRUE(gets_event_by_waiting_at_last());
}

TEST_F(SessionRdmaCmTest, AWaitIsOverSoon) {
  EXPECT_EQ(waiting_->ask(get_event()).result, -EAGAIN);
  EXPECT_FALSE(device_->has_message());
  EXPECT_EQ(others_->ask(resolve()).result, 0);
  device_->receive();
  EXPECT_EQ(others_->ask(get_event()).result, 0);
}

TEST_F(SessionRdmaCmTest, AWaitIsOverSoonWhileSoftibdIsBusy) {
  const KeepsAwake busy(*daemon_);
  waiting_->post(get_event());
  EXPECT_EQ(waiting_->answer().result, -EAGAIN);
}

TEST_F(SessionRdmaCmTest, OneCommandOfAFileWaits) {
  waiting_->post(get_event());
  EXPECT_EQ(others_->ask(get_event()).result, -EAGAIN);
  EXPECT_EQ(waiting_->answer().result, -EAGAIN);
}

TEST_F(SessionRdmaCmTest, AClientThatGoesWhileItWaitsIsNotMissed) {
  waiting_->post(get_event());
  waiting_ = std::make_unique<Connection>(daemon_->socket_path());
  waiting_->open_mailbox();
  EXPECT_TRUE(gets_event_by_waiting_at_last());
}

TEST_F(SessionRdmaCmTest, TheEndOfTheFileEndsTheWait) {
  waiting_->post(get_event());
  device_.reset();
  EXPECT_NE(waiting_->answer().result, 0);
  // softibd may find out about the end after the wait is over.
  const auto limit = std::chrono::steady_clock::now() + kLong;
  int result = -EAGAIN;
  while (result == -EAGAIN && std::chrono::steady_clock::now() < limit) {
    result = others_->ask(get_event()).result;
  }
  EXPECT_EQ(result, -ENODEV);
}

// softibd waits for a moment only, so each try may fail.
TEST_F(SessionRdmaCmTest, AnEventThatIsTakenAheadIsGone) {
  const auto limit = std::chrono::steady_clock::now() + kLong;
  bool is_taken = false;
  while (!is_taken && std::chrono::steady_clock::now() < limit) is_taken = takes_event_ahead();
  EXPECT_TRUE(is_taken);
  EXPECT_EQ(others_->ask(get_event(0)).result, -EAGAIN);
  EXPECT_FALSE(device_->has_message());
}

TEST_F(SessionRdmaCmTest, OfAnEventThatIsNotTakenAheadThereIsNotice) {
  EXPECT_EQ(others_->ask(resolve(control::rdma_cm_in_flag::kTakesAhead)).result, 0);
  const std::uint32_t offer = others_->offer();
  device_->receive();
  EXPECT_FALSE(others_->take(offer));
  EXPECT_EQ(others_->ask(get_event(0)).result, 0);
}

TEST_F(SessionRdmaCmTest, AnEventComesWithItsNotice) {
  EXPECT_EQ(others_->ask(resolve(control::rdma_cm_in_flag::kTakesAhead)).result, 0);
  const control::RdmaCmAhead first = device_->receive_notice();
  EXPECT_EQ(first.code, control::kRdmaCmGetEvent);
  EXPECT_EQ(first.option, control::rdma_cm_flag::kDrained);
  EXPECT_TRUE(others_->take(first.id));
  EXPECT_EQ(others_->ask(get_event(0)).result, -EAGAIN);
}

TEST_F(SessionRdmaCmTest, ANoticeOffersNothingToAClientThatHasGone) {
  EXPECT_EQ(
      others_->ask(write(ucma::Code::CreateId, create_id(), control::rdma_cm_in_flag::kTakesAhead))
          .result,
      0);
  const RdmaCmIn cause = resolve();
  others_->end();
  for (int i = 0; i < 2; ++i) daemon_->on_loop([] {});  // the end of the session is in between
  EXPECT_EQ(waiting_->ask(cause).result, 0);
  EXPECT_EQ(device_->receive_notice().code, 0u);
  EXPECT_EQ(waiting_->ask(get_event(0)).result, 0);
}

TEST_F(SessionRdmaCmTest, AnEventIsOfferedToOneClientAndTakenByAnother) {
  EXPECT_EQ(others_->ask(resolve(control::rdma_cm_in_flag::kTakesAhead)).result, 0);
  const std::uint32_t offer = others_->offer();
  EXPECT_EQ(waiting_->ask(get_event(0)).result, 0);
  EXPECT_FALSE(others_->take(offer));
}

// The offer has no end by itself, since there was notice of the event.
TEST_F(SessionRdmaCmTest, AnEventThatWasOfferedToAClientThatGoesIsNotMissed) {
  EXPECT_EQ(others_->ask(resolve()).result, 0);
  device_->receive();
  EXPECT_EQ(others_->ask(resolve(control::rdma_cm_in_flag::kTakesAhead)).result, 0);
  const std::uint32_t offer = others_->offer();
  EXPECT_NE(offer, 0u);
  others_->end();
  for (int i = 0; i < 2; ++i) daemon_->on_loop([] {});  // the end of the session is in between
  EXPECT_FALSE(others_->take(offer));
  EXPECT_EQ(waiting_->ask(get_event(0)).result, 0);
  EXPECT_EQ(waiting_->ask(get_event(0)).result, 0);
  EXPECT_EQ(waiting_->ask(get_event(0)).result, -EAGAIN);
}

}  // namespace
}  // namespace ib::softib
