// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Queues of waiting packets and their common bound.
#include "ulp/ipoib/waiting_packets.h"

#include <utility>

namespace ib::ipoib {

bool WaitingQueue::put(WaitingPacket packet) {
  if (packets_.size() >= limit_ || budget_->packets_left == 0 ||
      budget_->bytes_left < packet.message.size()) {
    return false;
  }
  --budget_->packets_left;
  budget_->bytes_left -= packet.message.size();
  packets_.push_back(std::move(packet));
  return true;
}

std::optional<WaitingPacket> WaitingQueue::take() {
  if (packets_.empty()) return std::nullopt;
  WaitingPacket packet = std::move(packets_.front());
  packets_.pop_front();
  give_back(packet);
  return packet;
}

std::size_t WaitingQueue::expire(Instant now) {
  std::size_t removed = 0;
  while (!packets_.empty() && packets_.front().until <= now) {
    give_back(packets_.front());
    packets_.pop_front();
    ++removed;
  }
  return removed;
}

std::size_t WaitingQueue::clear() {
  const std::size_t removed = packets_.size();
  for (const WaitingPacket& packet : packets_) give_back(packet);
  packets_.clear();
  return removed;
}

std::optional<Instant> WaitingQueue::deadline() const {
  if (packets_.empty()) return std::nullopt;
  return packets_.front().until;
}

void WaitingQueue::give_back(const WaitingPacket& packet) {
  ++budget_->packets_left;
  budget_->bytes_left += packet.message.size();
}

}  // namespace ib::ipoib
