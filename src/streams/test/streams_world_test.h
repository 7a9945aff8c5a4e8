// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// For tests: a stream in device memory that was filled in by hand, processes that work with it, and
// links whose queues are numbers. Time stands still until a test moves it.
#pragma once

#include "hca/test/poster_bench_test.h"
#include "streams/end.h"
#include "streams/end_setup.h"
#include "ulp/sdp/stream.h"

#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <string>
#include <vector>

namespace ib::streams {

// The kernel's part of a pair of links.
struct LinkPair {
  std::array<std::uint32_t, 2> packets{};  // in the queue of each
  std::array<bool, 2> closed{};
  std::array<bool, 2> mute{};              // it sends no packets any more
  std::array<std::uint32_t, 2> foreign{};  // of the packets, that have bytes
};

class BenchLink final : public Link {
 public:
  BenchLink(LinkPair& pair, std::size_t side) : pair_(pair), side_(side) {}
  bool ring() override {
    if (pair_.closed[1 - side_] || pair_.mute[side_]) return false;
    ++pair_.packets[1 - side_];
    return true;
  }
  Taken take(std::uint32_t most) override {
    const std::uint32_t count = std::min(most, pair_.packets[side_]);
    pair_.packets[side_] -= count;
    return {count, std::exchange(pair_.foreign[side_], 0) != 0};
  }
  bool is_writable() override { return pair_.packets[1 - side_] < 2; }
  bool has_hung_up() override {
    return pair_.closed[1 - side_] || (pair_.mute[0] && pair_.mute[1]);
  }
  void shut_write() override { pair_.mute[side_] = true; }
  void shut_read() override { pair_.mute[1 - side_] = true; }

 private:
  LinkPair& pair_;
  std::size_t side_;
};

class StreamWorld {
 public:
  static constexpr std::uint32_t kOwner = 2;      // the slot of softibd's client
  static constexpr std::uint32_t kProcesses = 2;  // slots 0 and 1
  static constexpr std::uint64_t kStream = 77;

  StreamWorld() {
    const hca::Arena& arena = memory.arena();
    arena.header().slots_used.store(3);
    for (std::uint32_t slot = 0; slot < kProcesses; ++slot) {
      planes.push_back(std::make_unique<hca::MemoryPlane>(arena, host, slot, hca::Path::Auto));
    }
    std::array<EndParts, 2> parts{};
    for (std::uint32_t end = 0; end < 2; ++end) {
      EndParts& part = parts[end];
      part.stream = kStream;
      part.end = end;
      part.place = page_of(memory.allocate(kPlaceBytes + kPage));
      part.qp = 2 + end;
      part.cq = end;
      part.pd = 1;
      part.lkey = 0x500 + end * 0x100;
      part.buffers_address = 4096;
      part.completions = {kCompletions, kCompletions + 1, 0};
      hca::CqEntry& cq = memory.make_cq(end, kOwner, kCompletions + 1, kCompletions);
      part.completions.ring = cq.id.ring;
      hca::QpEntry& qp = memory.make_qp(2 + end, kOwner, 3 - end, end);
      part.queue_pair.rq_ring = qp.geometry.rq_ring;
      part.queue_pair.rq_slots = qp.geometry.rq_slots;
      part.queue_pair.rq_stride = qp.geometry.rq_stride;
      memory.make_key(part.lkey, kOwner, nullptr, std::uint64_t{kBuffers} * kBufferBytes);
      hca::KeyEntry& key = *arena.key(hca::key_index(part.lkey));
      key.id.kind = hca::KeyKind::DeviceMemory;
      key.id.iova = 4096;
      key.id.address = part.place + kEndBytes + kSmallRing;
    }
    parts[0].peer_place = parts[1].place;
    parts[1].peer_place = parts[0].place;
    for (const EndParts& part : parts) IB_ASSERT(set_up(arena, part) == Status::Ok);
    places = {parts[0].place, parts[1].place};
    sdp::Stream& active = shared(0).state;
    sdp::Stream& passive = shared(1).state;
    const sdp::Hello hello = sdp::make_hello(active, {});
    IB_ASSERT(sdp::on_hello(passive, hello) == Status::Ok);
    IB_ASSERT(sdp::on_hello_ack(active, sdp::make_hello_ack(passive)) == Status::Ok);
    sdp::on_established(passive);
  }

  SharedEnd& shared(std::size_t end) { return *find_end(memory.arena(), places[end]); }
  // An end as a process has it.
  std::unique_ptr<End> open(std::uint32_t end, std::uint32_t process) {
    verbs::control::StreamOut out;
    out.stream = kStream;
    out.offset = places[end];
    out.end = end;
    auto opened = End::open(*planes[process], out);
    IB_ASSERT(bool(opened));
    return *std::move(opened);
  }
  std::uint64_t large_ring() { return page_of(memory.allocate((4u << 20) + kPage)); }
  void set_port(verbs::PortState state) { memory.arena().port(0)->state.store(state); }

  hca::BenchArena memory;
  hca::BenchHost host;
  std::vector<std::unique_ptr<hca::MemoryPlane>> planes;
  std::array<std::uint64_t, 2> places{};
  LinkPair pair;
  std::array<BenchLink, 2> links{BenchLink{pair, 0}, BenchLink{pair, 1}};

 private:
  static std::uint64_t page_of(std::uint64_t offset) {
    return (offset + kPage - 1) / kPage * kPage;
  }
};

// One side of a stream, in one process.
class Side {
 public:
  Side(StreamWorld& world, std::uint32_t end, std::uint32_t process)
      : world_(world), index_(end), end_(world.open(end, process)) {}

  Moved write(const std::string& text, bool urgent = false) {
    const ConstPart part{reinterpret_cast<const std::byte*>(text.data()), text.size()};
    return end_->write(link(), std::span(&part, 1), urgent);
  }
  // Reads up to `most` bytes; `last` has the verdict.
  std::string read(std::size_t most, End::ReadHow how = {}) {
    std::string text(most, '?');
    const Part part{reinterpret_cast<std::byte*>(text.data()), text.size()};
    const Moved moved = end_->read(link(), std::span(&part, 1), how);
    last = moved.verdict;
    text.resize(moved.verdict == Verdict::Done ? moved.bytes : 0);
    return text;
  }
  // As poll() sees the link.
  bool is_readable() const {
    return world_.pair.packets[index_] > 0 || world_.pair.closed[1 - index_] ||
           world_.pair.mute[1 - index_];
  }
  bool is_writable() { return link().is_writable(); }
  // Its process closes the last descriptor.
  void close() { world_.pair.closed[index_] = true; }
  Link& link() { return world_.links[index_]; }
  End& end() { return *end_; }

  Verdict last = Verdict::Done;

 private:
  StreamWorld& world_;
  std::size_t index_;
  std::unique_ptr<End> end_;
};

}  // namespace ib::streams
