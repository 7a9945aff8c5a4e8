// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Random calls of processes that share the two ends of a stream, in random order, with ports that
// go down, processes that close, and locks that somebody else has. After each call:
//   * each side reads a prefix of what the other has written, and at an end without a reset all;
//   * a link is readable iff a read would get something, once nobody is in the middle of a call;
//   * a writer that found no room is woken: its link becomes writable when everything was read.
#include "base/sanitizer.h"
#include "hca/layout/shm_lock.h"
#include "streams/test/streams_world_test.h"

#include <cstdlib>
#include <random>

namespace ib::streams {
namespace {

class RandomEnds {
 public:
  explicit RandomEnds(std::uint32_t seed) : random_(seed) {
    for (std::uint32_t end = 0; end < 2; ++end) {
      for (std::uint32_t process = 0; process < StreamWorld::kProcesses; ++process) {
        sides_[end].push_back(std::make_unique<Side>(world_, end, process));
      }
    }
  }

  void run() {
    const int steps = 20 + static_cast<int>(random_() % 200);
    for (int i = 0; i < steps && !testing::Test::HasFailure(); ++i) {
      step();
      check();
    }
    finish();
  }

 private:
  std::uint32_t below(std::uint32_t limit) { return static_cast<std::uint32_t>(random_() % limit); }
  Side& any(std::size_t end) { return *sides_[end][below(StreamWorld::kProcesses)]; }
  bool is_closed(std::size_t end) const { return world_.pair.closed[end]; }

  void step() {
    const std::size_t end = below(2);
    if (is_closed(end)) return;
    switch (below(16)) {
      case 0:
      case 1:
      case 2:
      case 3:
      case 4:
      case 5: return write(end);
      case 6:
      case 7:
      case 8:
      case 9:
      case 10: return read(end);
      case 11: return any(end).end().go_on(any(end).link());
      case 12: return below(20) == 0 ? shut(end) : read(end);
      case 13: return below(30) == 0 ? close(end) : write(end);
      case 14: return below(8) == 0 ? flip_port() : read(end);
      case 15: return write_beside_a_lock(end);
      default: return;
    }
  }

