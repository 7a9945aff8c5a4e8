// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "services/umad/umad_sends.h"

#include <gtest/gtest.h>

#include <cstring>

namespace ib::services {
namespace {

using namespace std::chrono_literals;

UmadSend send_of(std::uint64_t tid, std::uint8_t mgmt_class = 4,
                 std::uint8_t method = mad::method::kGet) {
  UmadSend send;
  send.agent = static_cast<UmadAgentNumber>(tid >> 32);
  send.header.timeout_ms = 100;
  send.header.retries = 2;
  send.message.resize(mad::kMadSize);
  const mad::MadHeader header{1, mgmt_class, 1, method, 0, 0, tid, 0x12, 0, 0};
  std::memcpy(send.message.data(), &header, sizeof header);
  return send;
}

TEST(UmadSends, OneThatNobodyAnswersIsSentAgainAndThenTimesOut) {
  UmadSends sends;
  Instant now{};
  const UmadSends::Id id = sends.begin(send_of(1), now);
  for (int i = 0; i < 2; ++i) {
    EXPECT_FALSE(sends.poll(now + 99ms));
    now += 100ms;
    const auto event = sends.poll(now);
    ASSERT_TRUE(event);
    EXPECT_EQ(event->due, UmadSends::Due::Resend);
    EXPECT_FALSE(sends.poll(now));
  }
  now += 100ms;
  const auto event = sends.poll(now);
  ASSERT_TRUE(event);
  EXPECT_EQ(event->id, id);
  EXPECT_EQ(event->due, UmadSends::Due::TimedOut);
  EXPECT_TRUE(sends.end(id));
  EXPECT_FALSE(sends.end(id));
  EXPECT_FALSE(sends.next_deadline());
  EXPECT_EQ(sends.size(), 0u);
}

TEST(UmadSends, OneThatIsSuspendedWaitsWithoutEnd) {
  UmadSends sends;
  const UmadSends::Id id = sends.begin(send_of(1), Instant{});
  sends.suspend(id);
  EXPECT_FALSE(sends.poll(Instant{} + 1h));
  sends.resume(id, Instant{} + 1h);
  EXPECT_EQ(sends.next_deadline(), Instant{} + 1h + 100ms);
}

TEST(UmadSends, AResponseBelongsToTheRequestWithItsIdAndClass) {
  UmadSends sends;
  const UmadSends::Id id = sends.begin(send_of(5, 4), Instant{});
  EXPECT_EQ(sends.find(5, 4), id);
  EXPECT_EQ(sends.find(5, 3), 0u);
  EXPECT_EQ(sends.find(6, 4), 0u);
  const UmadSends::Id response = sends.begin(send_of(7, 4, mad::method::kGetResp), Instant{});
  EXPECT_NE(response, 0u);
  EXPECT_EQ(sends.find(7, 4), 0u) << "what waits is no request";
}

TEST(UmadSends, TheSameRequestTwiceIsKnownAndTheSameResponseToAnotherPlaceIsNot) {
  UmadSends sends;
  sends.begin(send_of(5), Instant{});
  EXPECT_TRUE(sends.has_like(send_of(5)));
  EXPECT_FALSE(sends.has_like(send_of(6)));
  EXPECT_FALSE(sends.has_like(send_of(5, 3)));
  UmadSend response = send_of(5, 4, mad::method::kGetResp);
  EXPECT_FALSE(sends.has_like(response));
  response.to.remote.lid = 1;
  sends.begin(response, Instant{});
  EXPECT_TRUE(sends.has_like(response));
  response.to.remote.lid = 2;
  EXPECT_FALSE(sends.has_like(response));
}

TEST(UmadSends, ThoseOfAnAgentAreCounted) {
  UmadSends sends;
  constexpr std::uint64_t kFirst = std::uint64_t{3} << 32, kSecond = std::uint64_t{4} << 32;
  const auto id = sends.begin(send_of(kFirst | 1), Instant{});
  sends.begin(send_of(kFirst | 2), Instant{});
  sends.begin(send_of(kSecond | 1), Instant{});
  EXPECT_EQ(sends.size_of(3), 2u);
  EXPECT_EQ(sends.of_agent(3).size(), 2u);
  sends.end(id);
  EXPECT_EQ(sends.size_of(3), 1u);
  EXPECT_EQ(sends.of_agent(4).size(), 1u);
  EXPECT_EQ(sends.size_of(5), 0u);
}

}  // namespace
}  // namespace ib::services
