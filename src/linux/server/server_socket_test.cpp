// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "linux/server/server_socket.h"

#include "linux/process/client_handle.h"
#include "linux/server/event_loop.h"
#include "linux/server/server_message_io.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <string>
#include <vector>

namespace ib::os {
namespace {

using namespace std::chrono_literals;

struct Echo : ServerConnection::Handler {
  explicit Echo(std::unique_ptr<ServerConnection> c) : connection(std::move(c)) {
    connection->start(*this);
  }
  void on_message(ServerMessage message) override {
    ++messages;
    connection->send(message.bytes, std::move(message.handles));
  }
  void on_closed() override { closed = true; }
  std::unique_ptr<ServerConnection> connection;
  int messages = 0;
  bool closed = false;
};

struct Server {
  Server() {
    static int serial = 0;
    // An abstract name: no file to clean up.
    const std::string name =
        "softib-test-" + std::to_string(::getpid()) + "-" + std::to_string(serial++);
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path + 1, name.data(), name.size());
    length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
    auto listener = own_descriptor(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0));
    EXPECT_EQ(::bind(listener.get(), generic(), length), 0);
    EXPECT_EQ(::listen(listener.get(), 64), 0);
    ServerSocket::Options options;
    options.refusal = {std::byte{'n'}, std::byte{'o'}};
    options.has_room = [this] { return clients.size() < room; };
    options.on_client = [this](std::unique_ptr<ServerConnection> c, PeerProcess peer) {
      peers.push_back(peer);
      clients.push_back(std::make_unique<Echo>(std::move(c)));
    };
    options.on_problem = [this](const char* what) { problems.emplace_back(what); };
    socket = std::make_unique<ServerSocket>(loop, std::move(listener), std::move(options));
  }
  const sockaddr* generic() const { return reinterpret_cast<const sockaddr*>(&address); }
  NativeHandle connect() {
    auto client = own_descriptor(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
    EXPECT_EQ(::connect(client.get(), generic(), length), 0);
    return client;
  }
  void run(Duration time = 0ns) {
    for (int i = 0; i < 10; ++i) {
      auto end = loop.at(loop.now() + time / 10, [this] { loop.stop(); });
      loop.run();
    }
  }
  // Returns the message that the client can read: "" at the end, "-" if there is none.
  static std::string read(const NativeHandle& client) {
    std::array<char, 256> text{};
    const ssize_t n = ::recv(client.get(), text.data(), text.size(), MSG_DONTWAIT);
    return n < 0 ? "-" : std::string(text.data(), static_cast<std::size_t>(n));
  }

  EventLoop loop;
  sockaddr_un address{};
  socklen_t length = 0;
  std::size_t room = 100;
  std::vector<std::unique_ptr<Echo>> clients;
  std::vector<PeerProcess> peers;
  std::vector<std::string> problems;
  std::unique_ptr<ServerSocket> socket;
};

TEST(ServerSocket, AcceptsProcessesOfThisUserAndKnowsThem) {
  Server s;
  const auto client = s.connect();
  ASSERT_EQ(::send(client.get(), "hello", 5, 0), 5);
  s.run();
  ASSERT_EQ(s.clients.size(), 1u);
  EXPECT_EQ(s.peers[0].pid, static_cast<std::uint32_t>(::getpid()));
  EXPECT_EQ(s.peers[0].uid, ::geteuid());
  EXPECT_EQ(Server::read(client), "hello");
}

TEST(ServerSocket, RefusesOtherUsersInWords) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can become another user";
  Server s;
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    if (::setuid(65534) != 0) ::_exit(3);
    const auto client = s.connect();
    (void)!::write(ends[1], "x", 1);
    std::array<char, 8> text{};
    const bool told = ::recv(client.get(), text.data(), 8, 0) == 2 && text[0] == 'n';
    ::_exit(told && ::recv(client.get(), text.data(), 8, 0) == 0 ? 0 : 1);
  }
  char c = 0;
  ASSERT_EQ(::read(ends[0], &c, 1), 1);
  s.run();
  int outcome = -1;
  ASSERT_EQ(::waitpid(child, &outcome, 0), child);
  EXPECT_EQ(outcome, 0);
  EXPECT_TRUE(s.clients.empty());
  EXPECT_EQ(s.problems.size(), 1u);
  ::close(ends[0]);
  ::close(ends[1]);
}

