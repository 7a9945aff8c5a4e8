// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A stream whose peer sends anything, whose program calls anything, and, in every fourth input,
// whose state another process writes to.
//
// With its state intact: no message is accepted beyond the credits, each piece is inside its area,
// what is readable is inside what was received, each direct buffer is given back once, and the
// stream ends when its connection is lost. With a state that was written to: no access outside of
// it, no call without an end.
#include "base/fuzz_input.h"
#include "ulp/sdp/stream.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <set>
#include <span>
#include <vector>

namespace ib::sdp {
namespace {

constexpr std::uint32_t kRing = 512;
constexpr std::uint32_t kBuffer = 128;
constexpr std::uint32_t kBuffers = 12;

void require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "%s\n", what);
  std::abort();
}

class Storm {
 public:
  explicit Storm(FuzzInput& input) : input_(input) {
    Settings settings;
    settings.send_ring_bytes = kRing;
    settings.receive_buffer_bytes = kBuffer;
    settings.receive_buffers = kBuffers;
    settings.send_slots = 8;
    settings.direct_threshold = 40;
    require(init(stream_, settings) == Status::Ok, "settings");
    lengths_.resize(kBuffers);
    for (std::uint32_t i = 0; i < kBuffers; ++i) posted_.push_back(i);
    on_posted(stream_, kBuffers);
    (void)make_hello(stream_, Hello{});
    require(on_hello_ack(stream_, HelloAck{32, 4, kBuffer}) == Status::Ok, "hello");
  }

  void run() {
    may_damage_ = input_.byte() % 4 == 0;
    for (unsigned steps = 0; steps < 300 && !input_.is_over(); ++steps) {
      switch (input_.byte() % 8) {
        case 0:
        case 1:
        case 2: receive(); break;
        case 3:
        case 4: act(); break;
        case 5: complete(); break;
        case 6: pass(); break;
        case 7: damage(); break;
      }
      collect();
      check();
    }
    on_lost(stream_);
    collect();
    if (is_damaged_) return;
    require(is_over(stream_), "a lost connection does not end the stream");
    require(buffers_.empty(), "a direct buffer is not given back");
  }

 private:
  Instant now() const { return Instant{Duration{time_}}; }

  // A message with the numbers that fit, or, seldom, others.
  void receive() {
    if (posted_.empty()) return;
    static constexpr std::uint8_t kMids[] = {2,  3,  4,  5,    6,    7,    8,    9,    10,   11,
                                             12, 13, 14, 0xfd, 0xfd, 0xfe, 0xfe, 0xff, 0xff, 0xff};
    Message message;
    message.mid = static_cast<Mid>(input_.one_of(kMids));
    message.flags = input_.byte() & 7;
    message.buffers = input_.byte() % 40;
    message.sequence = stream_.credits.received + 1;
    message.acknowledged = stream_.credits.sent - input_.byte() % 4;
    message.size = input_.byte();
    message.address = input_.number(2);
    message.rkey = input_.byte();
    message.mode = static_cast<Mode>(input_.byte() % 3);
    message.of_sending_half = message.mode == Mode::Combined && input_.byte() % 2 == 0;
    message.non_discards = stream_.sending.non_discards - input_.byte() % 3;
    if (input_.byte() % 64 == 0) message.sequence += input_.byte();
    if (static_cast<std::uint8_t>(message.mid) >= 0xfd) message.payload = input_.byte() % 64;
    const HeaderBytes header = write(message);
    std::vector<std::byte> bytes(header.length + message.payload);
    std::memcpy(bytes.data(), header.bytes.data(), header.length);
    if (input_.byte() % 32 == 0 && !bytes.empty())
      bytes[input_.byte() % bytes.size()] ^= std::byte{input_.byte()};
    if (input_.byte() % 32 == 0) bytes.resize(input_.byte() % kBuffer);
    const std::uint32_t buffer = posted_.back();
    posted_.pop_back();
    lengths_[buffer] = bytes.size();
    (void)on_message(stream_, buffer, bytes, now());
  }

  void act() {
    const std::uint64_t id = next_id_;
    const DirectBuffer direct{id, id << 32, 1u + input_.byte(), 7};
    switch (input_.byte() % 16) {
      case 0:
      case 1:
        (void)write(stream_, static_cast<std::uint32_t>(input_.number(2)), input_.byte() % 4 == 0);
        break;
      case 2:
        if (write_direct(stream_, direct) == Status::Ok) give(direct);
        break;
      case 3: cancel_write(stream_, input_.byte() % (next_id_ + 1)); break;
      case 4:
        if (read_direct(stream_, direct) == Status::Ok) give(direct);
        break;
      case 5: cancel_read(stream_); break;
      case 6: request_copies(stream_); break;
      case 7:
      case 8:
      case 9: consume(stream_, input_.byte()); break;
      case 10: set_cork(stream_, input_.byte() % 2 == 0); break;
      case 11: (void)request_send_mode(stream_, static_cast<Mode>(input_.byte() % 3)); break;
      case 12: answer_resize(stream_, kBuffer); break;
      case 13: end(); break;
      case 14: (void)request_combined_receive(stream_); break;
      case 15: (void)request_remote_size(stream_, input_.byte()); break;
    }
  }

