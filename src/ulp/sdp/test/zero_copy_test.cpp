// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Advertised buffers: READ and WRITE, parts, refusals, cancels, what crosses, and the modes.
#include "ulp/sdp/test/pair_test.h"

#include <gtest/gtest.h>

namespace ib::sdp {
namespace {

using namespace std::chrono_literals;

TestBytes many(std::size_t count, char first = 'a') {
  TestBytes bytes(count);
  for (std::size_t i = 0; i < count; ++i)
    bytes[i] = static_cast<std::byte>(first + static_cast<char>(i % 23));
  return bytes;
}

// A pair whose first end sends in Pipelined mode, and whose second one waits with a buffer.
struct PipelinedPair : Pair {
  PipelinedPair() {
    EXPECT_EQ(request_send_mode(a(), Mode::Pipelined), Status::Ok);
    settle();
    EXPECT_EQ(a().sending.mode, Mode::Pipelined);
    EXPECT_EQ(b().receiving.mode, Mode::Pipelined);
    EXPECT_TRUE(write(end(1), text("seen")));  // acknowledges the change
    settle();
    read(end(0), 4);
    settle();
    carried.clear();
  }
};

TEST(SdpSource, IsReadByTheSinkWithoutACopy) {
  Pair pair;
  const TestBytes bytes = many(1000);
  ASSERT_TRUE(pair.write_direct(pair.end(0), bytes));
  pair.settle();
  EXPECT_EQ(readable_bytes(pair.b()), 1000u);
  EXPECT_EQ(pair.read(pair.end(1), 5000), 1u);  // the byte that a Combined SrcAvail has
  EXPECT_EQ(front(pair.b()).kind, Front::Advertisement);
  EXPECT_EQ(front(pair.b()).length, 999u);
  ASSERT_TRUE(pair.read_direct(pair.end(1), 999));
  pair.settle();
  EXPECT_EQ(pair.end(1).received, bytes);
  ASSERT_EQ(pair.end(0).results.size(), 1u);
  EXPECT_EQ(pair.end(0).results[0].bytes, 1000u);
  EXPECT_EQ(pair.count(0, Mid::SrcAvail), 1u);
  EXPECT_EQ(pair.count(1, Mid::RdmaRdCompl), 1u);
  EXPECT_EQ(pair.count(0, Mid::Data), 0u);
}

TEST(SdpSource, MayBeReadInParts) {
  Pair pair;
  const TestBytes bytes = many(1000);
  ASSERT_TRUE(pair.write_direct(pair.end(0), bytes));
  pair.settle();
  pair.read(pair.end(1), 1);
  for (const std::uint32_t part : {100u, 899u}) {
    EXPECT_TRUE(pair.end(0).results.empty());
    ASSERT_TRUE(pair.read_direct(pair.end(1), part));
    pair.settle();
  }
  EXPECT_EQ(pair.end(1).received, bytes);
  EXPECT_EQ(pair.count(1, Mid::RdmaRdCompl), 2u);
}

TEST(SdpSource, AShortBufferIsCopied) {
  Pair pair;
  ASSERT_TRUE(pair.write_direct(pair.end(0), many(63)));
  pair.settle();
  pair.read(pair.end(1), 100);
  EXPECT_EQ(pair.end(1).received, many(63));
  EXPECT_EQ(pair.count(0, Mid::SrcAvail), 0u);
  EXPECT_EQ(pair.end(0).results.size(), 1u);
}

TEST(SdpSource, BytesKeepTheirPlaceAmongAdvertisements) {
  Pair pair;
  EXPECT_TRUE(pair.write(pair.end(0), text("first ")));
  ASSERT_TRUE(pair.write_direct(pair.end(0), many(100)));
  EXPECT_TRUE(pair.write(pair.end(0), text(" last")));
  pair.settle();
  EXPECT_EQ(readable_bytes(pair.b()), 106u);  // " last" waits for the READ
  pair.read(pair.end(1), 7);
  ASSERT_TRUE(pair.read_direct(pair.end(1), 99));
  pair.settle();
  pair.read(pair.end(1), 100);
  std::string all = "first ";
  for (const std::byte byte : many(100)) all += static_cast<char>(byte);
  EXPECT_EQ(pair.received(1), all + " last");
}

TEST(SdpSource, ASinkWithoutABufferGetsTheRestInMessages) {
  Pair pair;
  ASSERT_TRUE(pair.write_direct(pair.end(0), many(100)));
  pair.settle();
  pair.read(pair.end(1), 1);
  request_copies(pair.b());
  EXPECT_EQ(readable_bytes(pair.b()), 0u);
  pair.settle();
  for (unsigned i = 0; i < 4; ++i) {
    pair.read(pair.end(1), 100);
    pair.settle();
  }
  EXPECT_EQ(pair.end(1).received, many(100));
  EXPECT_EQ(pair.count(1, Mid::SendSm), 1u);
  EXPECT_EQ(pair.end(0).results.at(0).bytes, 100u);
}

TEST(SdpSource, AnAnswerThatDoesNotComeEndsTheAdvertisement) {
  Pair pair;
  ASSERT_TRUE(pair.write_direct(pair.end(0), many(100)));
  pair.settle();
  ASSERT_TRUE(deadline(pair.a()).has_value());
  EXPECT_EQ(*deadline(pair.a()) - pair.now, 1s);
  pair.now += 1s;
  on_time(pair.a(), pair.now);
  EXPECT_FALSE(deadline(pair.a()).has_value());
  pair.settle();
  EXPECT_EQ(pair.count(0, Mid::SrcAvailCancel), 1u);
  EXPECT_EQ(pair.count(1, Mid::SendSm), 1u);
  for (unsigned i = 0; i < 4; ++i) {
    pair.read(pair.end(1), 1000);
    pair.settle();
  }
  EXPECT_EQ(pair.end(1).received, many(100));
}

TEST(SdpSource, ACancelledWriteReturnsWhatWasTaken) {
  Pair pair;
  const auto id = pair.write_direct(pair.end(0), many(100));
  ASSERT_TRUE(id);
  pair.settle();
  pair.read(pair.end(1), 1);
  ASSERT_TRUE(pair.read_direct(pair.end(1), 9));
  pair.settle();
  cancel_write(pair.a(), *id);
  EXPECT_TRUE(pair.end(0).results.empty());  // the peer may still read
  EXPECT_TRUE(pair.write(pair.end(0), text("then")));
  pair.settle();
  ASSERT_EQ(pair.end(0).results.size(), 1u);
  EXPECT_EQ(pair.end(0).results[0].bytes, 10u);
  pair.read(pair.end(1), 100);
  EXPECT_EQ(pair.received(1), "abcdefghijthen");
}

TEST(SdpSource, ACancelWaitsForTheReadThatIsOut) {
  Pair pair;
  const auto id = pair.write_direct(pair.end(0), many(100));
  pair.settle();
  pair.read(pair.end(1), 1);
  ASSERT_TRUE(pair.read_direct(pair.end(1), 50));
  pair.pump(pair.end(1));  // the READ is posted
  cancel_write(pair.a(), *id);
  pair.pump(pair.end(0));
  pair.run_post(pair.end(0));
  pair.deliver_message(pair.end(1));
  pair.pump(pair.end(1));
  EXPECT_EQ(pair.end(1).queue.size(), 1u);  // no SendSm yet
  EXPECT_EQ(pair.b().credits.acknowledgement(), pair.b().credits.received - 1);
  pair.settle();
  EXPECT_EQ(pair.b().credits.acknowledgement(), pair.b().credits.received);
  ASSERT_EQ(pair.end(0).results.size(), 1u);
  EXPECT_EQ(pair.end(0).results[0].bytes, 51u);
  EXPECT_EQ(pair.end(1).received, many(51));
}

TEST(SdpSource, ACancelThatCrossesTheLastCompletionIsHarmless) {
  Pair pair;
  const auto id = pair.write_direct(pair.end(0), many(100));
  pair.settle();
  pair.read(pair.end(1), 1);
  ASSERT_TRUE(pair.read_direct(pair.end(1), 99));
  pair.pump(pair.end(1));
  pair.run_post(pair.end(1));
  pair.deliver_completion(pair.end(1));
  pair.pump(pair.end(1));
  cancel_write(pair.a(), *id);
  pair.post_all();
  EXPECT_EQ(pair.count(0, Mid::SrcAvailCancel), 1u);
  pair.settle();
  EXPECT_EQ(pair.end(0).results.at(0).bytes, 100u);
  EXPECT_EQ(pair.count(1, Mid::SendSm), 0u);
  ASSERT_TRUE(pair.write_direct(pair.end(0), many(100)));  // and the next one is its own
  pair.settle();
  EXPECT_EQ(readable_bytes(pair.b()), 100u);
}

TEST(SdpSource, AWriteThatWasNotStartedIsCancelledAtOnce) {
  Pair pair;
  ASSERT_TRUE(pair.write_direct(pair.end(0), many(100)));
  const auto id = pair.write_direct(pair.end(0), many(200));
  pair.settle();
  cancel_write(pair.a(), *id);
  pair.pump(pair.end(0));
  ASSERT_EQ(pair.end(0).results.size(), 1u);
  EXPECT_EQ(pair.end(0).results[0].id, *id);
  EXPECT_EQ(pair.end(0).results[0].bytes, 0u);
}

TEST(SdpSource, ALossGivesAllBuffersBack) {
  Pair pair;
  ASSERT_TRUE(pair.write_direct(pair.end(0), many(100)));
  pair.settle();
  pair.read(pair.end(1), 1);
  ASSERT_TRUE(pair.read_direct(pair.end(1), 50));
  pair.pump(pair.end(1));
  pair.kill(pair.end(0));
  for (unsigned i = 0; i < 2; ++i) {
    on_lost(pair.end(i).stream());
    pair.pump(pair.end(i));
    EXPECT_EQ(pair.end(i).results.size(), 1u);
  }
  EXPECT_TRUE(pair.end(0).writes.empty());
  EXPECT_TRUE(pair.end(1).reads.empty());
}

// -- Pipelined.

TEST(SdpSink, AReaderThatWaitsGetsThePipelinedMode) {
  Pair pair;
  ASSERT_TRUE(pair.read_direct(pair.end(1), 500));
  pair.settle();
  EXPECT_EQ(pair.a().sending.mode, Mode::Pipelined);
  EXPECT_EQ(pair.count(1, Mid::SinkAvail), 1u);
  EXPECT_TRUE(pair.write(pair.end(0), text("straight into it")));
  pair.settle();
  EXPECT_EQ(pair.received(1), "straight into it");
  EXPECT_EQ(pair.count(0, Mid::RdmaWrCompl), 1u);
  EXPECT_EQ(pair.count(0, Mid::Data), 0u);
  EXPECT_EQ(pair.end(1).results.at(0).bytes, 16u);
}

TEST(SdpSink, IsNotAdvertisedWithoutRoomForAMessage) {
  PipelinedPair pair;
  ASSERT_TRUE(pair.read_direct(pair.end(1), pair.b().receiving.buffer_bytes - 1));
  pair.settle();
  EXPECT_EQ(pair.count(1, Mid::SinkAvail), 0u);
}

TEST(SdpSink, TakesADirectWrite) {
  PipelinedPair pair;
  ASSERT_TRUE(pair.read_direct(pair.end(1), 300));
  pair.settle();
  ASSERT_TRUE(pair.write_direct(pair.end(0), many(1000)));
  pair.settle();
  EXPECT_EQ(pair.end(1).results.at(0).bytes, 300u);
  EXPECT_EQ(front(pair.b()).kind, Front::Advertisement);  // the rest, without a byte in the message
  EXPECT_EQ(front(pair.b()).length, 700u);
  ASSERT_TRUE(pair.read_direct(pair.end(1), 700));
  pair.settle();
  EXPECT_EQ(pair.end(1).received, many(1000));
}

TEST(SdpSink, IsVoidWhenItCrossesPayload) {
  PipelinedPair pair;
  ASSERT_TRUE(pair.read_direct(pair.end(1), 300));
  pair.pump(pair.end(1));
  EXPECT_TRUE(pair.write(pair.end(0), text("crossing")));
  pair.post_all();
  EXPECT_EQ(pair.count(1, Mid::SinkAvail), 1u);
  EXPECT_EQ(pair.count(0, Mid::Data), 1u);
  pair.settle();
  EXPECT_EQ(pair.end(1).results.at(0).bytes, 0u);
  EXPECT_TRUE(pair.a().sending.sinks.is_empty());
  pair.read(pair.end(1), 100);
  // The counts agree again: the next one is taken.
  EXPECT_EQ(pair.a().sending.non_discards, pair.b().receiving.non_discards);
  ASSERT_TRUE(pair.read_direct(pair.end(1), 300));
  pair.settle();
  EXPECT_EQ(pair.a().sending.sinks.size(), 1u);
}

TEST(SdpSink, VoidsASourceThatItCrosses) {
  PipelinedPair pair;
  ASSERT_TRUE(pair.read_direct(pair.end(1), 300));
  pair.pump(pair.end(1));
  ASSERT_TRUE(pair.write_direct(pair.end(0), many(200)));
  pair.post_all();
  EXPECT_EQ(pair.count(0, Mid::SrcAvail), 1u);
  EXPECT_EQ(pair.count(1, Mid::SinkAvail), 1u);
  pair.settle();
  EXPECT_EQ(pair.end(1).received, many(200));
  EXPECT_EQ(pair.count(0, Mid::RdmaWrCompl), 1u);
  EXPECT_EQ(pair.count(1, Mid::RdmaRdCompl), 0u);
  EXPECT_EQ(readable_bytes(pair.b()), 0u);
}

TEST(SdpSink, MayCrossPayloadAndAChangeOfMode) {
  for (const bool payload_first : {true, false}) {
    PipelinedPair pair;
    ASSERT_TRUE(pair.read_direct(pair.end(1), 300));
    pair.pump(pair.end(1));
    EXPECT_TRUE(pair.write(pair.end(0), text("crossing")));
    if (payload_first) pair.pump(pair.end(0));
    ASSERT_EQ(request_send_mode(pair.a(), Mode::Combined), Status::Ok);
    pair.post_all();
    ASSERT_EQ(pair.count(0, Mid::ModeChange), 1u);
    pair.settle();
    pair.read(pair.end(1), 100);
    EXPECT_EQ(pair.received(1), "crossing");
    EXPECT_EQ(pair.a().sending.non_discards, pair.b().receiving.non_discards);
    EXPECT_EQ(pair.a().sending.mode, Mode::Combined);
  }
}

TEST(SdpSink, ACancelIsAcknowledged) {
  PipelinedPair pair;
  ASSERT_TRUE(pair.read_direct(pair.end(1), 300));
  pair.settle();
  cancel_read(pair.b());
  EXPECT_TRUE(pair.end(1).results.empty());
  pair.settle();
  EXPECT_EQ(pair.count(1, Mid::SinkAvailCancel), 1u);
  EXPECT_EQ(pair.count(0, Mid::SinkCancelAck), 1u);
  EXPECT_EQ(pair.end(1).results.at(0).bytes, 0u);
  EXPECT_TRUE(pair.a().sending.sinks.is_empty());
}

TEST(SdpSink, ACancelThatCrossesTheCompletionIsNotAcknowledged) {
  PipelinedPair pair;
  ASSERT_TRUE(pair.read_direct(pair.end(1), 300));
  pair.settle();
  EXPECT_TRUE(pair.write(pair.end(0), text("in time")));
  cancel_read(pair.b());
  pair.post_all();
  pair.settle();
  EXPECT_EQ(pair.received(1), "in time");
  EXPECT_EQ(pair.count(0, Mid::SinkCancelAck), 0u);
}

TEST(SdpSink, AnUrgentByteGoesInAMessage) {
  PipelinedPair pair;
  ASSERT_TRUE(pair.read_direct(pair.end(1), 300));
  pair.settle();
  EXPECT_TRUE(pair.write(pair.end(0), text("alarm!"), true));
  pair.settle();
  pair.read(pair.end(1), 100);
  EXPECT_EQ(pair.received(1), "alarm!");
  EXPECT_EQ(pair.end(1).marks, std::vector<std::size_t>{5});
  EXPECT_EQ(pair.count(0, Mid::RdmaWrCompl), 1u);
}

TEST(SdpSink, EndsWithThePeersHalf) {
  PipelinedPair pair;
  ASSERT_TRUE(pair.read_direct(pair.end(1), 300));
  pair.settle();
  shutdown_send(pair.a());
  pair.settle();
  EXPECT_EQ(pair.end(1).results.at(0).bytes, 0u);
  EXPECT_EQ(front(pair.b()).kind, Front::End);
}

TEST(SdpSource, SeveralMayBeOpenInPipelinedMode) {
  PipelinedPair pair;
  for (unsigned i = 0; i < 6; ++i) ASSERT_TRUE(pair.write_direct(pair.end(0), many(100)));
  pair.settle();
  EXPECT_EQ(pair.count(0, Mid::SrcAvail), 4u);  // as many as the peer accepts
  for (unsigned i = 0; i < 6; ++i) {
    ASSERT_TRUE(pair.read_direct(pair.end(1), 100)) << i;
    pair.settle();
  }
  EXPECT_EQ(pair.end(1).received.size(), 600u);
  EXPECT_EQ(pair.end(0).results.size(), 6u);
}

// -- Modes: every change, from each mode, by the source and by the sink.

TEST(SdpModes, TheSourceChangesThem) {
  const std::pair<Mode, Mode> legal[] = {{Mode::Combined, Mode::Buffered},
                                         {Mode::Combined, Mode::Pipelined},
                                         {Mode::Pipelined, Mode::Combined}};
  constexpr Mode kModes[] = {Mode::Buffered, Mode::Combined, Mode::Pipelined};
  for (const Mode from : kModes) {
    for (const Mode to : kModes) {
      const bool is_legal =
          std::find(std::begin(legal), std::end(legal), std::pair(from, to)) != std::end(legal);
      Pair pair;
      ASSERT_EQ(request_send_mode(pair.a(), from), Status::Ok);
      pair.settle();
      EXPECT_TRUE(pair.write(pair.end(1), text("an acknowledgement")));
      pair.settle();
      EXPECT_EQ(request_send_mode(pair.a(), to),
                is_legal || from == to ? Status::Ok : Status::InvalidState);
      pair.settle();
      EXPECT_EQ(pair.b().receiving.mode, is_legal ? to : from);
      // A peer that does it nevertheless.
      Pair strict;
      strict.b().receiving.mode = from;
      Message message = strict.next_message(1, Mid::ModeChange);
      message.mode = to;
      EXPECT_EQ(strict.invent(1, message) == Status::Ok, is_legal) << int(from) << " " << int(to);
    }
  }
}

TEST(SdpModes, TheSinkMayOnlyEndBuffered) {
  for (const Mode from : {Mode::Buffered, Mode::Combined, Mode::Pipelined}) {
    for (const Mode to : {Mode::Buffered, Mode::Combined, Mode::Pipelined}) {
      Pair pair;
      pair.a().sending.mode = from;
      Message message = pair.next_message(0, Mid::ModeChange);
      message.of_sending_half = true;
      message.mode = to;
      const bool is_legal = from == Mode::Buffered && to == Mode::Combined;
      EXPECT_EQ(pair.invent(0, message) == Status::Ok, is_legal);
    }
  }
  Pair pair;
  EXPECT_EQ(request_combined_receive(pair.b()), Status::InvalidState);
  ASSERT_EQ(request_send_mode(pair.a(), Mode::Buffered), Status::Ok);
  pair.settle();
  ASSERT_EQ(request_combined_receive(pair.b()), Status::Ok);
  pair.settle();
  EXPECT_EQ(pair.a().sending.mode, Mode::Combined);
}

TEST(SdpModes, BufferedHasNoAdvertisements) {
  Pair pair;
  ASSERT_EQ(request_send_mode(pair.a(), Mode::Buffered), Status::Ok);
  ASSERT_TRUE(pair.write_direct(pair.end(0), many(100)));
  pair.settle();
  EXPECT_EQ(pair.count(0, Mid::SrcAvail), 0u);
  Message message = pair.next_message(1, Mid::SrcAvail);
  message.size = 100;
  message.payload = 1;
  EXPECT_EQ(pair.invent(1, message), Status::Malformed);
}

TEST(SdpModes, CombinedAllowsOneSourceAndWantsAByteInIt) {
  const auto status = [](std::uint32_t size, std::uint32_t payload) {
    Pair pair;
    Message message = pair.next_message(1, Mid::SrcAvail);
    message.size = size;
    message.payload = payload;
    const Status first = pair.invent(1, message);
    if (first != Status::Ok) return first;
    message = pair.next_message(1, Mid::SrcAvail);
    message.size = size;
    message.payload = payload;
    EXPECT_EQ(pair.invent(1, message), Status::Malformed);  // a second one
    return first;
  };
  EXPECT_EQ(status(100, 0), Status::Malformed);
  EXPECT_EQ(status(1, 1), Status::Malformed);
  EXPECT_EQ(status(2, 1), Status::Ok);
}

TEST(SdpModes, CompletionsOfMoreThanWasAdvertisedAbort) {
  Pair pair;
  ASSERT_TRUE(pair.write_direct(pair.end(0), many(100)));
  pair.settle();
  Message message = pair.next_message(0, Mid::RdmaRdCompl);
  message.size = 100;  // one was in the message
  EXPECT_EQ(pair.invent(0, message), Status::Malformed);
  PipelinedPair other;
  ASSERT_TRUE(other.read_direct(other.end(1), 300));
  other.settle();
  message = other.next_message(1, Mid::RdmaWrCompl);
  message.size = 301;
  EXPECT_EQ(other.invent(1, message), Status::Malformed);
}

// -- Receive buffers of another size; another queue pair.

TEST(SdpTerms, TheSizeOfReceiveBuffersChangesWithTheAnswer) {
  Pair pair;
  ASSERT_EQ(request_remote_size(pair.a(), 200), Status::Ok);
  EXPECT_EQ(request_remote_size(pair.a(), 300), Status::InvalidState);
  pair.settle();
  EXPECT_EQ(pair.end(1).events & kResizeAsked, kResizeAsked);
  EXPECT_EQ(pair.b().receiving.asked_size, 200u);
  EXPECT_TRUE(pair.write(pair.end(0), many(32)));
  answer_resize(pair.b(), 150);
  pair.settle();
  EXPECT_EQ(pair.end(0).events & kRemoteResized, kRemoteResized);
  EXPECT_EQ(pair.a().sending.remote_size, 150u);
  pair.read(pair.end(1), 100);
  EXPECT_TRUE(pair.write(pair.end(0), many(200)));
  pair.pump(pair.end(0));
  EXPECT_EQ(pair.end(0).queue.front().payload.length, 134u);
}

TEST(SdpTerms, ASmallerSizeCountsAtOnce) {
  Pair pair;
  ASSERT_EQ(request_remote_size(pair.a(), 40), Status::Ok);
  EXPECT_TRUE(pair.write(pair.end(0), many(100)));
  pair.pump(pair.end(0));
  EXPECT_EQ(pair.end(0).queue.at(1).payload.length, 24u);
  pair.settle();
  answer_resize(pair.b(), 1);  // the least is what the peer may send already
  EXPECT_EQ(pair.b().receiving.buffer_bytes, 40u);
}

TEST(SdpTerms, ASuspendedStreamGoesOnOverAnotherQueuePair) {
  Pair pair;
  ASSERT_TRUE(pair.write_direct(pair.end(1), many(200)));
  ASSERT_EQ(suspend(pair.a(), service_id(77)), Status::Ok);
  EXPECT_TRUE(pair.write(pair.end(0), text("later")));
  pair.settle();
  for (unsigned i = 0; i < 2; ++i) {
    EXPECT_EQ(pair.end(i).events & kSuspended, kSuspended);
    EXPECT_EQ(pair.end(i).stream().is_suspended, 1);
  }
  EXPECT_EQ(pair.b().suspend_service, service_id(77));
  EXPECT_EQ(pair.count(0, Mid::SuspComm), 1u);
  EXPECT_EQ(pair.count(1, Mid::SuspCommAck), 1u);
  for (unsigned i = 0; i < 2; ++i) {
    ASSERT_EQ(resume(pair.end(i).stream()), Status::Ok);
    on_posted(pair.end(i).stream(), static_cast<std::uint32_t>(pair.end(i).posted.size()));
  }
  pair.connect();
  pair.settle();
  pair.read(pair.end(1), 100);
  EXPECT_EQ(pair.received(1), "later");
  pair.read(pair.end(0), 1000);
  request_copies(pair.a());
  for (unsigned i = 0; i < 10; ++i) {
    pair.settle();
    pair.read(pair.end(0), 1000);
  }
  EXPECT_EQ(pair.end(0).received, many(200));
}

}  // namespace
}  // namespace ib::sdp
