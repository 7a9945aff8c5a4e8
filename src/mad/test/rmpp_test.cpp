// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// One end of a multi-packet transfer, packet by packet.
#include "mad/rmpp.h"

#include <gtest/gtest.h>

#include <cstring>

namespace ib::mad {
namespace {

using namespace std::chrono_literals;
using Kind = Rmpp::Output::Kind;

constexpr std::size_t kSaHeader = 56;
constexpr Peer kPeer{3, 17, 1, {}};

std::vector<std::byte> message_of(std::size_t bytes, std::uint8_t mgmt_class = mgmt_class::kSubnAdm,
                                  std::uint8_t method = method::kGetTableResp) {
  std::vector<std::byte> message(header_size(mgmt_class) + bytes);
  for (std::size_t i = 0; i < message.size(); ++i) message[i] = std::byte(i * 13 + 1);
  MadHeader header;
  header = {1, mgmt_class, 2, method, 0, 0, 0x77, 0x35, 0, 0};
  std::memcpy(message.data(), &header, sizeof header);
  return message;
}

struct Packet {
  RmppType type = RmppType::Data;
  std::uint8_t flags = rmpp_flag::kActive;
  std::uint8_t status = 0;
  std::uint32_t segment = 0;
  std::uint32_t length_window = 0;
  std::uint8_t method = method::kGetTable;
  std::uint8_t version = kRmppVersion;
};
Mad mad_of(const Packet& packet) {
  Mad mad{};
  const std::vector<std::byte> message = message_of(200);
  std::copy_n(message.begin(), mad.size(), mad.begin());
  mad[3] = std::byte{packet.method};
  RmppHeader header;
  header.version = packet.version;
  header.type = static_cast<std::uint8_t>(packet.type);
  header.time_flags = static_cast<std::uint8_t>(kNoResponseTime << 3 | packet.flags);
  header.status = packet.status;
  header.segment = packet.segment;
  header.length_window = packet.length_window;
  set_rmpp_header(mad, header);
  return mad;
}

class RmppTest : public ::testing::Test {
 protected:
  // All packets that are due, and the last of other outputs.
  std::vector<RmppHeader> packets() {
    std::vector<RmppHeader> headers;
    while (auto output = rmpp.poll(now)) {
      if (output->kind == Kind::Packet) {
        headers.push_back(rmpp_header_of(output->packet));
        last_packet = output->packet;
      } else if (output->kind == Kind::Over) {
        ++over;
      } else {
        last = *std::move(output);
      }
    }
    return headers;
  }
  void send(std::size_t bytes) {
    auto id = rmpp.send(kPeer, message_of(bytes), false, now);
    ASSERT_TRUE(id);
  }
  void ack(std::uint32_t segment, std::uint32_t window_last) {
    on({RmppType::Ack, rmpp_flag::kActive, 0, segment, window_last, method::kGetTable});
  }
  void on(const Packet& packet) { rmpp.on_packet(kPeer, mad_of(packet), true, now); }
  // A DATA packet of a message to this end.
  void data(std::uint32_t segment, std::uint8_t flags = 0, std::uint32_t length = 0) {
    on({RmppType::Data, static_cast<std::uint8_t>(rmpp_flag::kActive | flags), 0, segment, length,
        method::kGetTableResp});
  }
  // The only packet that is due is this one, with this status.
  void expect_end(RmppType type, RmppStatus status) {
    const auto sent = packets();
    ASSERT_EQ(sent.size(), 1u);
    EXPECT_EQ(sent[0].type, static_cast<std::uint8_t>(type));
    EXPECT_EQ(sent[0].status, static_cast<std::uint8_t>(status));
    EXPECT_EQ(last.status, status);
    EXPECT_EQ(over, 1);
    EXPECT_EQ(rmpp.bytes(), 0u);
  }

