// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Sequence numbers and credits of a stream: how many messages each end may send.
//
// A message needs a receive buffer of the peer. Each message says how many are posted and which
// message the sender received last, so `acknowledged + buffers` is the last sequence number that
// the peer may use.
//
// The last two credits are kept for messages that carry nothing of the stream, so that two ends
// whose programs do not read can still answer each other; and the last one goes only to a message
// that gives credits, so that never both ends are without. Toward a peer with buffers enough,
// payload leaves two more: then a pair of ends that answer each update of credits by one would come
// to rest, because an update waits until it gives two.
#pragma once

#include <algorithm>
#include <cstdint>
#include <type_traits>

namespace ib::sdp {

struct Credits {
  std::uint32_t sent = 0;  // sequence number of the last message sent; Hello and HelloAck have 0
  std::uint32_t received = 0;  // of the last message received
  std::uint32_t acknowledged =
      0;                         // the last message that the peer has received, by its last message
  std::uint32_t window_end = 0;  // the last sequence number that the peer has a buffer for
  std::uint32_t granted_end = 0;   // the last one that the peer may use, by our last message
  std::uint32_t posted = 0;        // receive buffers that wait for a message
  std::uint32_t peer_buffers = 0;  // of the peer, as its Hello or HelloAck had it
  // While `holds`, `held` is acknowledged: a cancel is being worked on. Nothing is advertised then,
  // as peers take what an advertisement does not acknowledge for what it has crossed.
  std::uint32_t held = 0;
  std::uint32_t holds = 0;

  // Messages that may be sent. 0 if the peer has withdrawn buffers.
  std::uint32_t available() const { return difference(window_end, sent); }
  // Messages that the peer may send, by the last message that it was sent.
  std::uint32_t granted() const { return difference(granted_end, received); }
  bool gives() const { return posted > granted(); }

  bool may_send_payload() const {
    return available() >=
           std::clamp<std::uint32_t>(peer_buffers, kLeastForPayload, kUsualForPayload);
  }
  bool may_send_control() const { return available() >= 2 || (available() == 1 && gives()); }
  // An empty Data message that gives credits is due.
  bool update_is_due() const {
    const std::uint32_t has = granted();
    if (available() == 0 || posted <= has) return false;
    const std::uint32_t gain = posted - has;
    return (has == 0) || (gain >= 2 && (has <= kUsualForPayload - 1 || gain > has / 2));
  }
  std::uint32_t acknowledgement() const { return holds != 0 ? held : received; }
  // The buffers that a message says are posted. The peer subtracts what it has sent since the
  // message that is acknowledged: those that are held back count as posted, or it would lose
  // credits.
  std::uint16_t advertised() const {
    return static_cast<std::uint16_t>(
        std::min<std::uint32_t>(posted + (received - acknowledgement()), 0xffff));
  }

  static constexpr std::uint32_t kLeastForPayload = 3;
  static constexpr std::uint32_t kUsualForPayload = 5;

 private:
  static std::uint32_t difference(std::uint32_t end, std::uint32_t used) {
    const auto left = static_cast<std::int32_t>(end - used);
    return left > 0 ? static_cast<std::uint32_t>(left) : 0;
  }
};
static_assert(std::is_trivially_copyable_v<Credits> && std::is_standard_layout_v<Credits>);

// a comes after b, in a circle of 32 bits.
inline bool is_after(std::uint32_t a, std::uint32_t b) {
  return static_cast<std::int32_t>(a - b) > 0;
}

}  // namespace ib::sdp