TEST(ServerSocket, TurnsAwayThoseBeyondTheLimit) {
  Server s;
  s.room = 1;
  const auto first = s.connect();
  const auto second = s.connect();
  s.run();
  EXPECT_EQ(s.clients.size(), 1u);
  EXPECT_EQ(Server::read(first), "-");
  EXPECT_EQ(Server::read(second), "");
}

TEST(ServerSocket, OutOfDescriptorsTurnsClientsAwayAndDoesNotSpin) {
  Server s;
  std::vector<NativeHandle> hungry;
  for (int i = 0; i < 3; ++i) hungry.push_back(s.connect());
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const int next = ::dup(0);
  ::close(next);
  const rlimit tight{static_cast<rlim_t>(next), before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &tight), 0);
  rusage start{};
  rusage end{};
  ::getrusage(RUSAGE_THREAD, &start);
  s.run(200ms);
  ::getrusage(RUSAGE_THREAD, &end);
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_LT(end.ru_nvcsw - start.ru_nvcsw, 100);
  EXPECT_TRUE(s.clients.empty());
  EXPECT_EQ(s.problems.size(), 1u);  // not one per client
  for (const NativeHandle& client : hungry) EXPECT_EQ(Server::read(client), "");
  const auto lucky = s.connect();  // once there is room again
  s.run(200ms);
  EXPECT_EQ(s.clients.size(), 1u);
}

TEST(ServerSocket, LeavesItsConnectionsBehindWhenItCloses) {
  Server s;
  const auto client = s.connect();
  s.run();
  s.socket.reset();
  ASSERT_EQ(::send(client.get(), "still", 5, 0), 5);
  s.run();
  EXPECT_EQ(Server::read(client), "still");
  const auto late = own_descriptor(::socket(AF_UNIX, SOCK_SEQPACKET, 0));
  EXPECT_NE(::connect(late.get(), s.generic(), s.length), 0);
}

TEST(ServerConnection, CloseSendsWhatWaitsAndTellsItsHandlerFromTheLoop) {
  Server s;
  const auto client = s.connect();
  s.run();
  Echo& echo = *s.clients.at(0);
  echo.connection->send(std::array{std::byte{'b'}});
  echo.connection->close();
  EXPECT_FALSE(echo.closed);
  s.run();
  EXPECT_TRUE(echo.closed);
  EXPECT_EQ(Server::read(client), "b");
  EXPECT_EQ(Server::read(client), "");
}

TEST(ServerConnection, FewDescriptorsWaitForAPeerThatDoesNotRead) {
  Server s;
  const auto client = s.connect();
  s.run();
  const auto null = [] { return own_descriptor(::open("/dev/null", O_RDONLY | O_CLOEXEC)); };
  ServerConnection& connection = *s.clients[0]->connection;
  for (const char* text : {"1", "2", "3"}) {
    connection.send(std::array{std::byte(*text)}, {null(), NativeHandle()});
  }
  s.run(20ms);
  EXPECT_EQ(Server::read(client), "1");
  EXPECT_EQ(Server::read(client), "-");
  for (const char* text : {"2", "3"}) {
    s.run(20ms);
    EXPECT_EQ(Server::read(client), text);
  }
  // While several wait, nothing is read that would be answered with more.
  for (int i = 0; i < 8; ++i) connection.send(std::array{std::byte{'x'}}, {null(), NativeHandle()});
  ASSERT_EQ(::send(client.get(), "hello", 5, 0), 5);
  s.run();
  EXPECT_EQ(s.clients[0]->messages, 0);
  for (int i = 0; i < 8; ++i) {
    EXPECT_EQ(Server::read(client), "x");
    s.run(20ms);
  }
  EXPECT_EQ(s.clients[0]->messages, 1);
}

std::size_t open_descriptors() {
  std::size_t count = 0;
  for (int i = 0; i < 256; ++i) count += ::fcntl(i, F_GETFD) >= 0 ? 1u : 0u;
  return count;
}