  Rmpp::Options options;
  Rmpp rmpp{options};
  Instant now{1s};
  Rmpp::Output last;
  Mad last_packet{};
  int over = 0;
};

TEST_F(RmppTest, TheFirstPacketGoesAloneAndHasTheLengthOfAll) {
  send(450);
  const auto first = packets();
  ASSERT_EQ(first.size(), 1u);
  EXPECT_EQ(first[0].version, 1);
  EXPECT_EQ(first[0].type, 1);
  EXPECT_EQ(first[0].time_flags, 0x1f << 3 | rmpp_flag::kActive | rmpp_flag::kFirst);
  EXPECT_EQ(first[0].segment, 1u);
  EXPECT_EQ(first[0].length_window, 450u + 3 * 20) << "with the SA header of each packet";
  ack(1, 17);
  const auto others = packets();
  ASSERT_EQ(others.size(), 2u);
  EXPECT_EQ(others[0].flags(), rmpp_flag::kActive);
  EXPECT_EQ(others[0].length_window, 0u);
  EXPECT_EQ(others[1].flags(), rmpp_flag::kActive | rmpp_flag::kLast);
  EXPECT_EQ(others[1].length_window, 70u) << "50 bytes and the SA header";
  EXPECT_EQ(
      std::memcmp(last_packet.data() + kSaHeader, message_of(450).data() + kSaHeader + 400, 50), 0);
  ack(3, 19);
  EXPECT_TRUE(packets().empty());
  EXPECT_EQ(last.kind, Kind::Sent);
  EXPECT_EQ(rmpp.sends(), 0u);
}

TEST_F(RmppTest, AnEmptyMessageIsOnePacket) {
  send(0);
  const auto only = packets();
  ASSERT_EQ(only.size(), 1u);
  EXPECT_EQ(only[0].flags(), rmpp_flag::kActive | rmpp_flag::kFirst | rmpp_flag::kLast);
  EXPECT_EQ(only[0].length_window, 20u);
}

TEST_F(RmppTest, LengthsOfTheLastPacket) {
  for (const auto& [bytes, segments, length] :
       {std::tuple{199u, 1u, 219u}, {200u, 1u, 220u}, {201u, 2u, 21u}, {400u, 2u, 220u}}) {
    RmppSender sender(message_of(bytes), {.window = 9}, now);
    EXPECT_EQ(sender.segments(), segments);
    RmppHeader header;
    while (auto mad = sender.poll(now)) header = rmpp_header_of(*mad);
    EXPECT_EQ(header.segment, segments);
    EXPECT_EQ(header.length_window, length);
  }
  RmppSender vendor(message_of(217, 0x30), {.window = 9}, now);
  EXPECT_EQ(vendor.segments(), 2u) << "a vendor's packet has 216 bytes of data";
}

TEST_F(RmppTest, TheWindowIsKeptAndGrowsWithEachAcknowledgement) {
  send(20 * 200);
  EXPECT_EQ(packets().size(), 1u);
  ack(1, 5);
  EXPECT_EQ(packets().size(), 4u);
  ack(3, 5);
  EXPECT_TRUE(packets().empty()) << "nothing more is allowed";
  ack(3, 8);
  EXPECT_EQ(packets().size(), 3u);
  ack(2, 4);
  EXPECT_TRUE(packets().empty()) << "an older one";
  ack(8, 1000000);
  EXPECT_EQ(packets().size(), 12u);
}

TEST_F(RmppTest, WithoutAnAcknowledgementTheWindowIsSentAgainAndThenGivenUp) {
  send(600);
  EXPECT_EQ(packets().size(), 1u);
  ack(1, 17);
  EXPECT_EQ(packets().size(), 2u);
  for (std::uint32_t retry = 0; retry < options.send.retries; ++retry) {
    now += options.send.timeout;
    const auto again = packets();
    ASSERT_EQ(again.size(), 2u);
    EXPECT_EQ(again[0].segment, 2u);
  }
  now += options.send.timeout;
  expect_end(RmppType::Abort, RmppStatus::TooManyRetries);
  EXPECT_FALSE(last.by_peer);
}

TEST_F(RmppTest, AClosedWindowIsProbed) {
  send(600);
  (void)packets();
  ack(1, 1);
  EXPECT_TRUE(packets().empty());
  now += options.send.timeout;
  const auto probe = packets();
  ASSERT_EQ(probe.size(), 1u);
  EXPECT_EQ(probe[0].segment, 1u);
  ack(1, 3);
  EXPECT_EQ(packets().size(), 2u);
}

TEST_F(RmppTest, TheReceiverMayWantMoreTime) {
  send(600);
  (void)packets();
  Mad slow = mad_of({RmppType::Ack, rmpp_flag::kActive, 0, 1, 2});
  slow[kRmppOffset + 2] = std::byte{20 << 3 | rmpp_flag::kActive};  // 4.3 s
  rmpp.on_packet(kPeer, slow, true, now);
  EXPECT_EQ(packets().size(), 1u);
  now += 4s;
  EXPECT_TRUE(packets().empty());
  now += 1s;
  EXPECT_EQ(packets().size(), 1u);
}

TEST_F(RmppTest, AcknowledgementsThatMakeNoSenseEndTheTransfer) {
  const std::pair<Packet, RmppStatus> cases[] = {
      {{RmppType::Ack, 1, 0, 2, 9}, RmppStatus::SegmentTooBig},
      {{RmppType::Ack, 1, 0, 1, 0}, RmppStatus::WindowTooSmall},
      {{RmppType::Ack, 1, 5, 1, 9}, RmppStatus::IllegalStatus},
      {{RmppType::Stop, 1, 118, 0, 0}, RmppStatus::IllegalStatus},
      {{RmppType::Abort, 1, 1, 0, 0}, RmppStatus::IllegalStatus}};
  for (const auto& [packet, status] : cases) {
    over = 0;
    send(600);
    (void)packets();
    on(packet);
    expect_end(RmppType::Abort, status);
  }
}

TEST_F(RmppTest, StopAndAbortEndTheSendWithoutAnAnswer) {
  for (const auto& [type, status] : {std::pair{RmppType::Stop, RmppStatus::Resources},
                                     {RmppType::Abort, RmppStatus::TimeTooLong}}) {
    over = 0;
    send(600);
    (void)packets();
    on({type, rmpp_flag::kActive, static_cast<std::uint8_t>(status)});
    EXPECT_TRUE(packets().empty());
    EXPECT_EQ(last.kind, Kind::SendFailed);
    EXPECT_EQ(last.status, status);
    EXPECT_TRUE(last.by_peer);
    EXPECT_EQ(over, 1);
  }
}

TEST_F(RmppTest, ControlPacketsOfOthersDoNothing) {
  send(600);
  (void)packets();
  const Mad stop = mad_of({RmppType::Stop, rmpp_flag::kActive, 1});
  EXPECT_EQ(rmpp.on_packet({3, 18, 1, {}}, stop, true, now), 0u) << "another LID";
  EXPECT_EQ(rmpp.on_packet({4, 17, 1, {}}, stop, true, now), 0u) << "another port";
  EXPECT_EQ(rmpp.on_packet({3, 17, 2, {}}, stop, true, now), 0u) << "another queue pair";
  Packet other{RmppType::Stop, rmpp_flag::kActive, 1};
  other.method = method::kGetTableResp;
  EXPECT_EQ(rmpp.on_packet(kPeer, mad_of(other), true, now), 0u) << "the wrong direction";
  EXPECT_EQ(rmpp.sends(), 1u);
}

TEST_F(RmppTest, TheReceiverAcknowledgesTheFirstAndTheEndOfEachWindow) {
  const std::uint32_t window = options.receive.window;
  data(1, rmpp_flag::kFirst);
  auto acks = packets();
  ASSERT_EQ(acks.size(), 1u);
  EXPECT_EQ(acks[0].segment, 1u);
  EXPECT_EQ(acks[0].length_window, 1 + window);
  EXPECT_EQ(last_packet[3], std::byte{method::kGetTable}) << "the other direction";
  for (std::uint32_t segment = 2; segment <= window; ++segment) {
    data(segment);
    EXPECT_TRUE(packets().empty());
  }
  data(window + 1);
  acks = packets();
  ASSERT_EQ(acks.size(), 1u);
  EXPECT_EQ(acks[0].segment, window + 1);
  EXPECT_EQ(acks[0].length_window, 2 * window + 1);
  data(window + 2, rmpp_flag::kLast, 20 + 7);
  acks = packets();
  ASSERT_EQ(acks.size(), 1u);
  EXPECT_EQ(last.kind, Kind::Received);
  EXPECT_EQ(last.message.size(), kSaHeader + (window + 1) * 200 + 7);
}

TEST_F(RmppTest, SegmentsMayComeInAnyOrderAndTwice) {
  data(1, rmpp_flag::kFirst, 3 * 220 - 50);
  data(3, rmpp_flag::kLast, 170);
  data(3, rmpp_flag::kLast, 170);
  data(1, rmpp_flag::kFirst, 3 * 220 - 50);
  EXPECT_NE(last.kind, Kind::Received);
  data(2);
  (void)packets();
  EXPECT_EQ(last.kind, Kind::Received);
  EXPECT_EQ(last.message.size(), kSaHeader + 400 + 150);
  last = {};
  data(3, rmpp_flag::kLast, 170);
  const auto again = packets();
  ASSERT_EQ(again.size(), 1u) << "its acknowledgement was lost";
  EXPECT_EQ(again[0].segment, 3u);
  EXPECT_NE(last.kind, Kind::Received);
  now += options.receive.linger;
  (void)packets();
  EXPECT_EQ(over, 1);
}

TEST_F(RmppTest, BeyondTheWindowNothingIsKept) {
  data(1, rmpp_flag::kFirst);
  (void)packets();
  data(2 + options.receive.window);
  EXPECT_TRUE(packets().empty());
  EXPECT_EQ(rmpp.bytes(), 200u);
}

TEST_F(RmppTest, PacketsThatMakeNoSenseEndTheReception) {
  struct Case {
    std::uint32_t segment;
    std::uint8_t flags;
    std::uint32_t length;
    RmppStatus status;
  };
  const Case cases[] = {
      {2, rmpp_flag::kFirst, 0, RmppStatus::InconsistentFirst},
      {1, 0, 0, RmppStatus::InconsistentFirst},
      {0, 0, 0, RmppStatus::InconsistentFirst},
      {2, rmpp_flag::kLast, 19, RmppStatus::InconsistentLast},
      {2, rmpp_flag::kLast, 221, RmppStatus::InconsistentLast},
      {2, rmpp_flag::kLast, 100, RmppStatus::InconsistentLast},  // three are to come
      {4, 0, 0, RmppStatus::InconsistentLast},
      {3, 0, 0, RmppStatus::InconsistentLast},                   // has no LAST
      {1, rmpp_flag::kFirst, 500, RmppStatus::InconsistentLast}  // was 600
  };
  for (const Case& each : cases) {
    SCOPED_TRACE(::testing::PrintToString(std::tuple{each.segment, each.flags, each.length}));
    over = 0;
    data(1, rmpp_flag::kFirst, 600);
    EXPECT_EQ(packets().size(), 1u);
    data(each.segment, each.flags, each.length);
    expect_end(RmppType::Abort, each.status);
    EXPECT_EQ(last.kind, Kind::ReceiveFailed);
  }
  data(1, rmpp_flag::kFirst);
  (void)packets();
  over = 0;
  Packet version{RmppType::Data, 1, 0, 2, 0, method::kGetTableResp, 2};
  on(version);
  expect_end(RmppType::Abort, RmppStatus::UnsupportedVersion);
  data(1, rmpp_flag::kFirst);
  (void)packets();
  over = 0;
  Packet type{static_cast<RmppType>(9), 1, 0, 2, 0, method::kGetTableResp};
  on(type);
  expect_end(RmppType::Abort, RmppStatus::BadType);
}

TEST_F(RmppTest, ASenderThatFallsSilentOrGivesUpIsForgotten) {
  data(1, rmpp_flag::kFirst);
  (void)packets();
  now += options.receive.gap;
  expect_end(RmppType::Abort, RmppStatus::TimeTooLong);
  data(1, rmpp_flag::kFirst);
  (void)packets();
  Packet abort{RmppType::Abort, 1, 126, 0, 0, method::kGetTableResp};
  on(abort);
  EXPECT_TRUE(packets().empty());
  EXPECT_EQ(last.kind, Kind::ReceiveFailed);
  EXPECT_EQ(last.status, RmppStatus::TooManyRetries);
  EXPECT_TRUE(last.by_peer);
}

TEST_F(RmppTest, ADripOfPacketsEndsToo) {
  data(1, rmpp_flag::kFirst);
  (void)packets();
  const Instant begin = now;
  for (std::uint32_t segment = 2; over == 0 && segment < 100; ++segment) {
    now += options.receive.gap - 1s;
    data(segment);
    (void)packets();
  }
  EXPECT_EQ(over, 1);
  EXPECT_LE(now - begin, options.receive.total + options.receive.gap);
}

TEST_F(RmppTest, NothingBeginsThatNobodyWants) {
  const Mad mad = mad_of({RmppType::Data, 3, 0, 1, 0, method::kGetTableResp});
  EXPECT_EQ(rmpp.on_packet(kPeer, mad, false, now), 0u);
  EXPECT_TRUE(packets().empty());
  data(2);
  EXPECT_EQ(rmpp.receptions(), 0u);
}

TEST_F(RmppTest, MessagesThatAreTooLongAreStopped) {
  rmpp = Rmpp({.receive = {.max_bytes = 1000}});
  data(1, rmpp_flag::kFirst, 7 * 220);
  expect_end(RmppType::Stop, RmppStatus::Resources);
  over = 0;
  data(1, rmpp_flag::kFirst);
  for (std::uint32_t segment = 2; segment <= 6; ++segment) data(segment);
  (void)packets();
  EXPECT_EQ(over, 0);
  data(7);
  expect_end(RmppType::Stop, RmppStatus::Resources);
}

TEST_F(RmppTest, MessagesThatAreSentHaveALimitTogether) {
  rmpp = Rmpp({.max_sent_bytes = 1000});
  const auto send = [&] {
    return rmpp.send(kPeer, message_of(400, mgmt_class::kSubnAdm, method::kGetTableResp), false,
                     now);
  };
  const auto first = send();
  ASSERT_TRUE(first);
  const std::size_t one = rmpp.sent_bytes();
  EXPECT_GE(one, 400u);
  ASSERT_TRUE(send());
  EXPECT_EQ(send().error(), Status::LimitExceeded);
  rmpp.cancel(*first);
  (void)packets();
  EXPECT_EQ(rmpp.sent_bytes(), one);
  EXPECT_TRUE(send());
}

TEST_F(RmppTest, APeerHasAQuotaAndLeavesRoomForOthers) {
  rmpp = Rmpp({.max_bytes = 2000, .max_bytes_per_peer = 1000, .max_receptions_per_peer = 3});
  const auto begin = [&](std::uint16_t lid, std::uint64_t tid, std::uint32_t segment) {
    Mad mad =
        mad_of({RmppType::Data,
                static_cast<std::uint8_t>(segment == 1 ? rmpp_flag::kActive | rmpp_flag::kFirst
                                                       : rmpp_flag::kActive),
                0, segment, 0, method::kGetTableResp});
    const Be64 id = tid;
    std::memcpy(mad.data() + offsetof(MadHeader, transaction_id), &id, sizeof id);
    rmpp.on_packet({3, lid, static_cast<std::uint32_t>(tid), {}}, mad, true, now);
    return packets();
  };
  for (std::uint64_t tid = 1; tid <= 3; ++tid) EXPECT_EQ(begin(5, tid, 1).size(), 1u);
  const auto refused = begin(5, 4, 1);
  ASSERT_EQ(refused.size(), 1u);
  EXPECT_EQ(refused[0].type, static_cast<std::uint8_t>(RmppType::Stop));
  EXPECT_EQ(rmpp.receptions(), 3u);
  EXPECT_TRUE(begin(5, 1, 2).empty());
  EXPECT_TRUE(begin(5, 1, 3).empty());
  const auto full = begin(5, 1, 4);
  ASSERT_EQ(full.size(), 1u) << "1,000 bytes are taken";
  EXPECT_EQ(full[0].type, static_cast<std::uint8_t>(RmppType::Stop));
  EXPECT_EQ(begin(6, 1, 1).size(), 1u);
  for (std::uint32_t segment = 2; segment <= 5; ++segment)
    EXPECT_TRUE(begin(6, 1, segment).empty());
  EXPECT_LE(rmpp.bytes(), 2000u);
  now += options.receive.total;
  (void)packets();
  EXPECT_EQ(rmpp.bytes(), 0u);
  EXPECT_EQ(rmpp.receptions(), 0u);
}

TEST_F(RmppTest, TheAnswerOfALongRequestBeginsWithTheWindowThatIsAllowed) {
  on({RmppType::Data, 3, 0, 1, 0, method::kGetMulti});
  on({RmppType::Data, 5, 0, 2, 30, method::kGetMulti});
  (void)packets();
  ASSERT_EQ(last.kind, Kind::Received);
  on({RmppType::Ack, 1, 0, 0, 4, method::kGetMulti});
  ASSERT_TRUE(
      rmpp.send(kPeer, message_of(2000, mgmt_class::kSubnAdm, method::kGetMultiResp), false, now));
  EXPECT_EQ(packets().size(), 4u);
}

TEST_F(RmppTest, ASenderOfALongRequestAllowsTheAnswer) {
  ASSERT_TRUE(rmpp.send(kPeer, message_of(10, mgmt_class::kSubnAdm, method::kGetMulti), true, now));
  EXPECT_EQ(packets().size(), 1u);
  Packet ack_of{RmppType::Ack, 1, 0, 1, 17, method::kGetMultiResp};
  on(ack_of);
  const auto allowed = packets();
  ASSERT_EQ(allowed.size(), 1u);
  EXPECT_EQ(allowed[0].type, static_cast<std::uint8_t>(RmppType::Ack));
  EXPECT_EQ(allowed[0].segment, 0u);
  EXPECT_EQ(allowed[0].length_window, options.receive.window);
  EXPECT_EQ(last.kind, Kind::Sent);
}

TEST_F(RmppTest, ACancelledTransferTellsThePeerAndNobodyElse) {
  const auto id = rmpp.send(kPeer, message_of(1000), false, now);
  (void)packets();
  rmpp.cancel(*id);
  const auto sent = packets();
  ASSERT_EQ(sent.size(), 1u);
  EXPECT_EQ(sent[0].type, static_cast<std::uint8_t>(RmppType::Abort));
  EXPECT_EQ(over, 1);
  EXPECT_NE(last.kind, Kind::SendFailed);
  rmpp.cancel(*id);
}

TEST_F(RmppTest, OnlyClassesWithTheHeaderHaveIt) {
  EXPECT_EQ(rmpp.send(kPeer, message_of(1000, mgmt_class::kPerf), false, now).error(),
            Status::InvalidParameter);
  std::vector<std::byte> small = message_of(0);
  small.pop_back();
  EXPECT_EQ(rmpp.send(kPeer, small, false, now).error(), Status::InvalidParameter);
  Mad mad = mad_of({RmppType::Data, 3, 0, 1, 0, method::kGetTableResp});
  EXPECT_TRUE(is_rmpp(mad));
  mad[1] = std::byte{mgmt_class::kPerf};
  EXPECT_FALSE(is_rmpp(mad));
  EXPECT_EQ(rmpp.on_packet(kPeer, mad, true, now), 0u);
}

}  // namespace
}  // namespace ib::mad
