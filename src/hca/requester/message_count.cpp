// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "hca/requester/message_count.h"

#include "hca/layout/gid_lookup.h"

namespace ib::hca {

namespace wire = verbs::wire;
using verbs::WrOpcode;

namespace {

const PortEntry* own_port(const Arena& arena, const QpEntry& own) {
  return arena.port(own.id.port);
}

std::uint64_t bytes_on_wire(const PortEntry& from, const SendWqe& wqe, DatagramSize size) {
  return wire::datagram(from.link_layer.load(std::memory_order_relaxed), wqe.av, size.bytes,
                        wqe.opcode == WrOpcode::SendWithImm, std::uint64_t{1} + size.more_packets);
}

}  // namespace

void count_more_of_request(QpEntry& own, std::uint64_t bytes) {
  add_to(own.requester.more_packets, wire::more_packets(bytes, own.connection.mtu));
  add_to(own.requester.more_bytes, wire::padding(bytes));
}

// The first packet and the last have an AETH [IBA1 9.4.4].
void count_more_of_read(QpEntry& own, std::uint64_t bytes) {
  const std::uint64_t more = wire::more_packets(bytes, own.connection.mtu);
  add_to(own.lock.answers.more_packets, more);
  add_to(own.lock.answers.more_bytes, wire::padding(bytes) + (more != 0 ? wire::kAeth : 0));
}

void count_request(QpEntry& own, const SendWqe& wqe, std::uint32_t bytes) {
  switch (wqe.opcode) {
    case WrOpcode::Send:
    case WrOpcode::SendWithImm:
    case WrOpcode::SendWithInv: return count_send(own, bytes, wqe.opcode);
    case WrOpcode::RdmaWriteWithImm:
      add_to(own.requester.more_bytes, wire::kImmediate);
      return count_payload(own, bytes);
    case WrOpcode::RdmaWrite:
    case WrOpcode::AtomicWrite: return count_payload(own, bytes);
    case WrOpcode::RdmaRead: return count_read(own, bytes);
    case WrOpcode::AtomicCmpSwap:
    case WrOpcode::AtomicFetchAdd:
      add_to(own.requester.messages, 1);
      return add_to(own.lock.answers.atomics, 1);
    case WrOpcode::Flush:  // its answer is that of a READ of nothing [IBA1 1.6 annex A19]
      add_to(own.requester.more_bytes, wire::kFeth);
      return count_read(own, 0);
    case WrOpcode::LocalInv:
    case WrOpcode::BindMw: return;  // they are no messages
  }
}

void count_datagram(const Arena& arena, QpEntry& own, const SendWqe& wqe, std::uint32_t bytes) {
  const PortEntry* from = own_port(arena, own);
  if (from == nullptr) return;
  add_to(own.requester.messages, 1);
  add_to(own.requester.sends, 1);
  add_to(own.requester.bytes, bytes);
  add_to(own.requester.more_bytes, bytes_on_wire(*from, wqe, {bytes}) - bytes);
  if (wqe.remote_qpn == kMulticastQpn) add_to(own.requester.multicast, 1);
}

void count_more_of_datagram(const Arena& arena, QpEntry& own, const SendWqe& wqe,
                            std::uint32_t more_packets) {
  const PortEntry* from = own_port(arena, own);
  if (from == nullptr) return;
  const verbs::LinkLayer layer = from->link_layer.load(std::memory_order_relaxed);
  add_to(own.requester.more_packets, more_packets);
  add_to(own.requester.more_bytes, more_packets * wire::datagram_base(layer, wqe.av));
}

void count_received(const Arena& arena, const QpEntry& own, const SendWqe& wqe, DatagramSize size,
                    QpEntry& receiver) {
  const PortEntry* from = own_port(arena, own);
  if (from == nullptr) return;
  add_to(receiver.responder.messages, 1);
  add_to(receiver.responder.bytes, size.bytes);
  if (wqe.remote_qpn == kMulticastQpn) return;
  add_to(receiver.responder.unicast_packets, 1 + size.more_packets);
  add_to(receiver.responder.unicast_bytes, bytes_on_wire(*from, wqe, size));
}

void count_at_member(const Arena& arena, const QpEntry& own, const SendWqe& wqe,
                     std::uint32_t bytes, PortEntry& port) {
  const PortEntry* from = own_port(arena, own);
  if (from == nullptr) return;
  port.arrivals.multicast_packets.fetch_add(1, std::memory_order_relaxed);
  port.arrivals.multicast_bytes.fetch_add(bytes_on_wire(*from, wqe, {bytes}),
                                          std::memory_order_relaxed);
}

void count_on_way(const Arena& arena, const QpEntry& own, const SendWqe& wqe, DatagramSize size,
                  WayEntry& way) {
  const PortEntry* from = own_port(arena, own);
  if (from == nullptr) return;
  way.packets.fetch_add(1 + size.more_packets, std::memory_order_relaxed);
  way.bytes.fetch_add(bytes_on_wire(*from, wqe, size), std::memory_order_relaxed);
}

void count_dropped(const Arena& arena, const QpEntry& own, const SendWqe& wqe, DatagramSize size) {
  const PortEntry* from = own_port(arena, own);
  if (from == nullptr) return;
  PortEntry* to = arena.port(destination_of(arena, *from, wqe.av));
  if (to == nullptr || to->state.load(std::memory_order_relaxed) != verbs::PortState::Active) {
    return;
  }
  to->arrivals.unicast_packets.fetch_add(1 + size.more_packets, std::memory_order_relaxed);
  to->arrivals.unicast_bytes.fetch_add(bytes_on_wire(*from, wqe, size), std::memory_order_relaxed);
}

std::uint64_t payload_of(const SendWqe& wqe) {
  return wqe.stored && wqe.inline_data ? wqe.inline_bytes : asked_for(wqe);
}

}  // namespace ib::hca
