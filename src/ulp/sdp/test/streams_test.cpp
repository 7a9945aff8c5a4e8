// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Bytes in messages: order, credits, corking, urgent bytes, and each way to end.
#include "ulp/sdp/stream_internal.h"
#include "ulp/sdp/test/pair_test.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace ib::sdp {
namespace {

using namespace std::chrono_literals;

TEST(SdpStream, CarriesBytesInOrderBothWays) {
  Pair pair;
  EXPECT_TRUE(pair.write(pair.end(0), text("to and ")));
  EXPECT_TRUE(pair.write(pair.end(0), text("fro")));
  EXPECT_TRUE(pair.write(pair.end(1), text("back")));
  pair.settle();
  EXPECT_EQ(readable_bytes(pair.b()), 10u);
  pair.read(pair.end(1), 4);
  pair.read(pair.end(1), 100);
  pair.read(pair.end(0), 100);
  EXPECT_EQ(pair.received(1), "to and fro");
  EXPECT_EQ(pair.received(0), "back");
  EXPECT_EQ(pair.count(0, Mid::Data), 1u);
}

TEST(SdpStream, APieceEndsAtTheEndOfTheSendRing) {
  Pair pair;
  for (unsigned round = 0; round < 20; ++round) {
    EXPECT_TRUE(pair.write(pair.end(0), text(std::string(50, static_cast<char>('a' + round)))));
    pair.settle();
    pair.read(pair.end(1), 1000);
    pair.settle();
  }
  ASSERT_EQ(pair.end(1).received.size(), 1000u);
  for (unsigned i = 0; i < 1000; ++i)
    EXPECT_EQ(pair.received(1)[i], 'a' + static_cast<char>(i / 50));
}

TEST(SdpStream, PayloadLeavesCreditsForAnswers) {
  Pair pair;
  EXPECT_TRUE(pair.write(pair.end(0), TestBytes(256)));
  pair.settle();
  // 8 buffers, of which 4 stay: messages of 32 bytes.
  EXPECT_EQ(pair.count(0, Mid::Data), 4u);
  EXPECT_EQ(pair.a().credits.available(), Credits::kUsualForPayload - 1);
  pair.read(pair.end(1), 64);
  pair.settle();
  EXPECT_EQ(pair.count(1, Mid::Data), 1u);  // an update of credits
  EXPECT_EQ(pair.count(0, Mid::Data), 6u);
}

TEST(SdpStream, TwoEndsThatDoNotReadComeToRest) {
  Pair pair;
  for (unsigned i = 0; i < 2; ++i) EXPECT_TRUE(pair.write(pair.end(i), TestBytes(256)));
  pair.settle();  // ends
  EXPECT_LE(pair.carried.size(), 12u);
  for (unsigned i = 0; i < 2; ++i) EXPECT_GE(pair.end(i).stream().credits.available(), 2u);
}

TEST(SdpCredits, TheLastOneGoesOnlyToAMessageThatGives) {
  Credits credits;
  credits.window_end = 1;
  credits.posted = credits.granted_end = 8;
  EXPECT_EQ(credits.available(), 1u);
  EXPECT_FALSE(credits.may_send_control());
  credits.granted_end = 7;
  EXPECT_TRUE(credits.may_send_control());
  EXPECT_FALSE(credits.may_send_payload());
  credits.window_end = 2;
  credits.granted_end = 8;
  EXPECT_TRUE(credits.may_send_control());
}

TEST(SdpCredits, AnUpdateWaitsUntilItGivesTwo) {
  Credits credits;
  credits.window_end = 8;
  credits.granted_end = 4;
  credits.posted = 5;
  EXPECT_FALSE(credits.update_is_due());
  credits.posted = 6;
  EXPECT_TRUE(credits.update_is_due());
  credits.granted_end = 0;  // the peer has none
  credits.posted = 1;
  EXPECT_TRUE(credits.update_is_due());
  credits.granted_end = 20;  // it has many
  credits.posted = 30;
  EXPECT_FALSE(credits.update_is_due());
  credits.posted = 31;
  EXPECT_TRUE(credits.update_is_due());
  credits.window_end = 0;  // and this end none
  EXPECT_FALSE(credits.update_is_due());
}

TEST(SdpCredits, APeerWithFewBuffersTakesPayloadAtThree) {
  Credits credits;
  credits.window_end = credits.peer_buffers = 3;
  EXPECT_TRUE(credits.may_send_payload());
  credits.sent = 1;
  EXPECT_FALSE(credits.may_send_payload());
  credits.peer_buffers = 0;
  credits.window_end = 3;
  EXPECT_FALSE(credits.may_send_payload());
}

TEST(SdpCredits, NumbersGoRoundTheirCircle) {
  Credits credits;
  credits.sent = 0xffff'fffe;
  credits.window_end = 3;
  EXPECT_EQ(credits.available(), 5u);
  EXPECT_TRUE(is_after(2, 0xffff'fff0));
  EXPECT_FALSE(is_after(0xffff'fff0, 2));
  credits.window_end = 0xffff'fff0;  // the peer has withdrawn buffers
  EXPECT_EQ(credits.available(), 0u);
}

TEST(SdpCredits, WhileAnAcknowledgementIsHeldTheWindowStays) {
  Credits credits;
  credits.posted = 5;
  credits.received = 12;
  credits.holds = 1;
  credits.held = 9;
  EXPECT_EQ(credits.acknowledgement() + credits.advertised(), 17u);
}

TEST(SdpStream, ACorkedWriterSendsFullMessagesOnly) {
  Pair pair;
  set_cork(pair.a(), true);
  EXPECT_TRUE(pair.write(pair.end(0), TestBytes(40)));
  pair.settle();
  EXPECT_EQ(readable_bytes(pair.b()), 32u);
  set_cork(pair.a(), false);
  pair.settle();
  EXPECT_EQ(readable_bytes(pair.b()), 40u);
}

TEST(SdpStream, ShutdownSendsWhatTheCorkHolds) {
  Pair pair;
  set_cork(pair.a(), true);
  EXPECT_TRUE(pair.write(pair.end(0), text("rest")));
  shutdown_send(pair.a());
  pair.settle();
  pair.read(pair.end(1), 100);
  EXPECT_EQ(pair.received(1), "rest");
  EXPECT_EQ(front(pair.b()).kind, Front::End);
}

TEST(SdpStream, AWriteOfMoreThanTheRoomIsRefused) {
  Pair pair;
  EXPECT_EQ(writable_bytes(pair.a()), 256u);
  EXPECT_EQ(write(pair.a(), 257), Status::InsufficientResources);
  EXPECT_EQ(write(pair.a(), 256), Status::Ok);
  EXPECT_EQ(writable_bytes(pair.a()), 0u);
  pair.settle();
  EXPECT_NE(writable_bytes(pair.a()), 0u);
}

// -- Urgent bytes.

TEST(SdpUrgent, TheMarkIsBeforeTheLastByteOfTheWrite) {
  Pair pair;
  EXPECT_TRUE(pair.write(pair.end(0), text("calm")));
  EXPECT_TRUE(pair.write(pair.end(0), text("up!"), true));
  EXPECT_TRUE(pair.write(pair.end(0), text("after")));
  pair.settle();
  EXPECT_EQ(pair.end(1).events & kUrgent, kUrgent);
  EXPECT_TRUE(find_urgent(pair.b()).has_value());
  const Front first = front(pair.b());
  EXPECT_EQ(first.length, 6u);
  EXPECT_FALSE(first.urgent);
  consume(pair.b(), 6);
  const Front mark = front(pair.b());
  EXPECT_TRUE(mark.urgent);
  EXPECT_EQ(mark.length, 1u);
  EXPECT_EQ(pair.end(1).buffers[mark.buffer][mark.offset], std::byte{'!'});
  consume(pair.b(), 1);
  EXPECT_EQ(front(pair.b()).length, 5u);
  EXPECT_FALSE(find_urgent(pair.b()).has_value());
}

TEST(SdpUrgent, MessagesBeforeItAnnounceIt) {
  Pair pair;
  EXPECT_TRUE(pair.write(pair.end(0), TestBytes(40), true));
  pair.pump(pair.end(0));
  ASSERT_EQ(pair.end(0).queue.size(), 2u);
  EXPECT_EQ(pair.end(0).queue[0].header.bytes[1], kOobPending);
  EXPECT_EQ(pair.end(0).queue[1].header.bytes[1], kOobPresent);
  pair.run_post(pair.end(0));
  pair.deliver_message(pair.end(1));
  EXPECT_EQ(take_events(pair.b()) & (kUrgentPending | kUrgent), kUrgentPending);
}

TEST(SdpUrgent, ASecondOneTakesThePlaceOfOneThatWasNotSent) {
  Pair pair;
  EXPECT_TRUE(pair.write(pair.end(0), text("a"), true));
  EXPECT_TRUE(pair.write(pair.end(0), text("b"), true));
  pair.settle();
  pair.read(pair.end(1), 100);
  EXPECT_EQ(pair.received(1), "ab");
  EXPECT_EQ(pair.end(1).marks, std::vector<std::size_t>{1});
}

// -- Endings. Each order of the two half closes.

TEST(SdpEnding, EachHalfClosesByItself) {
  Pair pair;
  EXPECT_TRUE(pair.write(pair.end(0), text("bye")));
  shutdown_send(pair.a());
  pair.settle();
  EXPECT_EQ(pair.a().state, State::DisConnSent);
  EXPECT_EQ(pair.b().state, State::DisConnReceived);
  EXPECT_EQ(write(pair.a(), 1), Status::InvalidState);
  EXPECT_TRUE(pair.write(pair.end(1), text("answer")));
  pair.settle();
  shutdown_send(pair.b());
  pair.settle();
  EXPECT_EQ(pair.a().state, State::Closed);
  EXPECT_EQ(pair.b().state, State::Closed);
  EXPECT_EQ(pair.a().was_first_to_close, 1);
  EXPECT_EQ(pair.b().was_first_to_close, 0);
  pair.read(pair.end(0), 100);
  pair.read(pair.end(1), 100);
  EXPECT_EQ(pair.received(0), "answer");
  EXPECT_EQ(pair.received(1), "bye");
  EXPECT_EQ(pair.end(0).events & (kFinished | kPeerClosed), kFinished | kPeerClosed);
}

TEST(SdpEnding, BothMayCloseAtOnce) {
  Pair pair;
  shutdown_send(pair.a());
  shutdown_send(pair.b());
  for (unsigned i = 0; i < 2; ++i) pair.pump(pair.end(i));
  for (unsigned i = 0; i < 2; ++i) pair.run_post(pair.end(i));
  EXPECT_EQ(pair.a().state, State::DisConnSent);
  EXPECT_EQ(pair.b().state, State::DisConnSent);
  for (unsigned i = 0; i < 2; ++i) pair.deliver_message(pair.end(i));
  EXPECT_EQ(pair.a().state, State::Closing);  // its DisConn has not completed
  pair.settle();
  EXPECT_EQ(pair.a().state, State::Closed);
  EXPECT_EQ(pair.b().state, State::Closed);
}

TEST(SdpEnding, AConnectionThatBreaksBehindBothDisConnsIsNotLost) {
  Pair pair;
  shutdown_send(pair.a());
  pair.settle();
  shutdown_send(pair.b());
  pair.pump(pair.end(1));
  pair.run_post(pair.end(1));
  pair.deliver_message(pair.end(0));
  on_lost(pair.a());
  EXPECT_EQ(pair.a().state, State::Closed);
  // This end's DisConn may not have come.
  on_lost(pair.b());
  EXPECT_EQ(pair.b().state, State::Lost);
}

TEST(SdpEnding, CloseWithUnreadBytesResetsThePeer) {
  Pair pair;
  EXPECT_TRUE(pair.write(pair.end(1), text("unread")));
  pair.settle();
  close(pair.a(), false, pair.now);
  EXPECT_EQ(pair.a().state, State::Aborting);
  pair.settle();
  EXPECT_EQ(pair.a().state, State::Aborted);
  EXPECT_EQ(pair.b().state, State::Reset);
  EXPECT_EQ(pair.end(1).events & (kReset | kFinished), kReset | kFinished);
  EXPECT_EQ(pair.end(0).not_posted, 1u);  // the buffer with the unread bytes
}

TEST(SdpEnding, BytesAfterCloseResetThePeer) {
  Pair pair;
  EXPECT_TRUE(pair.write(pair.end(0), text("last words")));
  close(pair.a(), false, pair.now);
  pair.settle();
  EXPECT_EQ(pair.a().state, State::DisConnSent);
  pair.read(pair.end(1), 100);
  EXPECT_EQ(pair.received(1), "last words");
  EXPECT_TRUE(pair.write(pair.end(1), text("nobody hears")));
  pair.settle();
  EXPECT_EQ(pair.a().state, State::Aborted);
  EXPECT_EQ(pair.b().state, State::Reset);
}

TEST(SdpEnding, AbortHasNoWordsWithoutACredit) {
  Pair pair;
  pair.a().credits.window_end = pair.a().credits.sent;
  abort(pair.a());
  pair.settle();
  EXPECT_EQ(pair.a().state, State::Aborted);
  EXPECT_EQ(pair.count(0, Mid::AbortConn), 0u);
  EXPECT_EQ(pair.end(0).events & kFinished, kFinished);
}

TEST(SdpEnding, BytesThatCameBeforeAResetStayReadable) {
  Pair pair;
  EXPECT_TRUE(pair.write(pair.end(0), text("heard")));
  pair.settle();
  abort(pair.a());
  pair.settle();
  EXPECT_EQ(pair.b().state, State::Reset);
  pair.read(pair.end(1), 100);
  EXPECT_EQ(pair.received(1), "heard");
  EXPECT_EQ(front(pair.b()).kind, Front::Nothing);
}

TEST(SdpEnding, APeerThatNeverClosesIsGivenUpAfterClose) {
  Pair pair;
  close(pair.a(), false, pair.now);
  EXPECT_FALSE(deadline(pair.a()).has_value());
  pair.settle();
  ASSERT_TRUE(deadline(pair.a()).has_value());
  EXPECT_EQ(*deadline(pair.a()) - pair.now, 60s);
  pair.now += 60s;
  on_time(pair.a(), pair.now);
  pair.settle();
  EXPECT_EQ(pair.a().state, State::Aborted);
  EXPECT_EQ(pair.b().state, State::Reset);
}

// The meaning of a lost connection in each state.
TEST(SdpEnding, ALossIsToldInEachState) {
  const std::pair<State, State> table[] = {
      {State::Idle, State::Lost},        {State::Connecting, State::Lost},
      {State::Accepting, State::Lost},   {State::Established, State::Lost},
      {State::DisConnSent, State::Lost}, {State::DisConnReceived, State::Lost},
      {State::Aborting, State::Aborted}, {State::Closed, State::Closed},
      {State::Aborted, State::Aborted},  {State::Reset, State::Reset},
      {State::Lost, State::Lost},
  };
  for (const auto& [before, after] : table) {
    Stream stream;
    ASSERT_EQ(init(stream, small_settings()), Status::Ok);
    stream.state = before;
    on_lost(stream);
    EXPECT_EQ(stream.state, after) << static_cast<int>(before);
  }
}

// Connected, with this end's and the peer's half closed or not, and the message that the peer sends
// next.
TEST(SdpEnding, MessagesOfEachStateThatMayNotCome) {
  struct Case {
    bool own_closed, peer_closed;
    Mid mid;
    bool is_legal;
  };
  const Case table[] = {
      {false, false, Mid::Data, true},
      {false, false, Mid::DisConn, true},
      {true, false, Mid::Data, true},
      {true, false, Mid::DisConn, true},
      {false, true, Mid::Data, false},
      {false, true, Mid::DisConn, false},
      {false, true, Mid::SrcAvail, false},
      {false, true, Mid::AbortConn, true},
      {true, false, Mid::AbortConn, true},
      {false, false, Mid::RdmaWrCompl, false},
      {false, false, Mid::RdmaRdCompl, false},
      {false, false, Mid::SinkCancelAck, false},
      {false, false, Mid::SinkAvail, false},
      {false, false, Mid::SinkAvailCancel, true},
      {false, false, Mid::SrcAvailCancel, true},
      {false, false, Mid::SendSm, true},
      {false, false, Mid::ChRcvBufAck, false},
      {false, false, Mid::SuspCommAck, false},
      {false, false, Mid::SuspComm, true},
      {false, false, Mid::Hello, false},
      {false, false, Mid::HelloAck, false},
  };
  for (const Case& each : table) {
    Pair pair;
    if (each.own_closed) shutdown_send(pair.a());
    if (each.peer_closed) shutdown_send(pair.b());
    pair.settle();
    Message message = pair.next_message(0, each.mid);
    message.size = 100;
    message.payload = each.mid == Mid::Data || each.mid == Mid::SrcAvail ? 1 : 0;
    const Status status = pair.invent(0, message);
    EXPECT_EQ(status == Status::Ok, each.is_legal)
        << "kind " << static_cast<unsigned>(each.mid) << " own " << each.own_closed << " peer's "
        << each.peer_closed;
    EXPECT_EQ(pair.a().state == State::Aborting, !each.is_legal);
  }
}

TEST(SdpEnding, NumbersThatDoNotFitAbort) {
  for (const unsigned wrong : {0u, 1u, 2u}) {
    Pair pair;
    Message message = pair.next_message(0, Mid::Data);
    if (wrong == 0) ++message.sequence;
    if (wrong == 1) ++message.acknowledged;
    if (wrong == 2) pair.a().credits.posted = 0;  // more messages than credits
    EXPECT_EQ(pair.invent(0, message), Status::Malformed) << wrong;
    EXPECT_EQ(pair.a().state, State::Aborting);
    EXPECT_EQ(take_events(pair.a()) & kProtocolError, kProtocolError);
  }
}

TEST(SdpStream, SettingsThatMakeNoSenseAreRefused) {
  const auto refused = [](auto change) {
    Settings settings = small_settings();
    change(settings);
    Stream stream;
    return init(stream, settings) == Status::InvalidParameter;
  };
  EXPECT_TRUE(refused([](Settings& s) { s.send_ring_bytes = 0; }));
  EXPECT_TRUE(refused([](Settings& s) { s.receive_buffer_bytes = kLongestHeader; }));
  EXPECT_TRUE(refused([](Settings& s) { s.receive_buffers = kLeastReceiveBuffers - 1; }));
  EXPECT_TRUE(refused([](Settings& s) { s.receive_buffers = kMostReceiveBuffers + 1; }));
  EXPECT_TRUE(refused([](Settings& s) { s.send_slots = kMostSendSlots + 1; }));
  EXPECT_TRUE(refused([](Settings& s) { s.inlined_bytes = 0; }));
  EXPECT_TRUE(refused([](Settings& s) { s.max_adverts = kMostAdverts + 1; }));
  EXPECT_FALSE(refused([](Settings&) {}));
}

TEST(SdpStream, APeerWithTooFewBuffersIsRefused) {
  Stream stream;
  ASSERT_EQ(init(stream, small_settings()), Status::Ok);
  Hello hello;
  hello.local_size = 1000;
  hello.buffers = 2;
  EXPECT_EQ(on_hello(stream, hello), Status::InvalidParameter);
  hello.buffers = 3;
  EXPECT_EQ(on_hello(stream, hello), Status::Ok);
  EXPECT_EQ(stream.sending.max_adverts, 1u);
  hello.capabilities = kExtendedAdverts;
  hello.extended_adverts = 300;
  EXPECT_EQ(on_hello(stream, hello), Status::Ok);
  EXPECT_EQ(stream.sending.max_adverts, kMostAdverts);
  (void)make_hello(stream, Hello{});
  EXPECT_EQ(on_hello_ack(stream, HelloAck{2, 1, 1000}), Status::InvalidParameter);
  EXPECT_EQ(stream.state, State::Connecting);
}

TEST(SdpStream, GoesOnInACopyOfItsState) {
  Pair pair;
  EXPECT_TRUE(pair.write(pair.end(0), text("before ")));
  pair.pump(pair.end(0));
  World::move_state(pair.end(0));
  World::move_state(pair.end(1));
  EXPECT_TRUE(pair.write(pair.end(0), text("after")));
  pair.settle();
  pair.read(pair.end(1), 100);
  EXPECT_EQ(pair.received(1), "before after");
}

}  // namespace
}  // namespace ib::sdp
