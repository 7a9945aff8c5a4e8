// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Which packets crossed which port: the model of a request, its answers and acknowledgements, and
// the settlement of counters before a queue pair changes its port or peer, or goes.
#include "drivers/soft_hca/objects/traffic.h"

#include "verbs/wire_size.h"

namespace ib::drivers {
namespace {

namespace wire = verbs::wire;
using verbs::QpType;

constexpr std::uint64_t kAtomicBytes = 8;  // the old value is the payload of the answer

QpTraffic read_counters(const hca::QpEntry& entry) {
  const auto& requests = entry.requester;
  const auto& answers = entry.lock.answers;
  const auto& arrivals = entry.responder;
  return {.messages = requests.messages,
          .bytes = requests.bytes,
          .sends = requests.sends,
          .more_packets = requests.more_packets,
          .more_bytes = requests.more_bytes,
          .multicast = requests.multicast,
          .reads = answers.reads,
          .read_bytes = answers.bytes,
          .read_more_packets = answers.more_packets,
          .read_more_bytes = answers.more_bytes,
          .atomics = answers.atomics,
          .received_messages = arrivals.messages,
          .received_bytes = arrivals.bytes,
          .unicast_packets = arrivals.unicast_packets,
          .unicast_bytes = arrivals.unicast_bytes};
}

QpTraffic difference(const QpTraffic& now, const QpTraffic& before) {
  return {.messages = now.messages - before.messages,
          .bytes = now.bytes - before.bytes,
          .sends = now.sends - before.sends,
          .more_packets = now.more_packets - before.more_packets,
          .more_bytes = now.more_bytes - before.more_bytes,
          .multicast = now.multicast - before.multicast,
          .reads = now.reads - before.reads,
          .read_bytes = now.read_bytes - before.read_bytes,
          .read_more_packets = now.read_more_packets - before.read_more_packets,
          .read_more_bytes = now.read_more_bytes - before.read_more_bytes,
          .atomics = now.atomics - before.atomics,
          .received_messages = now.received_messages - before.received_messages,
          .received_bytes = now.received_bytes - before.received_bytes,
          .unicast_packets = now.unicast_packets - before.unicast_packets,
          .unicast_bytes = now.unicast_bytes - before.unicast_bytes};
}

// One way through a port, to be added to what it has sent or received.
struct Passage {
  std::uint64_t messages = 0;
  std::uint64_t payload = 0;
  PortTotals::Packets packets;
};

void add(PortTotals::Packets& to, const PortTotals::Packets& more) {
  to.all += more.all;
  to.multicast += more.multicast;
  to.bytes += more.bytes;
}
void add(fabric::PacketCounters& to, const PortTotals::Packets& more) {
  to.data += more.bytes / 4;  // in 4-byte words [IBA1 16.1.3.5]
  to.packets += more.all;
  to.unicast += more.all - more.multicast;
  to.multicast += more.multicast;
}
void add_sent(PortTotals* port, const Passage& passage) {
  if (port == nullptr) return;
  port->sent_messages += passage.messages;
  port->sent_bytes += passage.payload;
  add(port->sent, passage.packets);
}
void add_received(PortTotals* port, const Passage& passage) {
  if (port == nullptr) return;
  port->received_messages += passage.messages;
  port->received_bytes += passage.payload;
  add(port->received, passage.packets);
}

PortTotals::Served served_by_peer(const QpTraffic& t) {
  return {t.messages - t.sends - t.reads - t.atomics, t.reads, t.atomics};
}
void add_served(PortTotals* port, const PortTotals::Served& more) {
  if (port == nullptr) return;
  port->served.writes += more.writes;
  port->served.reads += more.reads;
  port->served.atomics += more.atomics;
}

Passage requests_of(const QpTraffic& t, QpType type, std::uint64_t base) {
  const std::uint64_t writes = served_by_peer(t).writes;
  const std::uint64_t packets = t.messages + t.more_packets;
  const std::uint64_t each = base + (type == QpType::XrcSend ? wire::kXrcEth : 0);
  return {t.messages,
          t.bytes,
          {packets, 0,
           packets * each + (t.reads + writes) * wire::kReth + t.atomics * wire::kAtomicEth +
               t.bytes + t.more_bytes}};
}

// Each request has an answer, or an acknowledgement of its own.
Passage answers_of(const QpTraffic& t, QpType type, std::uint64_t base) {
  if (verbs::is_unreliable(type)) return {};
  const std::uint64_t packets = t.messages + t.read_more_packets;
  return {t.reads + t.atomics,
          t.read_bytes + t.atomics * kAtomicBytes,
          {packets, 0,
           packets * base + t.messages * wire::kAeth + t.atomics * wire::kAtomicAck + t.read_bytes +
               t.read_more_bytes}};
}

// At the ports of the switches that packets have passed. Those of channel adapters have totals.
void add_on_way(Core& core, const std::vector<std::uint32_t>& way,
                const PortTotals::Packets& more) {
  if (more.all == 0) return;
  for (std::size_t i = 0; i < way.size(); ++i) {
    fabric::Port& port = *core.fabric.graph().port(way[i]);
    if (port.device_index != fabric::kNoIndex) continue;
    add(i % 2 == 0 ? port.counters.sent : port.counters.received, more);
  }
}

PortTotals* totals_of(Core& core, std::uint32_t port) {
  return port < core.port_totals.size() ? &core.port_totals[port] : nullptr;
}

void add_arrivals(const Core& core, std::uint32_t port, PortTotals& totals) {
  const hca::PortEntry* entry = core.arena().port(port);
  if (entry == nullptr) return;
  const auto& arrivals = entry->arrivals;
  const std::uint64_t groups = arrivals.multicast_packets;
  add(totals.received, {arrivals.unicast_packets + groups, groups,
                        arrivals.unicast_bytes + arrivals.multicast_bytes});
}

PortTotals settled_totals(const Core& core, std::uint32_t port) {
  PortTotals totals = core.port_totals.at(port);
  add_arrivals(core, port, totals);
  return totals;
}

// Returns the queue pair that this one is connected to, as posters have it, or nullptr.
Qp* other_end(Core& core, const hca::QpEntry& entry) {
  const std::uint32_t number = entry.connection.dest_qpn;
  Qp* const other = core.qps.find(hca::qp_index(number));
  return other != nullptr && other->qpn == number ? other : nullptr;
}

// Device memory is believed only as far as it is possible.
const fabric::Port& port_of(const Qp& qp, const hca::QpEntry& entry) {
  const fabric::Hca& hca = *qp.file->hca;
  const std::uint32_t number = entry.id.port - hca.first_port;
  return hca.ports[number < hca.ports.size() ? number : 0];
}

}  // namespace

void count_traffic(Core& core, Qp& qp) {
  const hca::QpEntry& entry = *core.arena().qp(qp.index);
  const QpTraffic now = read_counters(entry);
  const QpTraffic more = difference(now, qp.counted);
  qp.counted = now;
  const fabric::Port& port = port_of(qp, entry);
  // The counters of an HCA that was pulled out went with it; another may be in its place.
  PortTotals* const own = qp.file->removed ? nullptr : totals_of(core, port.device_index);
  if (verbs::is_datagram(qp.type)) {
    const std::uint64_t packets = more.messages + more.more_packets;
    add_sent(own,
             {more.messages, more.bytes, {packets, more.multicast, more.bytes + more.more_bytes}});
    return add_received(own, {more.received_messages,
                              more.received_bytes,
                              {more.unicast_packets, 0, more.unicast_bytes}});
  }
  PortTotals* const peer = totals_of(core, entry.connection.dest_port);
  // As posters have it, like the port of the peer: the attributes may be those of the next path.
  const hca::SharedAddress& path = entry.connection.address;
  const std::uint64_t base =
      wire::packet_base(port.link_layer, path.is_global != 0, verbs::Gid(path.dgid));
  const Passage requests = requests_of(more, qp.type, base);
  add_sent(own, requests);
  add_received(peer, requests);
  add_served(peer, served_by_peer(more));
  const Passage answers = answers_of(more, qp.type, base);
  add_sent(peer, answers);
  add_received(own, answers);
  add_on_way(core, qp.way, requests.packets);
  // By the way of the peer, as it is now: a change of it counts what has passed first.
  const Qp* answerer = other_end(core, entry);
  if (answerer != nullptr) add_on_way(core, answerer->way, answers.packets);
}

void count_connection(Core& core, Qp& qp) {
  count_traffic(core, qp);
  Qp* const other = other_end(core, *core.arena().qp(qp.index));
  if (other != nullptr && other != &qp) count_traffic(core, *other);
}

void settle_traffic(Core& core) {
  core.qps.for_each([&core](Qp& qp) { count_traffic(core, qp); });
  core.datagram_ways.settle(core);
}

std::vector<PortTotals> all_port_totals(Core& core) {
  settle_traffic(core);
  std::vector<PortTotals> totals;
  totals.reserve(core.port_totals.size());
  for (std::uint32_t i = 0; i < core.port_totals.size(); ++i) {
    totals.push_back(settled_totals(core, i));
  }
  return totals;
}

PortTotals port_totals(Core& core, std::uint32_t port) {
  settle_traffic(core);
  return settled_totals(core, port);
}

fabric::PortCounters port_counters(Core& core, const fabric::Port& port) {
  settle_traffic(core);
  return settled_port_counters(core, port);
}

fabric::PortCounters settled_port_counters(Core& core, const fabric::Port& port) {
  fabric::PortCounters counters = port.counters;
  if (port.device_index >= core.port_totals.size()) return counters;
  const PortTotals totals = settled_totals(core, port.device_index);
  add(counters.sent, totals.sent);
  add(counters.received, totals.received);
  return counters;
}

void forget_traffic(Core& core, std::uint32_t port) {
  settle_traffic(core);
  core.port_totals[port] = {};
  if (const fabric::Port* known = core.fabric.device_port(port)) {
    fabric::Graph& graph = core.fabric.graph();
    graph.port(graph.index_of(*known))->counters = {};
    core.gmp_agents.perf().forget(*known);
  }
  hca::PortEntry* entry = core.arena().port(port);
  if (entry == nullptr) return;
  entry->arrivals.unicast_packets = 0;
  entry->arrivals.unicast_bytes = 0;
  entry->arrivals.multicast_packets = 0;
  entry->arrivals.multicast_bytes = 0;
}

}  // namespace ib::drivers
