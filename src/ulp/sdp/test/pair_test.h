// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A connected pair of streams with little room, for tests of single exchanges.
#pragma once

#include "ulp/sdp/test/world_test.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>

namespace ib::sdp {

// Messages of 32 bytes of payload; direct writes from 64 bytes on.
inline Settings small_settings() {
  Settings settings;
  settings.send_ring_bytes = 256;
  settings.receive_buffer_bytes = 16 + 32;
  settings.receive_buffers = 8;
  settings.send_slots = 16;
  settings.direct_threshold = 64;
  return settings;
}

inline TestBytes text(const std::string& letters) {
  TestBytes bytes;
  for (const char letter : letters) bytes.push_back(static_cast<std::byte>(letter));
  return bytes;
}

struct Pair : World {
  explicit Pair(const Settings& settings = small_settings()) : World(settings, settings) {
    connect();
  }
  ~Pair() { EXPECT_EQ(fault, ""); }
  Pair(const Pair&) = delete;
  Pair& operator=(const Pair&) = delete;

  Stream& a() { return end(0).stream(); }
  Stream& b() { return end(1).stream(); }
  std::string received(unsigned i) {
    std::string letters;
    for (const std::byte byte : end(i).received) letters += static_cast<char>(byte);
    return letters;
  }
  // Messages of this kind that an end has sent.
  std::size_t count(unsigned from, Mid mid) const {
    return static_cast<std::size_t>(
        std::count(carried.begin(), carried.end(), std::pair<unsigned, Mid>(from, mid)));
  }
  // A message that the peer of this end could send next.
  Message next_message(unsigned to, Mid mid) {
    Message message;
    message.mid = mid;
    message.sequence = end(to).stream().credits.received + 1;
    message.acknowledged = end(to).stream().credits.sent;
    message.buffers = 8;
    return message;
  }
  // Hands over a message that the peer has not sent.
  Status invent(unsigned to, const Message& message) {
    const HeaderBytes header = sdp::write(message);
    TestBytes bytes(header.length + message.payload);
    std::memcpy(bytes.data(), header.bytes.data(), header.length);
    if (end(to).posted.empty()) return Status::InvalidState;
    const std::uint32_t buffer = end(to).posted.front();
    end(to).posted.pop_front();
    end(to).buffers[buffer] = bytes;
    return on_message(end(to).stream(), buffer, bytes, now);
  }
  // Lets each end post and its posts run; nothing arrives.
  void post_all() {
    for (unsigned i = 0; i < 2; ++i) pump(end(i));
    for (unsigned i = 0; i < 2; ++i) {
      while (run_post(end(i))) {}
    }
  }
};

}  // namespace ib::sdp
