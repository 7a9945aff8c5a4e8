// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "hca/layout/first_use.h"
#include "hca/layout/shm_lock.h"
#include "streams/test/streams_world_test.h"

#include <set>

namespace ib::streams {
namespace {

struct StreamEnd : testing::Test {
  StreamWorld world;
  Side client{world, 0, 0};
  Side server{world, 1, 1};

  static std::string text(std::size_t length, std::size_t from = 0) {
    std::string result(length, ' ');
    for (std::size_t i = 0; i < length; ++i)
      result[i] = static_cast<char>((from + i) * 31 + (from + i) / 251);
    return result;
  }
  // Reads until nothing is there.
  static std::string read_all(Side& side, std::size_t step = 100'000) {
    std::string all;
    while (true) {
      const std::string part = side.read(step);
      if (part.empty()) return all;
      all += part;
    }
  }
  // Writes until the link says that there is no room; returns the bytes.
  std::size_t fill(Side& side, std::size_t step) {
    std::size_t total = 0;
    while (true) {
      const Moved moved = side.write(text(step, total));
      total +=
          moved.verdict == Verdict::Done || moved.verdict == Verdict::WantsRing ? moved.bytes : 0;
      if (moved.verdict == Verdict::WantsRing) side.end().use_ring(std::nullopt);
      if (moved.verdict == Verdict::WouldBlock) return total;
    }
  }
};

TEST_F(StreamEnd, BytesComeAsTheyWereWritten) {
  EXPECT_FALSE(server.is_readable());
  EXPECT_EQ(client.write("hello, ").bytes, 7u);
  EXPECT_EQ(client.write("world").bytes, 5u);
  EXPECT_TRUE(server.is_readable());
  EXPECT_EQ(server.read(100), "hello, world");
  EXPECT_FALSE(server.is_readable());
  EXPECT_EQ(server.read(100), "");
  EXPECT_EQ(server.last, Verdict::WouldBlock);
}

TEST_F(StreamEnd, ALinkThatIsLeftRungIsReadableUntilItIsSettled) {
  End::ReadHow how;
  how.leaves_rung = true;
  for (const char* byte : {"a", "b"}) {
    client.write(byte);
    EXPECT_TRUE(server.end().has_news());
    EXPECT_EQ(server.end().is_readable(), std::optional(true));
    EXPECT_EQ(world.pair.packets[1], 1u);  // the second message brings none
    EXPECT_EQ(server.read(8, how), byte);
    EXPECT_TRUE(server.is_readable());
    EXPECT_FALSE(server.end().has_news());
    EXPECT_EQ(server.end().is_readable(), std::optional(false));
  }
  EXPECT_FALSE(server.end().settle_link(server.link()));
  EXPECT_FALSE(server.is_readable());
  client.write("c");
  EXPECT_TRUE(server.is_readable());
  EXPECT_TRUE(server.end().settle_link(server.link()));
  EXPECT_EQ(server.read(8), "c");
}

// A message may bring receives for bytes that wait here: these are to be sent, and the bell rung.
TEST_F(StreamEnd, ALookWithoutALinkLeavesWorkToOthers) {
  const std::size_t written = fill(server, 10'000);
  client.write("x");
  EXPECT_EQ(server.end().is_readable(), std::nullopt);
  EXPECT_TRUE(server.end().is_readable(server.link()));
  EXPECT_EQ(server.read(8), "x");
  EXPECT_EQ(read_all(client).size(), written);
}

TEST_F(StreamEnd, ALargeWriteGoesIntoTheReceivesAndTheRing) {
  const std::string sent = text(250'000);
  EXPECT_EQ(client.write(sent).bytes, sent.size());
  EXPECT_TRUE(read_all(server) == sent);
  EXPECT_FALSE(server.is_readable());
}

TEST_F(StreamEnd, PartsOfAMessageMayLieInManyPlaces) {
  std::vector<std::string> pieces;
  std::vector<ConstPart> parts;
  std::string all;
  for (std::size_t i = 0; i < 40; ++i) pieces.push_back(text(i * 37, i));
  for (const std::string& piece : pieces) {
    parts.push_back({reinterpret_cast<const std::byte*>(piece.data()), piece.size()});
    all += piece;
  }
  EXPECT_EQ(client.end().write(client.link(), parts).bytes, all.size());
  EXPECT_TRUE(read_all(server, 999) == all);
}

TEST_F(StreamEnd, AWriterWithoutRoomIsNotWritableUntilAThirdIsFree) {
  constexpr std::uint32_t kRing = verbs::control::kStreamLargeRing;
  client.end().use_ring(verbs::control::StreamRingOut{world.large_ring(), kRing});
  const std::size_t written = fill(client, 10'000);
  EXPECT_GT(written, kRing);
  EXPECT_FALSE(client.is_writable());
  EXPECT_FALSE(client.end().has_room());
  EXPECT_TRUE(server.end().has_room());
  std::size_t got = 0;
  while (!client.is_writable()) {
    EXPECT_FALSE(client.end().has_room());
    const std::string part = server.read(10'000);
    ASSERT_FALSE(part.empty()) << got;
    got += part.size();
  }
  EXPECT_GT(client.end().unsent_bytes(), kRing / 2);
  EXPECT_LE(client.end().unsent_bytes(), kRing - kRing / 3);
  EXPECT_EQ(got + read_all(server).size(), written);
  EXPECT_TRUE(client.is_writable());
  EXPECT_TRUE(client.end().has_room());
  EXPECT_FALSE(server.is_readable());
  // Of a half that is shut, the kernel tells.
  client.end().shut_down(client.link(), 1);
  EXPECT_FALSE(client.end().has_room());
  EXPECT_TRUE(server.end().has_room());
}

TEST_F(StreamEnd, WhatWaitsInTheRingIsSentByTheReader) {
  const std::size_t written = fill(client, 5'000);
  std::size_t got = 0;
  while (got < written) {  // the writer does nothing meanwhile
    const std::string part = server.read(7'777);
    ASSERT_FALSE(part.empty()) << got;
    got += part.size();
  }
  EXPECT_EQ(client.end().unsent_bytes(), 0u);
}

// Notes the word of this thread while it works with an end, and with the peer's within that.
class WatchingLink final : public Link {
 public:
  WatchingLink(Link& link, hca::MemoryPlane& plane) : link_(link), plane_(plane) {}
  bool ring() override { return look(), link_.ring(); }
  Taken take(std::uint32_t most) override { return look(), link_.take(most); }
  bool is_writable() override { return look(), link_.is_writable(); }
  bool has_hung_up() override { return look(), link_.has_hung_up(); }
  void shut_write() override { look(), link_.shut_write(); }
  void shut_read() override { look(), link_.shut_read(); }

  std::set<std::uint64_t> seen;

 private:
  void look() {
    const std::uint64_t word = plane_.thread_words().mine().sequence.load();
    EXPECT_EQ(word & 1, 1u);
    seen.insert(word & ~hca::executing::kCount);
  }
  Link& link_;
  hca::MemoryPlane& plane_;
};

TEST_F(StreamEnd, AProcessInACallNamesTheQueuePairOfItsOwnEnd) {
  fill(client, 5'000);
  WatchingLink link(server.link(), *world.planes[1]);
  std::string text(7'777, '?');
  const Part part{reinterpret_cast<std::byte*>(text.data()), text.size()};
  while (server.end().read(link, std::span(&part, 1), {}).verdict == Verdict::Done) continue;
  client.close();
  server.end().read(link, std::span(&part, 1), {});
  EXPECT_EQ(server.end().shared().peer_is_buried, 1u) << "it has worked with the peer's end";
  EXPECT_EQ(link.seen, std::set{hca::executing::queue_pair(server.end().shared().qp)});
}

TEST_F(StreamEnd, TheQueuePairsOfAnEndCountAsUsed) {
  for (std::size_t end = 0; end < 2; ++end) {
    EXPECT_FALSE(hca::was_never_used(*world.memory.arena().qp(world.shared(end).qp)));
  }
}

TEST_F(StreamEnd, ALargerRingKeepsWhatWaits) {
  std::string all;
  Moved moved = client.write(text(1'000'000));
  ASSERT_EQ(moved.verdict, Verdict::WantsRing);
  client.end().use_ring(verbs::control::StreamRingOut{world.large_ring(), 4u << 20});
  const std::string rest = text(1'000'000 - moved.bytes, moved.bytes);
  EXPECT_EQ(client.write(rest).bytes, rest.size());
  EXPECT_TRUE(read_all(server) == text(1'000'000));
}

TEST_F(StreamEnd, AnEndOfOneHalfIsReadAfterItsBytes) {
  client.write("last words");
  EXPECT_TRUE(client.end().shut_down(client.link(), 1));
  EXPECT_EQ(client.write("x").verdict, Verdict::BrokenPipe);
  EXPECT_TRUE(server.is_readable());
  EXPECT_EQ(server.read(4), "last");
  EXPECT_EQ(server.read(100), " words");
  EXPECT_TRUE(server.is_readable());
  EXPECT_EQ(server.read(100), "");
  EXPECT_EQ(server.last, Verdict::EndOfStream);
  EXPECT_TRUE(server.is_readable());
  EXPECT_EQ(server.write("answer").bytes, 6u);
  EXPECT_EQ(client.read(100), "answer");
}

TEST_F(StreamEnd, ACloseIsTheEndOfTheStreamAfterAllThatWasWritten) {
  const std::size_t written = fill(client, 10'000);
  client.close();
  EXPECT_EQ(read_all(server).size(), written);
  EXPECT_EQ(server.last, Verdict::EndOfStream);
  EXPECT_EQ(server.write("to nobody").verdict, Verdict::Done);  // as over TCP
  EXPECT_EQ(server.write("again").verdict, Verdict::Reset);
  EXPECT_EQ(server.write("again").verdict, Verdict::BrokenPipe);
}

TEST_F(StreamEnd, ACloseWithUnreadBytesResetsThePeer) {
  server.write("never read");
  client.write("but this is");
  client.close();
  EXPECT_EQ(read_all(server), "but this is");
  EXPECT_EQ(server.last, Verdict::Reset);
  EXPECT_EQ(server.read(10), "");
  EXPECT_EQ(server.last, Verdict::EndOfStream);
}

TEST_F(StreamEnd, ACloseWithLingerZeroResetsThePeer) {
  client.end().set_linger_zero(true);
  client.close();
  EXPECT_EQ(server.read(10), "");
  EXPECT_EQ(server.last, Verdict::Reset);
}

TEST_F(StreamEnd, TwoProcessesMayShareAnEnd) {
  Side child(world, 1, 0);
  client.write("one two three");
  EXPECT_EQ(server.read(4), "one ");
  EXPECT_EQ(child.read(4), "two ");
  child.write("from the child, ");
  server.write("from the parent");
  EXPECT_EQ(client.read(100), "from the child, from the parent");
  EXPECT_EQ(server.read(100), "three");
  EXPECT_FALSE(server.is_readable());
}

TEST_F(StreamEnd, AnEndThatAnotherProcessWorksWithSendsWhenThatHasFinished) {
  const std::size_t written = fill(client, 10'000);
  SharedEnd& mine = world.shared(0);
  ASSERT_TRUE(hca::try_lock(mine.lock, hca::lock_owner(0)));  // the writer is in the middle
  std::string got = server.read(1'000'000);
  EXPECT_LT(got.size(), written);
  EXPECT_EQ(mine.wanted.load(), 1u);
  hca::unlock(mine.lock);
  client.end().go_on(client.link());
  EXPECT_TRUE(server.is_readable());
  EXPECT_EQ(got.size() + read_all(server).size(), written);
}

TEST_F(StreamEnd, ADeathInTheMiddleResetsBoth) {
  client.write("x");
  break_stream(world.memory.arena(), world.shared(0));
  EXPECT_EQ(server.read(10), "x");
  EXPECT_EQ(server.read(10), "");
  EXPECT_EQ(server.last, Verdict::Reset);
  EXPECT_EQ(client.write("y").verdict, Verdict::Reset);
}

TEST_F(StreamEnd, WhatAPortHoldsUpIsSentWhenItIsUpAgain) {
  world.set_port(verbs::PortState::Down);
  EXPECT_EQ(client.write("through a cable").bytes, 15u);
  EXPECT_TRUE(client.end().is_stuck());
  EXPECT_EQ(server.read(100), "");
  EXPECT_EQ(server.last, Verdict::WouldBlock);
  world.set_port(verbs::PortState::Active);
  client.end().go_on(client.link());
  EXPECT_FALSE(client.end().is_stuck());
  EXPECT_TRUE(server.is_readable());
  EXPECT_EQ(server.read(100), "through a cable");
}

TEST_F(StreamEnd, APortThatStaysDownEndsTheStreamForBoth) {
  world.set_port(verbs::PortState::Down);
  client.write("x");
  world.host.time += std::chrono::seconds(40);
  client.end().go_on(client.link());
  EXPECT_EQ(client.write("y").verdict, Verdict::Reset);
  EXPECT_TRUE(server.is_readable());
  EXPECT_EQ(server.read(10), "");
  EXPECT_EQ(server.last, Verdict::Reset);
}

TEST_F(StreamEnd, APeekLeavesTheBytes) {
  client.write("abc");
  client.write("def");
  EXPECT_EQ(server.read(100, {.peek = true}), "abcdef");
  EXPECT_EQ(server.read(2), "ab");
  EXPECT_EQ(server.read(100, {.peek = true}), "cdef");
  EXPECT_EQ(server.end().readable_bytes(server.link()), 4u);
  EXPECT_EQ(server.read(100), "cdef");
}

TEST_F(StreamEnd, APeekWorksForAPeerThatIsGone) {
  world.set_port(verbs::PortState::Down);
  client.write("abc");
  client.close();
  world.set_port(verbs::PortState::Active);
  EXPECT_EQ(server.read(100, {.peek = true}), "abc");
  EXPECT_EQ(server.read(100), "abc");
  EXPECT_EQ(server.read(100, {.peek = true}), "");
  EXPECT_EQ(server.last, Verdict::EndOfStream);
}

TEST_F(StreamEnd, ALinkIsShutWhenAllIsSent) {
  world.set_port(verbs::PortState::Down);
  client.write("abc");
  EXPECT_TRUE(client.end().shut_down(client.link(), 1));
  EXPECT_FALSE(world.pair.mute[0]) << "it could not say that something has come";
  world.set_port(verbs::PortState::Active);
  client.end().go_on(client.link());
  EXPECT_TRUE(world.pair.mute[0]);
  EXPECT_EQ(world.pair.packets[1], 1u);
  EXPECT_EQ(server.read(100), "abc");
}

TEST_F(StreamEnd, AnUrgentByteIsReadApart) {
  client.write("before");
  client.write("!", true);
  client.write("after");
  EXPECT_EQ(server.read(100), "before");
  EXPECT_EQ(server.read(1, {.urgent = true}), "!");
  EXPECT_EQ(server.read(100), "after");
  EXPECT_EQ(server.read(1, {.urgent = true}), "");
  EXPECT_EQ(server.last, Verdict::NoUrgent);
}

TEST_F(StreamEnd, ForeignBytesInTheLinkBreakTheStream) {
  client.write("x");
  world.pair.foreign[1] = 1;
  EXPECT_EQ(server.read(10), "x");
  EXPECT_EQ(server.read(10), "");
  EXPECT_EQ(server.last, Verdict::Reset);
}

TEST_F(StreamEnd, AnEndThatIsNoMoreIsLeftAlone) {
  take_down(world.shared(0));
  EXPECT_EQ(client.write("x").verdict, Verdict::Gone);
  EXPECT_EQ(client.read(1), "");
  EXPECT_EQ(client.last, Verdict::Gone);
}

TEST_F(StreamEnd, OptionsAreThoseOfTheConnection) {
  Side child(world, 0, 1);
  EXPECT_EQ(client.end().option(6, 1), std::nullopt);
  EXPECT_TRUE(client.end().set_option(6, 1, 1));
  EXPECT_EQ(child.end().option(6, 1), 1);
  EXPECT_EQ(server.end().option(6, 1), std::nullopt);
  for (int i = 0; i < 23; ++i) EXPECT_TRUE(client.end().set_option(1, 100 + i, i));
  EXPECT_FALSE(client.end().set_option(1, 200, 1));
}

TEST_F(StreamEnd, EdgesComeForEachPartThatFollowsARead) {
  world.shared(1).wants_edges.store(1);
  client.write("a");
  client.write("b");
  EXPECT_EQ(world.pair.packets[1], 1u);
  EXPECT_EQ(server.read(1), "a");
  client.write("c");
  EXPECT_EQ(world.pair.packets[1], 2u);
  EXPECT_EQ(server.read(10), "bc");
  EXPECT_EQ(world.pair.packets[1], 0u);
}

}  // namespace
}  // namespace ib::streams