  std::size_t some_length() {
    switch (below(4)) {
      case 0: return 1 + below(20);
      case 1: return 1 + below(2'000);
      case 2: return 1 + below(40'000);
      default: return 1 + below(200'000);
    }
  }
  char byte_at(std::size_t end, std::size_t position) const {
    return static_cast<char>(position * 7 + position / 253 + end * 101);
  }

  void write(std::size_t end) {
    std::string text(some_length(), ' ');
    for (std::size_t i = 0; i < text.size(); ++i) text[i] = byte_at(end, written_[end] + i);
    Side& side = any(end);
    const Moved moved = side.write(text);
    switch (moved.verdict) {
      case Verdict::WantsRing: side.end().use_ring(std::nullopt); [[fallthrough]];
      case Verdict::Done: written_[end] += moved.bytes; break;
      case Verdict::WouldBlock:
        EXPECT_TRUE(!side.is_writable() || is_closed(1 - end))
            << describe(end) << describe(1 - end);
        waits_[end] = true;
        return;
      case Verdict::Reset: was_reset_ = true; [[fallthrough]];
      case Verdict::BrokenPipe: EXPECT_TRUE(may_end_[end]) << "write"; break;
      case Verdict::EndOfStream:
      case Verdict::NoUrgent:
      case Verdict::Gone: ADD_FAILURE() << "a write: " << static_cast<int>(moved.verdict);
    }
    if (moved.verdict == Verdict::Done && moved.bytes < text.size()) {
      EXPECT_TRUE(!side.is_writable() || may_end_[end]) << moved.bytes << " of " << text.size();
      waits_[end] = true;
    }
  }

  void read(std::size_t end) {
    Side& side = any(end);
    const std::string text = side.read(some_length());
    for (const char c : text) {
      if (c == byte_at(1 - end, read_[end])) {
        ++read_[end];
        continue;
      }
      ADD_FAILURE() << "byte " << read_[end];
      return;
    }
    switch (side.last) {
      case Verdict::Done:
      case Verdict::WouldBlock: return;
      case Verdict::EndOfStream:
        EXPECT_TRUE(may_end_[end]);
        EXPECT_TRUE(was_reset_ || read_[end] == written_[1 - end]);
        return;
      case Verdict::Reset:
        EXPECT_TRUE(may_reset_);
        was_reset_ = true;
        return;
      case Verdict::WantsRing:
      case Verdict::BrokenPipe:
      case Verdict::NoUrgent:
      case Verdict::Gone: ADD_FAILURE() << "a read: " << static_cast<int>(side.last);
    }
  }

  void shut(std::size_t end) {
    any(end).end().shut_down(any(end).link(), 1);
    may_end_[0] = may_end_[1] = true;
  }
  void close(std::size_t end) {
    any(end).close();
    may_end_[0] = may_end_[1] = may_reset_ = true;
    was_reset_ |= read_[end] != written_[1 - end];
  }
  void flip_port() {
    is_down_ = !is_down_;
    world_.set_port(is_down_ ? verbs::PortState::Down : verbs::PortState::Active);
    if (is_down_) return;
    let_stuck_go_on();
  }
  // As threads that sleep do. Others may not call for a long time.
  void let_stuck_go_on() {
    for (std::size_t end = 0; end < 2; ++end) {
      if (!is_closed(end) && any(end).end().is_stuck()) any(end).end().go_on(any(end).link());
    }
  }
  // The reader finds the lock of the writer taken; that one goes on afterwards.
  void write_beside_a_lock(std::size_t end) {
    if (is_closed(1 - end)) return write(end);
    write(end);
    SharedEnd& mine = world_.shared(end);
    ASSERT_TRUE(hca::try_lock(mine.lock, hca::lock_owner(0)));
    read(1 - end);
    hca::unlock(mine.lock);
    any(end).end().go_on(any(end).link());
  }

  void check() {
    for (std::size_t end = 0; end < 2; ++end) {
      if (is_closed(end) || is_down_) continue;
      Side& side = any(end);
      EXPECT_TRUE(!side.end().has_room() || side.is_writable()) << "room, at end " << end;
      side.read(1, {.peek = true});
      was_reset_ |= side.last == Verdict::Reset;
      EXPECT_EQ(side.is_readable() && side.last != Verdict::WouldBlock,
                side.last != Verdict::WouldBlock)
          << "something to read that poll() does not see, at end " << end;
      if (world_.pair.closed[1 - end]) continue;
      EXPECT_EQ(side.is_readable(), side.last != Verdict::WouldBlock) << "end " << end;
    }
  }

  std::string describe(std::size_t end) {
    const SharedEnd& one = world_.shared(end);
    const sdp::Stream& state = one.state;
    return "\n  end " + std::to_string(end) + ": state " +
           std::to_string(static_cast<int>(state.state)) + ", shut " + std::to_string(one.shut) +
           ", bell " + std::to_string(one.bell.load()) + ", packets " +
           std::to_string(world_.pair.packets[end]) + ", backlog " +
           std::to_string(one.has_backlog.load()) + ", pending " +
           std::to_string(one.pending.header_length) + ", buried " +
           std::to_string(one.peer_is_buried) + ", closed " + std::to_string(is_closed(end)) +
           ", unsent " + std::to_string(state.sending.ring_written - state.sending.ring_sent) +
           ", credits " + std::to_string(state.credits.available()) + ", readable " +
           std::to_string(state.receiving.readable) + ", last " +
           std::to_string(static_cast<int>(any(end).last));
  }

  // The other side makes no call meanwhile; a reader sleeps where the link is not readable.
  void finish_reading(std::size_t end) {
    const bool looks_first = below(2) == 0;
    for (int i = 0; i < 800 && !is_closed(end) && !testing::Test::HasFailure(); ++i) {
      let_stuck_go_on();
      Side& side = any(end);
      if (!side.is_readable()) continue;
      if (looks_first) side.read(1, {.peek = true});
      was_reset_ |= looks_first && side.last == Verdict::Reset;
      if (!looks_first || side.last == Verdict::Done) read(end);
    }
    EXPECT_TRUE(is_closed(end) || was_reset_ || read_[end] == written_[1 - end])
        << "end " << end << " has read " << read_[end] << " of " << written_[1 - end] << describe(0)
        << describe(1);
  }

  void finish() {
    if (is_down_) flip_port();
    const std::size_t first = below(2);
    for (const std::size_t end : {first, 1 - first}) finish_reading(end);
    for (std::size_t end = 0; end < 2; ++end) {
      if (is_closed(end)) continue;
      EXPECT_TRUE(!waits_[end] || is_closed(1 - end) || any(end).is_writable());
      EXPECT_TRUE(was_reset_ || read_[end] == written_[1 - end])
          << "end " << end << " has read " << read_[end] << " of " << written_[1 - end]
          << describe(0) << describe(1);
    }
  }

  std::mt19937 random_;
  StreamWorld world_;
  std::array<std::vector<std::unique_ptr<Side>>, 2> sides_;
  std::array<std::size_t, 2> written_{};
  std::array<std::size_t, 2> read_{};
  std::array<bool, 2> may_end_{};
  std::array<bool, 2> waits_{};
  bool may_reset_ = false;
  bool was_reset_ = false;
  bool is_down_ = false;
};

TEST(RandomEndsProperty, AreTheTwoEndsOfAByteStream) {
  constexpr std::uint32_t kSeeds = IB_ADDRESS_SANITIZER != 0 ? 60 : 200;
  const char* const wanted = std::getenv("SOFTIB_STREAM_SEEDS");
  const std::uint32_t seeds =
      wanted != nullptr ? static_cast<std::uint32_t>(std::atoi(wanted)) : kSeeds;
  for (std::uint32_t seed = 1; seed <= seeds; ++seed) {
    SCOPED_TRACE(seed);
    RandomEnds(seed).run();
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace ib::streams
