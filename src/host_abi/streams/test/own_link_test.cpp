// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "host_abi/streams/own_link.h"

#include "verbs/control_streams.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <cstring>
#include <string>

namespace ib::host_abi::stream_switch {
namespace {

std::string text_of_link(std::uint64_t stream, int end) {
  return fmt::format("{}{:016x}.{:016x}.{}", verbs::control::kStreamLinkPrefix, ::getpid(), stream,
                     end);
}

void name_socket(int fd, const std::string& text) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(&address.sun_path[1], text.data(), text.size());
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + text.size());
  ASSERT_EQ(::bind(fd, reinterpret_cast<const sockaddr*>(&address), size), 0);
}

class OwnLinkTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds_.data()), 0);
    name_socket(fds_[0], text_of_link(0x1234abcd, 0));
    name_socket(fds_[1], text_of_link(0x1234abcd, 1));
  }
  void TearDown() override {
    for (const int fd : fds_) {
      if (fd >= 0) ::close(fd);
    }
  }
  void close_peer() { ::close(std::exchange(fds_[1], -1)); }

  std::array<int, 2> fds_{-1, -1};
};

TEST_F(OwnLinkTest, APacketIsTakenOnce) {
  OwnLink own(fds_[0]);
  OwnLink peer(fds_[1]);
  EXPECT_EQ(own.take(4).count, 0u);
  EXPECT_TRUE(peer.ring());
  EXPECT_TRUE(peer.ring());
  const auto taken = own.take(4);
  EXPECT_EQ(taken.count, 2u);
  EXPECT_FALSE(taken.foreign);
  EXPECT_EQ(own.take(1).count, 0u);
}

TEST_F(OwnLinkTest, NoMoreAreTakenThanWanted) {
  OwnLink own(fds_[0]);
  OwnLink peer(fds_[1]);
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(peer.ring());
  EXPECT_EQ(own.take(2).count, 2u);
  EXPECT_EQ(own.take(2).count, 1u);
}

TEST_F(OwnLinkTest, ThePeersEndIsNoPacket) {
  OwnLink own(fds_[0]);
  EXPECT_TRUE(OwnLink(fds_[1]).ring());
  EXPECT_FALSE(own.has_hung_up());
  close_peer();
  EXPECT_TRUE(own.has_hung_up());
  EXPECT_EQ(own.take(4).count, 1u);
  EXPECT_EQ(own.take(4).count, 0u);
  EXPECT_FALSE(own.ring());
}

TEST_F(OwnLinkTest, APacketBehindTheEndOfOneHalfIsStillTaken) {
  OwnLink own(fds_[0]);
  EXPECT_TRUE(OwnLink(fds_[1]).ring());
  ASSERT_EQ(::shutdown(fds_[1], SHUT_WR), 0);
  EXPECT_FALSE(own.has_hung_up());
  EXPECT_EQ(own.take(4).count, 1u);
  EXPECT_EQ(own.take(4).count, 0u);
}

TEST_F(OwnLinkTest, BytesOfAnotherAreForeign) {
  ASSERT_EQ(::send(fds_[1], "x", 1, 0), 1);
  const auto taken = OwnLink(fds_[0]).take(4);
  EXPECT_EQ(taken.count, 1u);
  EXPECT_TRUE(taken.foreign);
}

TEST_F(OwnLinkTest, ManyPacketsMakeThePeersLinkNotWritable) {
  OwnLink own(fds_[0]);
  OwnLink peer(fds_[1]);
  EXPECT_TRUE(peer.is_writable());
  std::uint32_t sent = 0;
  while (peer.ring() && sent < 100'000) ++sent;
  EXPECT_FALSE(peer.is_writable());
  EXPECT_EQ(own.take(sent + 1).count, sent);
  EXPECT_TRUE(peer.is_writable());
}

TEST_F(OwnLinkTest, TheNameSaysWhichEnd) {
  const auto name = name_of_link(fds_[1]);
  ASSERT_TRUE(name);
  EXPECT_EQ(name->stream, 0x1234abcdu);
  EXPECT_EQ(name->end, 1u);
}

TEST(LinkName, OtherDescriptorsHaveNone) {
  EXPECT_FALSE(name_of_link(-1));
  EXPECT_FALSE(name_of_link(STDIN_FILENO));
  const int other = ::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
  EXPECT_FALSE(name_of_link(other));
  name_socket(other, text_of_link(1, 0).replace(40, 1, "g"));
  EXPECT_FALSE(name_of_link(other));
  ::close(other);
}

}  // namespace
}  // namespace ib::host_abi::stream_switch