// A message brings two at most. A surplus is reported, and none of it stays open.
TEST(ServerConnection, SurplusDescriptorsAreToldAndClosed) {
  int ends[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
  const NativeHandle mine = own_descriptor(ends[0]);
  const NativeHandle theirs = own_descriptor(ends[1]);
  const NativeHandle null = own_descriptor(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  const std::size_t before = open_descriptors();
  for (const std::size_t count : {1u, 2u, 3u, 4u, 100u}) {
    SCOPED_TRACE(count);
    const std::vector<int> descriptors(count, null.get());
    alignas(cmsghdr) std::array<char, CMSG_SPACE(100 * sizeof(int))> control{};
    char byte = 'x';
    iovec data{&byte, 1};
    msghdr header{};
    header.msg_iov = &data;
    header.msg_iovlen = 1;
    header.msg_control = control.data();
    header.msg_controllen = CMSG_SPACE(count * sizeof(int));
    cmsghdr* part = CMSG_FIRSTHDR(&header);
    part->cmsg_level = SOL_SOCKET;
    part->cmsg_type = SCM_RIGHTS;
    part->cmsg_len = CMSG_LEN(count * sizeof(int));
    std::memcpy(CMSG_DATA(part), descriptors.data(), count * sizeof(int));
    ASSERT_EQ(::sendmsg(mine.get(), &header, 0), 1);
    {
      std::array<std::byte, 16> buffer{};
      ServerMessage message;
      ASSERT_EQ(receive_message(theirs.get(), buffer, message), Transfer::Done);
      EXPECT_EQ(message.handles_lost, count > 2);
      EXPECT_TRUE(message.handles[0].valid());
      EXPECT_EQ(message.handles[1].valid(), count > 1);
      EXPECT_EQ(open_descriptors(), before + std::min<std::size_t>(count, 2));
    }
    EXPECT_EQ(open_descriptors(), before);
  }
}

TEST(ServerConnection, APeerThatNeverReadsIsCutOffBeforeItTakesMuchMemory) {
  Server s;
  const auto client = s.connect();
  s.run();
  Echo& echo = *s.clients.at(0);
  constexpr std::size_t kMessage = 32 * 1024;
  std::size_t sent = 0;
  for (; !echo.closed && sent < 64; ++sent) {
    for (int i = 0; i < 32; ++i) echo.connection->send(std::vector<std::byte>(kMessage));
    s.run();
  }
  EXPECT_TRUE(echo.closed);
  EXPECT_GE(sent, 8u) << "MiB: what a busy client has outstanding fits";
  EXPECT_LE(sent, 12u);
}

TEST(ServerConnection, NoticesTheEndOfThePeerWhilePausedAndDeliversWhatItSaidBefore) {
  Server s;
  auto client = s.connect();
  auto other = s.connect();
  s.run();
  s.clients.at(0)->connection->pause();
  ASSERT_EQ(::send(client.get(), "x", 1, 0), 1);
  ASSERT_EQ(::send(other.get(), "x", 1, 0), 1);
  client.reset();
  EXPECT_TRUE(s.clients[0]->connection->peer_has_gone());
  EXPECT_FALSE(s.clients[1]->connection->peer_has_gone());
  other.reset();
  s.run();
  EXPECT_TRUE(s.clients[1]->connection->peer_has_gone());
  EXPECT_TRUE(s.clients[0]->closed);
  EXPECT_EQ(s.clients[0]->messages, 0);
  EXPECT_TRUE(s.clients[1]->closed);
  EXPECT_EQ(s.clients[1]->messages, 1);
}

TEST(ServerConnection, MayBeDestroyedInItsOwnCallback) {
  Server s;
  struct Suicidal : ServerConnection::Handler {
    void on_message(ServerMessage) override { connection.reset(); }
    void on_closed() override { FAIL(); }
    std::unique_ptr<ServerConnection> connection;
  };
  Suicidal handler;
  int ends[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends), 0);
  const auto client = own_descriptor(ends[0]);
  handler.connection = std::make_unique<ServerConnection>(
      s.loop, own_descriptor(ends[1]), std::make_shared<std::vector<std::byte>>(64));
  handler.connection->start(handler);
  ASSERT_EQ(::send(client.get(), "x", 1, 0), 1);
  ASSERT_EQ(::send(client.get(), "x", 1, 0), 1);
  s.run();
  EXPECT_EQ(handler.connection, nullptr);
  char c = 0;
  EXPECT_LE(::recv(client.get(), &c, 1, MSG_DONTWAIT), 0);
}

}  // namespace
}  // namespace ib::os
