// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Counting messages (docs/design/0022): a queue pair counts what it sends, in a line that it writes
// anyway, and what it gets as answers. From that softibd computes what crossed the ports of both
// ends (drivers/soft_hca/objects/traffic.h). A receiver counts datagrams only, which may come from
// anywhere.
//
// Thread rule: a counter of a queue pair has one writer, that of a port any.
#pragma once

#include "hca/layout/arena.h"
#include "hca/requester/send_wqe.h"
#include "verbs/wire_size.h"

#include <bit>
#include <cstdint>

namespace ib::hca {

[[gnu::always_inline]] inline void add_to(Shared64& counter, std::uint64_t n) {
  counter.store(counter.load(std::memory_order_relaxed) + n, std::memory_order_relaxed);
}

// Returns true if one packet without padding holds it, at every path MTU.
[[gnu::always_inline]] inline bool is_one_plain_packet(std::uint32_t bytes) {
  constexpr std::uint32_t kLeastMtu = 256;
  return std::rotr(bytes, 2) <= kLeastMtu / 4;  // the bits that are no whole words go to the top
}

void count_more_of_request(QpEntry& own, std::uint64_t bytes);
void count_more_of_read(QpEntry& own, std::uint64_t bytes);

// The parts of a request that is delivered: its payload, and that it is a SEND.
[[gnu::always_inline]] inline void count_payload(QpEntry& own, std::uint32_t bytes) {
  add_to(own.requester.messages, 1);
  add_to(own.requester.bytes, bytes);
  if (!is_one_plain_packet(bytes)) [[unlikely]]
    count_more_of_request(own, bytes);
}
[[gnu::always_inline]] inline void count_send(QpEntry& own, std::uint32_t bytes,
                                              verbs::WrOpcode opcode) {
  count_payload(own, bytes);
  add_to(own.requester.sends, 1);
  if (opcode != verbs::WrOpcode::Send) [[unlikely]]
    add_to(own.requester.more_bytes, verbs::wire::kImmediate);
}
[[gnu::always_inline]] inline void count_read(QpEntry& own, std::uint32_t bytes) {
  add_to(own.requester.messages, 1);
  add_to(own.lock.answers.reads, 1);
  add_to(own.lock.answers.bytes, bytes);
  if (!is_one_plain_packet(bytes)) [[unlikely]]
    count_more_of_read(own, bytes);
}
// Any request of a connected queue pair.
void count_request(QpEntry& own, const SendWqe& wqe, std::uint32_t bytes);

// --- datagrams ---

inline constexpr std::uint32_t kMulticastQpn = 0xffffff;

// Its payload, and its packets after the first (docs/design/0031).
struct DatagramSize {
  std::uint32_t bytes = 0;
  std::uint32_t more_packets = 0;
};

// As one packet; then those after it.
void count_datagram(const Arena& arena, QpEntry& own, const SendWqe& wqe, std::uint32_t bytes);
void count_more_of_datagram(const Arena& arena, QpEntry& own, const SendWqe& wqe,
                            std::uint32_t more_packets);
// Under the lock of its receive queue.
void count_received(const Arena& arena, const QpEntry& own, const SendWqe& wqe, DatagramSize size,
                    QpEntry& receiver);
// One that went to a group, at a port that has members, once for each port.
void count_at_member(const Arena& arena, const QpEntry& own, const SendWqe& wqe,
                     std::uint32_t bytes, PortEntry& port);
// One that goes along a way through switches.
void count_on_way(const Arena& arena, const QpEntry& own, const SendWqe& wqe, DatagramSize size,
                  WayEntry& way);
// One that its receiver dropped: it has come to the port, if there is one.
void count_dropped(const Arena& arena, const QpEntry& own, const SendWqe& wqe, DatagramSize size);

// Bytes of payload of a request that may have waited.
std::uint64_t payload_of(const SendWqe& wqe);

}  // namespace ib::hca
