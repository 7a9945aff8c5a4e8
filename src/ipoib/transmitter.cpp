// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// From a buffer that a frame was read into to the posted request, without a copy where the engine
// sends what lies there; and back to the free buffers with the completion.
#include "ipoib/transmitter.h"

#include "base/address.h"
#include "linux/net/tap.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace ib::ipoib::driver {

namespace {

// No power of two: the starts of the buffers are in different sets of the cache.
constexpr std::size_t kStride = 65'536 + 128 + 64;
static_assert(kStride >= os::net::kMaxFrameBytes && kStride % 64 == 0);
constexpr std::size_t kHeadsAt = std::size_t{Transmitter::kBuffers} * kStride;

}  // namespace

Result<std::unique_ptr<Transmitter>> Transmitter::create(user::Hca& hca,
                                                         const user::ProtectionDomain& pd) {
  IB_TRY(memory, RegisteredMemory::create(hca, pd, kHeadsAt + std::size_t{kRequests} * kHeadBytes));
  return std::unique_ptr<Transmitter>(new Transmitter(std::move(memory)));
}

Transmitter::Transmitter(std::unique_ptr<RegisteredMemory> memory)
    : memory_(std::move(memory)), uses_(kBuffers), requests_(kRequests) {
  free_buffers_.reserve(kBuffers);
  for (std::uint32_t i = kBuffers; i-- > 0;) free_buffers_.push_back(i);
  free_.reserve(kRequests);
  for (std::uint32_t i = kRequests; i-- > 0;) free_.push_back(i);
}

std::optional<std::uint32_t> Transmitter::take() {
  if (free_buffers_.empty()) return std::nullopt;
  const std::uint32_t buffer = free_buffers_.back();
  free_buffers_.pop_back();
  uses_[buffer] = 1;
  return buffer;
}

std::span<std::byte> Transmitter::bytes(std::uint32_t buffer) const {
  return memory_->bytes().subspan(std::size_t{buffer} * kStride, kStride);
}

void Transmitter::let_go(std::uint32_t buffer) {
  IB_ASSERT(uses_[buffer] != 0);
  if (--uses_[buffer] == 0) free_buffers_.push_back(buffer);
}

std::uint32_t Transmitter::buffer_of(std::span<const std::byte> part) const {
  if (part.empty() || !memory_->holds(part)) return kNoBuffer;
  const std::size_t at = address_of(part.data()) - address_of(memory_->bytes().data());
  return at < kHeadsAt ? static_cast<std::uint32_t>(at / kStride) : kNoBuffer;
}

// Everything in a buffer of its own: what the interface has kept meanwhile.
bool Transmitter::copy_whole(const Outgoing& message, Request& request, user::Sge& one) {
  const auto buffer = take();
  if (!buffer) return false;
  const auto room = bytes(*buffer);
  if (message.size() > room.size()) {
    let_go(*buffer);
    return false;
  }
  std::copy(message.head.begin(), message.head.end(), room.begin());
  std::copy(message.body.begin(), message.body.end(),
            room.begin() + static_cast<std::ptrdiff_t>(message.head.size()));
  request.buffer = *buffer;
  one = memory_->sge(room.first(message.size()));
  return true;
}

// Returns the number of elements; 0: there is no room.
std::uint32_t Transmitter::gather(std::uint32_t number, const Outgoing& message,
                                  std::array<user::Sge, kElements>& list) {
  Request& request = requests_[number];
  const std::uint32_t of_head = buffer_of(message.head);
  const std::uint32_t of_body = buffer_of(message.body);
  const bool head_is_short = of_head == kNoBuffer && message.head.size() <= kHeadBytes;
  const bool body_is_here = of_body != kNoBuffer || message.body.empty();
  const bool same = of_head == of_body || message.body.empty() || message.head.empty();
  if (!body_is_here || !(head_is_short || (of_head != kNoBuffer && same))) {
    return copy_whole(message, request, list[0]) ? 1 : 0;
  }
  std::uint32_t count = 0;
  if (!message.head.empty()) {
    std::span<const std::byte> head = message.head;
    if (of_head == kNoBuffer) {
      const auto room = memory_->bytes().subspan(kHeadsAt + number * kHeadBytes, head.size());
      std::copy(head.begin(), head.end(), room.begin());
      head = room;
    }
    list[count++] = memory_->sge(head);
  }
  if (!message.body.empty()) list[count++] = memory_->sge(message.body);
  request.buffer = of_body != kNoBuffer ? of_body : of_head;
  if (request.buffer != kNoBuffer) ++uses_[request.buffer];
  return count;
}

bool Transmitter::post(user::QueuePair& to, user::SendWqe& wqe, const Outgoing& message) {
  if (free_.empty()) return false;
  const std::uint32_t number = free_.back();
  Request& request = requests_[number];
  std::array<user::Sge, kElements> list;
  std::uint32_t count = 0;
  std::uint32_t flags = verbs::send_flag::kSignaled;
  if (message.size() <= kInline) {
    flags |= verbs::send_flag::kInline;
    for (const auto part : {message.head, message.body}) {
      if (part.empty()) continue;
      list[count++] = {address_of(part.data()), static_cast<std::uint32_t>(part.size()), 0};
    }
  } else {
    count = gather(number, message, list);
    if (count == 0) return false;
  }
  free_.pop_back();
  request.qpn = to.qpn();
  ++request.serial;
  wqe.wr_id = std::uint64_t{request.serial} << 32 | number;
  user::set_flags(wqe, flags);
  user::set_sges(wqe, std::span(list).first(count));
  user::WorkQueues& queues = to.queues();
  queues.send_lock().lock();
  const Status posted = queues.post_send(wqe);
  queues.send_lock().unlock();
  if (posted == Status::Ok) return true;
  release(number);
  return false;
}

void Transmitter::release(std::uint32_t number) {
  Request& request = requests_[number];
  if (request.buffer != kNoBuffer) let_go(std::exchange(request.buffer, kNoBuffer));
  request.qpn = 0;
  free_.push_back(number);
}

void Transmitter::complete(std::uint64_t wr_id) {
  const auto number = static_cast<std::uint32_t>(wr_id);
  if (number >= kRequests) return;
  const Request& request = requests_[number];
  if (request.qpn != 0 && request.serial == static_cast<std::uint32_t>(wr_id >> 32)) {
    release(number);
  }
}

void Transmitter::abandon(std::uint32_t qpn) {
  for (std::uint32_t number = 0; number < kRequests; ++number) {
    if (requests_[number].qpn == qpn) release(number);
  }
}

}  // namespace ib::ipoib::driver
