// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "ulp/sdp/test/world_test.h"

#include <algorithm>
#include <cstring>

namespace ib::sdp {
namespace {

// Buffers of programs lie far apart, so that an address tells which one is meant.
constexpr std::uint64_t kStride = std::uint64_t{1} << 32;
constexpr std::uint64_t kReads = std::uint64_t{1} << 60;

}  // namespace

World::World(const Settings& a, const Settings& b) {
  ends_[0] = std::make_unique<End>(a);
  ends_[1] = std::make_unique<End>(b);
  for (const auto& end : ends_) {
    check(init(end->stream(), end->settings) == Status::Ok, "settings");
    for (std::uint32_t i = 0; i < end->settings.receive_buffers; ++i) end->posted.push_back(i);
    on_posted(end->stream(), end->settings.receive_buffers);
  }
}

void World::connect() {
  const auto hello = parse_hello(sdp::write(make_hello(end(0).stream(), Hello{})));
  check(hello.has_value() && on_hello(end(1).stream(), *hello) == Status::Ok, "hello");
  const auto ack = parse_hello_ack(sdp::write(make_hello_ack(end(1).stream())));
  check(ack.has_value() && on_hello_ack(end(0).stream(), *ack) == Status::Ok, "hello ack");
  on_established(end(1).stream());
}

void World::age() {
  constexpr std::uint32_t kShift = 0xffff'fff0;
  for (const auto& end : ends_) {
    Stream& stream = end->stream();
    Credits& credits = stream.credits;
    for (std::uint32_t* each : {&credits.sent, &credits.received, &credits.acknowledged,
                                &credits.window_end, &credits.granted_end}) {
      *each += kShift;
    }
    stream.sending.non_discards = stream.receiving.non_discards = kShift;
    const auto age_ring = [](auto& ring) { ring.first = ring.last = kShift; };
    age_ring(stream.sending.items);
    age_ring(stream.sending.sinks);
    age_ring(stream.receiving.items);
    age_ring(stream.receiving.free);
    age_ring(stream.control);
    age_ring(stream.results);
  }
}

void World::pump(End& end) {
  while (const auto buffer = take_free_buffer(end.stream())) {
    check(*buffer < end.buffers.size(), "a receive buffer that does not exist");
    if (is_over(end.stream())) {
      ++end.not_posted;
    } else {
      end.posted.push_back(*buffer);
    }
  }
  while (const auto post = next_post(end.stream(), now)) end.queue.push_back(*post);
  check(end.queue.size() <= end.settings.send_slots, "more posts than places");
  end.events |= take_events(end.stream());
  while (const auto result = take_result(end.stream())) {
    end.results.push_back(*result);
    auto& from = result->is_read != 0 ? end.reads : end.writes;
    const auto it = from.find(result->id);
    check(it != from.end() && result->bytes <= it->second.size(), "a result for nothing");
    if (it == from.end()) continue;
    if (result->is_read != 0) {
      end.received.insert(end.received.end(), it->second.begin(),
                          it->second.begin() + static_cast<std::ptrdiff_t>(result->bytes));
    }
    from.erase(it);
  }
}

TestBytes World::bytes_of(End& end, const Piece& piece) {
  const TestBytes* area = nullptr;
  if (piece.area == Piece::SendRing) area = &end.ring;
  if (piece.area == Piece::WriteBuffer) {
    const auto it = end.writes.find(piece.id);
    check(it != end.writes.end(), "bytes of a buffer that was given back");
    if (it != end.writes.end()) area = &it->second;
  }
  if (area == nullptr) return TestBytes(piece.length);
  check(piece.offset + piece.length <= area->size(), "bytes outside of their area");
  if (piece.offset + piece.length > area->size()) return TestBytes(piece.length);
  const auto first = area->begin() + static_cast<std::ptrdiff_t>(piece.offset);
  return TestBytes(first, first + piece.length);
}

bool World::run_post(End& from) {
  if (is_over(from.stream())) from.queue.clear();  // so is its own
  if (from.queue.empty() || from.is_dead) return false;
  End& to = other(from);
  if (is_over(to.stream())) {  // its queue pair is gone
    lose(from);
    return true;
  }
  const Post post = from.queue.front();
  from.queue.pop_front();
  switch (post.kind) {
    case Post::Send: run_send(from, to, post); break;
    case Post::Read: run_read(from, to, post); break;
    case Post::Write: run_write(from, to, post); break;
  }
  if (post.signaled) from.completed.push_back(post.tag);
  return true;
}

void World::run_send(End& from, End& to, const Post& post) {
  TestBytes message(post.header.length);
  std::memcpy(message.data(), post.header.bytes.data(), message.size());
  const TestBytes payload = bytes_of(from, post.payload);
  message.insert(message.end(), payload.begin(), payload.end());
  carried.emplace_back(index(from), static_cast<Mid>(post.header.bytes[0]));
  check(!to.posted.empty(), "a message without a receive buffer");
  if (to.posted.empty()) return;
  const std::uint32_t buffer = to.posted.front();
  to.posted.pop_front();
  check(message.size() <= to.stream().receiving.buffer_bytes, "a message too long");
  to.buffers[buffer] = message;
  to.arrived.emplace_back(buffer, message);
}

void World::run_read(End& from, End& to, const Post& post) {
  const auto source = to.writes.find(post.remote_address / kStride);
  const auto sink = from.reads.find(post.payload.id);
  const std::uint64_t offset = post.remote_address % kStride;
  const bool is_right = source != to.writes.end() && sink != from.reads.end() &&
                        post.rkey == source->first &&
                        offset + post.payload.length <= source->second.size() &&
                        post.payload.offset + post.payload.length <= sink->second.size();
  check(is_right, "a READ of a buffer that is not advertised");
  if (!is_right) return;
  std::memcpy(sink->second.data() + post.payload.offset, source->second.data() + offset,
              post.payload.length);
}

void World::run_write(End& from, End& to, const Post& post) {
  const TestBytes bytes = bytes_of(from, post.payload);
  const auto sink = to.reads.find((post.remote_address - kReads) / kStride);
  const std::uint64_t offset = post.remote_address % kStride;
  const bool is_right = sink != to.reads.end() && post.rkey == sink->first &&
                        offset + bytes.size() <= sink->second.size();
  check(is_right, "a WRITE to a buffer that is not advertised");
  if (is_right) std::memcpy(sink->second.data() + offset, bytes.data(), bytes.size());
}

bool World::deliver_message(End& end) {
  if (end.arrived.empty()) return false;
  const auto [buffer, message] = end.arrived.front();
  end.arrived.pop_front();
  const Status status = on_message(end.stream(), buffer, message, now);
  if (status != Status::Ok && fault.empty()) {
    fault = "a message breaks a rule: kind " + std::to_string(static_cast<unsigned>(message[0])) +
            " to end " + std::to_string(index(end));
  }
  return true;
}

bool World::deliver_completion(End& end) {
  if (end.completed.empty()) return false;
  const std::uint64_t tag = end.completed.front();
  end.completed.pop_front();
  on_completion(end.stream(), tag);
  return true;
}

void World::settle() {
  for (bool moves = true; moves;) {
    moves = false;
    for (unsigned i = 0; i < 2; ++i) {
      pump(end(i));
      moves |= run_post(end(i));
      moves |= deliver_message(end(i));
      moves |= deliver_completion(end(i));
    }
  }
}

// Messages and completions that have come are seen before the loss.
void World::lose(End& end) {
  end.is_dead = true;
  end.queue.clear();
  while (deliver_message(end) || deliver_completion(end)) {}
  on_lost(end.stream());
}

void World::kill(End& dead) {
  End& left = other(dead);
  dead.is_dead = left.is_dead = true;
  dead.queue.clear();
  dead.completed.clear();
  dead.arrived.clear();
  left.queue.clear();
  left.completed.clear();
}

void World::move_state(End& end) {
  auto copy = std::make_unique<Stream>();
  std::memcpy(static_cast<void*>(copy.get()), end.state.get(), sizeof(Stream));
  std::memset(static_cast<void*>(end.state.get()), 0xa5, sizeof(Stream));
  end.state = std::move(copy);
}

bool World::write(End& end, const TestBytes& bytes, bool urgent) {
  if (bytes.size() > writable_bytes(end.stream())) return false;
  std::size_t done = 0;
  while (done < bytes.size()) {
    const Piece place = room(end.stream());
    const std::size_t part = std::min<std::size_t>(place.length, bytes.size() - done);
    if (part == 0) return false;
    std::memcpy(end.ring.data() + place.offset, bytes.data() + done, part);
    done += part;
    const bool is_last = done == bytes.size();
    if (sdp::write(end.stream(), static_cast<std::uint32_t>(part), urgent && is_last) !=
        Status::Ok) {
      return false;
    }
  }
  return true;
}

std::optional<std::uint64_t> World::write_direct(End& end, const TestBytes& bytes) {
  const std::uint64_t id = end.next_id++;
  const DirectBuffer buffer{id, id * kStride, static_cast<std::uint32_t>(bytes.size()),
                            static_cast<std::uint32_t>(id)};
  if (sdp::write_direct(end.stream(), buffer) != Status::Ok) return std::nullopt;
  end.writes[id] = bytes;
  return id;
}

std::optional<std::uint64_t> World::read_direct(End& end, std::uint32_t bytes) {
  const std::uint64_t id = end.next_id++;
  const DirectBuffer buffer{id, kReads + id * kStride, bytes, static_cast<std::uint32_t>(id)};
  if (sdp::read_direct(end.stream(), buffer) != Status::Ok) return std::nullopt;
  end.reads[id] = TestBytes(bytes);
  return id;
}

std::uint32_t World::read(End& end, std::uint32_t most) {
  std::uint32_t done = 0;
  while (done < most) {
    const Front next = front(end.stream());
    if (next.kind != Front::Bytes) break;
    const std::uint32_t part = std::min(next.length, most - done);
    check(next.buffer < end.buffers.size() && next.offset + part <= end.buffers[next.buffer].size(),
          "bytes outside of their receive buffer");
    if (!fault.empty()) break;
    if (next.urgent) end.marks.push_back(end.received.size());
    const auto first = end.buffers[next.buffer].begin() + next.offset;
    end.received.insert(end.received.end(), first, first + part);
    consume(end.stream(), part);
    done += part;
  }
  return done;
}

}  // namespace ib::sdp
