// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// One random life of a stream between two programs, drawn from a seed: what they write, in which
// ways, when they read, what they cancel, how it ends. The checker compares bytes, urgent marks,
// memory and credits.
#pragma once

#include "ulp/sdp/test/world_test.h"

#include <array>
#include <random>
#include <set>

namespace ib::sdp {

// How many streams got where, over all seeds: whether the seeds are worth anything.
struct StreamCounts {
  std::array<std::uint64_t, 256> carried{};  // by kind of message
  std::uint64_t closed = 0, reset = 0, lost = 0, aborted = 0;
  std::uint64_t direct_bytes = 0, cancelled_short = 0, urgent = 0, moved = 0, suspended = 0;
};

class RandomStream {
 public:
  RandomStream(std::uint64_t seed, StreamCounts& counts);
  // Returns what is wrong, or nothing.
  std::string run();

 private:
  enum class Ending { Orderly, HalfClosed, Close, Abort, Kill, UnreadClose };
  // A part of what the program of one end has put into the stream.
  struct Segment {
    TestBytes bytes;
    std::optional<std::uint64_t> id;  // of a direct write
    bool urgent = false;
    bool is_cancelled = false;
  };
  struct Program {
    std::vector<Segment> segments;
    bool has_shut = false;
    bool has_closed = false;
    std::uint64_t next_byte = 0;
  };

  std::uint64_t draw(std::uint64_t below) { return below == 0 ? 0 : random_() % below; }
  bool chance(unsigned of) { return draw(of) == 0; }
  Settings draw_settings();
  TestBytes make_bytes(unsigned i, std::size_t count);

  void step();
  void act_as_program(unsigned i);
  void write_something(unsigned i);
  void read_something(unsigned i);
  void change_terms(unsigned i);
  void move_queue_pairs();
  void resume_if_suspended();
  void end_somehow();
  bool drain();
  void drain_reader(unsigned i);

  std::string check_end();
  std::optional<std::uint64_t> result_of(unsigned writer, const Segment& segment);
  std::string check_whole(unsigned writer);
  std::string check_start(unsigned writer);
  std::string check_marks(unsigned writer, const std::vector<std::size_t>& ends);
  std::string check_memory(unsigned i);
  std::string complain(const std::string& what);

  std::uint64_t seed_;
  std::mt19937_64 random_;
  StreamCounts& counts_;
  Ending ending_;
  bool may_suspend_;
  World world_;
  std::array<Program, 2> programs_;
};

}  // namespace ib::sdp
