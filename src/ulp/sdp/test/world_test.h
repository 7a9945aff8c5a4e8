// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Two streams over a simulated pair of queue pairs, in virtual time. Posts run in order, one at a
// time, and their completions and messages arrive whenever the test says. Each access to memory is
// checked: a message needs a posted receive, an RDMA READ or WRITE a buffer that its owner has not
// got back.
#pragma once

#include "ulp/sdp/stream.h"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace ib::sdp {

using TestBytes = std::vector<std::byte>;

// The program and the caller of the engine at one end.
struct End {
  explicit End(const Settings& wanted)
      : settings(wanted), state(std::make_unique<Stream>()), ring(wanted.send_ring_bytes) {
    buffers.resize(wanted.receive_buffers);
  }

  Stream& stream() { return *state; }
  const Stream& stream() const { return *state; }

  Settings settings;
  std::unique_ptr<Stream> state;
  TestBytes ring;
  std::vector<TestBytes> buffers;                           // receive buffers: what is in them
  std::deque<std::uint32_t> posted;                         // receive buffers that wait
  std::uint32_t not_posted = 0;                             // that came back after the end
  std::deque<Post> queue;                                   // send queue
  std::deque<std::pair<std::uint32_t, TestBytes>> arrived;  // messages that the engine has not seen
  std::deque<std::uint64_t> completed;                      // completions that it has not seen
  std::map<std::uint64_t, TestBytes>
      writes;  // registered buffers, by ID, which is their rkey and address, too
  std::map<std::uint64_t, TestBytes> reads;
  std::uint64_t next_id = 1;
  bool is_dead = false;  // its queue pair is gone

  TestBytes received;              // by its program, in order
  std::vector<std::size_t> marks;  // positions of urgent bytes in it
  std::uint32_t events = 0;        // all that were ever raised
  std::vector<DirectResult> results;
};

class World {
 public:
  World(const Settings& a, const Settings& b);

  End& end(unsigned i) { return *ends_[i]; }
  End& other(const End& end) { return &end == ends_[0].get() ? *ends_[1] : *ends_[0]; }
  Instant now{};
  std::string fault;  // the first broken rule
  // The kinds of messages that were carried, in order, with the end that sent them.
  std::vector<std::pair<unsigned, Mid>> carried;

  void connect();
  // Brings all counters that go round to where they do so soon.
  void age();
  // Takes all outputs of the engine.
  void pump(End& end);
  // One step each; they return false if there is none.
  bool run_post(End& end);
  bool deliver_message(End& end);
  bool deliver_completion(End& end);
  // Everything, until nothing moves.
  void settle();
  // The queue pair of this end and the other's break.
  void kill(End& end);
  void lose(End& end);
  // The state goes on elsewhere, as after fork() and the death of the parent.
  static void move_state(End& end);

  // -- The program's calls, with the copies that the caller makes.
  bool write(End& end, const TestBytes& bytes, bool urgent = false);
  std::optional<std::uint64_t> write_direct(End& end, const TestBytes& bytes);
  std::optional<std::uint64_t> read_direct(End& end, std::uint32_t bytes);
  // Takes up to `most` bytes of what is copied. Returns how many there were.
  std::uint32_t read(End& end, std::uint32_t most);

 private:
  unsigned index(const End& end) const { return &end == ends_[0].get() ? 0 : 1; }
  void check(bool holds, const char* what) {
    if (!holds && fault.empty()) fault = what;
  }
  void run_send(End& from, End& to, const Post& post);
  void run_read(End& from, End& to, const Post& post);
  void run_write(End& from, End& to, const Post& post);
  TestBytes bytes_of(End& end, const Piece& piece);

  std::unique_ptr<End> ends_[2];
};

}  // namespace ib::sdp
