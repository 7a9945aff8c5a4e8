// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Packets that wait for a path, a group or a connection: copies, in queues that share one bound.
#pragma once

#include "base/time.h"
#include "ulp/ipoib/packets/addresses.h"
#include "ulp/ipoib/packets/virtio_header.h"

#include <cstddef>
#include <deque>
#include <optional>
#include <span>
#include <vector>

namespace ib::ipoib {

// The room of all queues of an interface.
struct WaitingBudget {
  std::size_t packets_left = 0;
  std::size_t bytes_left = 0;
};

struct WaitingPacket {
  std::vector<std::byte> message;  // from the encapsulation header on
  Offload offload;
  HardwareAddress to;        // of unicast
  bool by_datagram = false;  // never on a connection
  Instant until;
};

class WaitingQueue {
 public:
  WaitingQueue(WaitingBudget& budget, std::size_t limit) : budget_(&budget), limit_(limit) {}
  ~WaitingQueue() { clear(); }
  WaitingQueue(const WaitingQueue&) = delete;
  WaitingQueue& operator=(const WaitingQueue&) = delete;

  // Returns false if there is no room.
  bool put(WaitingPacket packet);
  std::optional<WaitingPacket> take();
  // Both return how many packets they have removed.
  std::size_t expire(Instant now);
  std::size_t clear();

  std::size_t size() const { return packets_.size(); }
  std::optional<Instant> deadline() const;

 private:
  void give_back(const WaitingPacket& packet);

  WaitingBudget* budget_;
  std::size_t limit_;
  std::deque<WaitingPacket> packets_;  // by age
};

}  // namespace ib::ipoib