  void end() {
    switch (input_.byte() % 16) {
      case 0: shutdown_send(stream_); break;
      case 1: close(stream_, input_.byte() % 2 == 0, now()); break;
      case 2: abort(stream_); break;
      case 3: (void)suspend(stream_, 1); break;
      default: break;
    }
  }

  void give(const DirectBuffer& direct) {
    buffers_.insert(direct.id);
    ++next_id_;
  }
  void complete() { on_completion(stream_, stream_.oldest_tag + input_.byte() % 8); }
  void pass() {
    time_ += std::int64_t{1'000'000'000} * input_.byte();
    on_time(stream_, now());
  }
  void damage() {
    if (!may_damage_) return;
    is_damaged_ = true;
    const std::size_t at = input_.number(2) % sizeof stream_;
    const std::size_t count = 1 + input_.byte() % 8;
    for (std::size_t i = at; i < sizeof stream_ && i < at + count; ++i) {
      reinterpret_cast<std::uint8_t*>(&stream_)[i] = input_.byte();
    }
  }

  void collect() {
    for (unsigned rounds = 0; rounds < 1000; ++rounds) {
      const auto buffer = take_free_buffer(stream_);
      if (!buffer) break;
      require(is_damaged_ || *buffer < kBuffers, "a receive buffer that does not exist");
      if (*buffer < kBuffers && !is_over(stream_)) posted_.push_back(*buffer);
      require(rounds < 999, "free buffers without an end");
    }
    for (unsigned rounds = 0; rounds < 1000; ++rounds) {
      const auto post = next_post(stream_, now());
      if (!post) break;
      inspect(*post);
      require(rounds < 999, "posts without an end");
    }
    (void)take_events(stream_);
    for (unsigned rounds = 0; rounds < 1000; ++rounds) {
      const auto result = take_result(stream_);
      if (!result) break;
      const bool was_there = buffers_.erase(result->id) != 0;
      require(was_there || is_damaged_, "a result without a buffer");
      require(rounds < 999, "results without an end");
    }
  }

  void inspect(const Post& post) {
    if (is_damaged_) return;
    require(stream_.next_tag - stream_.oldest_tag <= 8, "more posts than places");
    if (post.kind == Post::Send) {
      require(post.header.length >= sizeof(Bsdh) && post.header.length <= kLongestHeader,
              "a header");
      require(post.header.length + post.payload.length <=
                  std::max(stream_.sending.remote_size, kBuffer),
              "a message too long");
    }
    if (post.payload.area == Piece::SendRing) {
      require(post.payload.offset + post.payload.length <= kRing, "bytes outside of the ring");
    }
    const bool is_direct =
        post.payload.area == Piece::WriteBuffer || post.payload.area == Piece::ReadBuffer;
    if (is_direct) {
      require(buffers_.contains(post.payload.id), "bytes of a buffer that was given back");
      require(post.payload.offset + post.payload.length <= 256, "bytes outside of a buffer");
    }
  }

  void check() {
    const Front next = front(stream_);
    (void)find_urgent(stream_);
    (void)deadline(stream_);
    const Piece place = room(stream_);
    if (is_damaged_) return;
    require(place.offset + place.length <= kRing, "room outside of the ring");
    if (next.kind != Front::Bytes) return;
    require(next.buffer < kBuffers && next.length != 0, "nothing to read");
    require(next.offset + next.length <= lengths_[next.buffer], "bytes that were not received");
  }

  FuzzInput& input_;
  Stream stream_;
  std::vector<std::uint32_t> posted_;
  std::vector<std::size_t> lengths_;
  std::set<std::uint64_t> buffers_;
  std::uint64_t next_id_ = 1;
  std::int64_t time_ = 1;
  bool may_damage_ = false;
  bool is_damaged_ = false;
};

}  // namespace
}  // namespace ib::sdp

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  ib::FuzzInput input(data, size);
  (void)ib::sdp::parse(std::as_bytes(std::span(data, size)));
  (void)ib::sdp::parse_hello(std::as_bytes(std::span(data, size)));
  (void)ib::sdp::parse_hello_ack(std::as_bytes(std::span(data, size)));
  ib::sdp::Storm(input).run();
  return 0;
}
