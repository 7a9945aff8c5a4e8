// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "linux/server/stream_sockets.h"

#include "linux/process/client_handle.h"
#include "verbs/control_streams.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <functional>
#include <utility>
#include <vector>

namespace ib::os {
namespace {

using platform::NativeHandle;
using platform::TcpName;

constexpr std::uint64_t kNumber = 0x0123456789abcdef;

TcpName ipv4(std::uint8_t last, std::uint16_t port) {
  TcpName name;
  name.address = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 127, 77, 3, last};
  name.port = port;
  return name;
}

class StreamSocketsTest : public testing::Test {
 protected:
  // A listener on 127.77.3.2, or on whatever `last` says.
  void listen(std::uint8_t last = 2) {
    listener_ = own_descriptor(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(0x7f4d0300u | last);
    ASSERT_EQ(::bind(listener_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    ASSERT_EQ(::listen(listener_.get(), 8), 0);
    socklen_t length = sizeof address;
    ASSERT_EQ(::getsockname(listener_.get(), reinterpret_cast<sockaddr*>(&address), &length), 0);
    at_ = ipv4(last, ntohs(address.sin_port));
  }
  static NativeHandle tcp(int family = AF_INET) {
    return own_descriptor(::socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  }
  // Runs the loop until it is true, or for a while.
  bool comes(const std::function<bool()>& condition) {
    constexpr int kRounds = 200;
    for (int i = 0; i < kRounds && !condition(); ++i) {
      const auto timer =
          loop_.at(loop_.now() + std::chrono::milliseconds(5), [this] { loop_.stop(); });
      loop_.run();
    }
    return condition();
  }

  EventLoop loop_;
  StreamSockets sockets_{loop_, kNumber};
  NativeHandle listener_;
  TcpName at_;
};

bool is_writable(int socket) {
  pollfd one{socket, POLLOUT, 0};
  return ::poll(&one, 1, 0) == 1 && (one.revents & POLLOUT) != 0;
}

TEST_F(StreamSocketsTest, LinksHaveTheNamesOfTheirEnds) {
  std::string reason;
  const auto links = sockets_.make_links(0x2a, reason);
  ASSERT_TRUE(links) << reason;
  for (std::uint32_t end = 0; end < 2; ++end) {
    std::array<char, 128> address{};
    socklen_t length = address.size();
    ASSERT_EQ(
        ::getsockname((*links)[end].get(), reinterpret_cast<sockaddr*>(address.data()), &length),
        0);
    constexpr std::size_t kBefore = sizeof(sa_family_t) + 1;
    EXPECT_EQ(std::string(address.data() + kBefore, length - kBefore),
              "softib-stream.0123456789abcdef.000000000000002a." + std::to_string(end));
  }
}

TEST_F(StreamSocketsTest, TwoEmptyPacketsFillALink) {
  std::string reason;
  const auto links = sockets_.make_links(1, reason);
  ASSERT_TRUE(links) << reason;
  const int from = (*links)[0].get();
  const int to = (*links)[1].get();
  ASSERT_TRUE(is_writable(from));
  ASSERT_EQ(::send(from, nullptr, 0, MSG_DONTWAIT | MSG_NOSIGNAL), 0);
  EXPECT_TRUE(is_writable(from));
  ASSERT_EQ(::send(from, nullptr, 0, MSG_DONTWAIT | MSG_NOSIGNAL), 0);
  EXPECT_FALSE(is_writable(from));
  char byte = 0;
  ASSERT_EQ(::recv(to, &byte, 1, MSG_DONTWAIT), 0);
  EXPECT_TRUE(is_writable(from));
}

TEST_F(StreamSocketsTest, ALinkIsOpenWhileSomebodyHasIt) {
  std::string reason;
  auto links = sockets_.make_links(7, reason);
  ASSERT_TRUE(links) << reason;
  EXPECT_TRUE(sockets_.is_link_open(7, 0));
  EXPECT_TRUE(sockets_.is_link_open(7, 1));
  NativeHandle copy = own_descriptor(::dup((*links)[0].get()));
  (*links)[0].reset();
  EXPECT_TRUE(sockets_.is_link_open(7, 0)) << "a copy is open";
  copy.reset();
  EXPECT_FALSE(sockets_.is_link_open(7, 0));
  EXPECT_FALSE(sockets_.is_link_open(7, 0)) << "looking leaves nothing behind";
  EXPECT_TRUE(sockets_.is_link_open(7, 1));
  EXPECT_FALSE(sockets_.is_link_open(8, 1)) << "there never was one";
}

TEST_F(StreamSocketsTest, AKnockConnectsFromTheAddressOfTheNode) {
  listen();
  const NativeHandle socket = tcp();
  const platform::Knock knock = sockets_.knock(socket, at_, ipv4(9, 0));
  ASSERT_EQ(knock.status, Status::Ok) << knock.reason;
  EXPECT_EQ(knock.remote, at_);
  EXPECT_EQ(knock.local.address, ipv4(9, 0).address);
  EXPECT_NE(knock.local.port, 0);
  EXPECT_EQ(knock.family, static_cast<std::uint32_t>(AF_INET));
  sockaddr_in peer{};
  socklen_t length = sizeof peer;
  const NativeHandle accepted = own_descriptor(
      ::accept4(listener_.get(), reinterpret_cast<sockaddr*>(&peer), &length, SOCK_CLOEXEC));
  ASSERT_TRUE(accepted.valid());
  EXPECT_EQ(ntohs(peer.sin_port), knock.local.port);
  EXPECT_EQ(ntohl(peer.sin_addr.s_addr), 0x7f4d0309u);
}

TEST_F(StreamSocketsTest, AConnectionIsAcceptedOnceAProcessHasADescriptor) {
  listen();
  std::vector<NativeHandle> sockets;
  std::vector<platform::TcpPair> pairs;
  for (int i = 0; i < 2; ++i) {
    sockets.push_back(tcp());
    const platform::Knock knock = sockets_.knock(sockets.back(), at_, ipv4(9, 0));
    ASSERT_EQ(knock.status, Status::Ok) << knock.reason;
    pairs.push_back({knock.remote, knock.local});
  }
  EXPECT_EQ(sockets_.are_accepted(pairs), std::vector<bool>(2));
  const NativeHandle first =
      own_descriptor(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
  ASSERT_TRUE(first.valid());
  EXPECT_EQ(sockets_.are_accepted(pairs), (std::vector<bool>{true, false}));
}

TEST_F(StreamSocketsTest, AKnockLeavesASocketThatIsBoundWhereItIs) {
  listen();
  const NativeHandle socket = tcp();
  sockaddr_in own{};
  own.sin_family = AF_INET;
  own.sin_addr.s_addr = htonl(0x7f4d0305u);
  ASSERT_EQ(::bind(socket.get(), reinterpret_cast<sockaddr*>(&own), sizeof own), 0);
  const platform::Knock knock = sockets_.knock(socket, at_, ipv4(9, 0));
  ASSERT_EQ(knock.status, Status::Ok) << knock.reason;
  EXPECT_EQ(knock.local.address, ipv4(5, 0).address);
}

TEST_F(StreamSocketsTest, AKnockOfAnIpv6SocketHasMappedNames) {
  listen();
  const NativeHandle socket = tcp(AF_INET6);
  if (!socket.valid()) GTEST_SKIP() << "no IPv6 here";
  const platform::Knock knock = sockets_.knock(socket, at_, ipv4(9, 0));
  ASSERT_EQ(knock.status, Status::Ok) << knock.reason;
  EXPECT_EQ(knock.remote, at_);
  EXPECT_EQ(knock.local.address, ipv4(9, 0).address);
  EXPECT_EQ(knock.family, static_cast<std::uint32_t>(AF_INET6));
}

TEST_F(StreamSocketsTest, AKnockWhereNobodyListensIsRefused) {
  listen();
  listener_.reset();
  const NativeHandle socket = tcp();
  const platform::Knock knock = sockets_.knock(socket, at_, {});
  EXPECT_EQ(knock.status, Status::IoError);
  EXPECT_TRUE(knock.is_refused);
  EXPECT_NE(knock.reason, "");
}

TEST_F(StreamSocketsTest, AKnockTakesNothingButUnconnectedTcpSockets) {
  listen();
  const NativeHandle udp = own_descriptor(::socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK, 0));
  EXPECT_EQ(sockets_.knock(udp, at_, {}).status, Status::InvalidParameter);
  const NativeHandle blocks = own_descriptor(::socket(AF_INET, SOCK_STREAM, 0));
  EXPECT_EQ(sockets_.knock(blocks, at_, {}).status, Status::InvalidParameter);
  const NativeHandle file = own_descriptor(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  EXPECT_EQ(sockets_.knock(file, at_, {}).status, Status::InvalidParameter);
  const NativeHandle twice = tcp();
  ASSERT_EQ(sockets_.knock(twice, at_, {}).status, Status::Ok);
  EXPECT_EQ(sockets_.knock(twice, at_, {}).status, Status::InvalidParameter);
  TcpName ipv6;
  ipv6.address[15] = 1;
  ipv6.port = at_.port;
  EXPECT_EQ(sockets_.knock(tcp(), ipv6, {}).status, Status::InvalidParameter);
}

TEST_F(StreamSocketsTest, AWatchHearsOfAListenerThatIsClosed) {
  listen();
  const NativeHandle socket = tcp();
  ASSERT_EQ(sockets_.knock(socket, at_, {}).status, Status::Ok);
  int ends = 0;
  const auto watch = sockets_.watch(socket, [&] { ++ends; });
  ASSERT_NE(watch, nullptr);
  EXPECT_FALSE(comes([&] { return ends > 0; }));
  listener_.reset();
  EXPECT_TRUE(comes([&] { return ends > 0; }));
  EXPECT_FALSE(comes([&] { return ends > 1; })) << "once";
}

TEST_F(StreamSocketsTest, AWatchThatIsOverHearsNothing) {
  listen();
  const NativeHandle socket = tcp();
  ASSERT_EQ(sockets_.knock(socket, at_, {}).status, Status::Ok);
  int ends = 0;
  auto watch = sockets_.watch(socket, [&] { ++ends; });
  auto other = sockets_.watch(socket, [&] { ++ends; });
  EXPECT_EQ(other, nullptr) << "it is watched already";
  watch.reset();
  listener_.reset();
  EXPECT_FALSE(comes([&] { return ends > 0; }));
}

TEST_F(StreamSocketsTest, AConnectionThatIsResetLeavesNoTimeWait) {
  listen();
  NativeHandle socket = tcp();
  ASSERT_EQ(sockets_.knock(socket, at_, {}).status, Status::Ok);
  const NativeHandle accepted =
      own_descriptor(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
  sockets_.reset(std::move(socket));
  char byte = 0;
  EXPECT_EQ(::recv(accepted.get(), &byte, 1, 0), -1);
  EXPECT_EQ(errno, ECONNRESET);
}

}  // namespace
}  // namespace ib::os
