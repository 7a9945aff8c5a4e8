// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "drivers/soft_hca/objects/connection_paths.h"

#include "drivers/soft_hca/events.h"
#include "drivers/soft_hca/objects/traffic.h"
#include "fabric/forwarding/data_way.h"
#include "hca/layout/epoch.h"
#include "hca/layout/flow.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace ib::drivers {
namespace {

using verbs::MigState;
using verbs::QpType;

// A subnet manager that writes tables is not done with one packet.
constexpr Duration kGatherTime = std::chrono::milliseconds(2);

bool is_connected_type(QpType type) {
  return !verbs::is_datagram(type);
}

const fabric::Port* port_number(const Qp& qp, std::uint32_t number) {
  return number != 0 ? &qp.file->hca->ports[number - 1u] : nullptr;
}

// Where the requests of a queue pair begin, and where they are to go.
struct Path {
  const fabric::Port* from = nullptr;  // nullptr: no port was given
  const verbs::AddressVector& av;
  std::uint16_t pkey = 0;
};

Path path_by(const Qp& qp, std::uint32_t number, const verbs::AddressVector& av,
             std::uint32_t pkey_index) {
  const fabric::Port* from = port_number(qp, number);
  const bool has_pkey = from != nullptr && pkey_index < from->pkeys.size();
  return {from, av, has_pkey ? from->pkeys[pkey_index] : std::uint16_t{0}};
}

Path primary_path(const Qp& qp) {
  return path_by(qp, qp.attr.port, qp.attr.av, qp.attr.pkey_index);
}

Path alternate_path(const Qp& qp) {
  return path_by(qp, qp.attr.alt_port, qp.attr.alt_av, qp.attr.alt_pkey_index);
}

// Returns the port to which requests go by a path, or nullptr if there is none, or no way leads to
// it.
const fabric::Port* destination_of(const Core& core, const Path& path) {
  if (path.from == nullptr) return nullptr;
  const fabric::Graph& graph = core.fabric.graph();
  const fabric::Port* to = path.from->is_ethernet() ? graph.route(*path.from, path.av.dgid)
                                                    : graph.route(*path.from, path.av.dlid);
  // Programs have no queue pairs at a switch.
  return to != nullptr && to->device_index != fabric::kNoIndex ? to : nullptr;
}

void go_to_alternate(Core& core, Qp& qp) {
  qp.attr.av = qp.attr.alt_av;
  qp.attr.port = qp.attr.alt_port;
  qp.attr.pkey_index = qp.attr.alt_pkey_index;
  qp.attr.timeout = qp.attr.alt_timeout;
  qp.attr.mig_state = MigState::Migrated;
  store_path(core, qp);
  core.memory.kick(qp.file->session->slot);  // requests that wait for the path that is broken
  raise_qp(core, qp, verbs::EventType::PathMig);
}

// The addresses that packets of the queue pair have at its port. Path bits beyond those of the port
// do not count [IBA1 4.1.3]. Datagrams have path bits of their own, each.
void store_source(const Qp& qp, const fabric::Port& port, hca::QpEntry& entry) {
  const unsigned mask = (1u << port.lmc) - 1;
  const unsigned bits = is_connected_type(qp.type) ? qp.attr.av.src_path_bits & mask : 0;
  entry.id.lid = static_cast<std::uint16_t>(port.lid + bits);
  entry.id.pkey = primary_path(qp).pkey;
}

void store_port(const Qp& qp, hca::QpEntry& entry) {
  const fabric::Hca& hca = *qp.file->hca;
  const fabric::Port& port = hca.ports[qp.attr.port - 1u];
  entry.id.port = hca.first_port + port.number - 1;
  store_source(qp, port, entry);
}

// The way of its requests, as posters find it.
struct Flow {
  std::uint32_t word = hca::flow::blocked(control::Cause::PeerUnknown);
  std::uint32_t dest_port = hca::kNone;  // in the port table
  std::uint32_t end = hca::kNone;
  std::vector<std::uint32_t> ports;
};

// Through switches the tables decide, else the address alone.
Flow find_flow(Core& core, const Path& path) {
  fabric::Graph& graph = core.fabric.graph();
  Flow flow;
  const fabric::Port* from = path.from;
  const fabric::Port* to = destination_of(core, path);
  if (from == nullptr || !fabric::is_behind_switch(graph, *from)) {
    if (to != nullptr) flow.word = hca::flow::kMemory;
  } else {
    fabric::DataWay way =
        fabric::find_data_way(graph, *graph.port(graph.index_of(*from)), path.av.dlid, path.pkey);
    const bool arrives = way.leads_to_adapter();
    const bool has_lane = (way.levels >> (path.av.sl & 15) & 1) != 0;
    if (arrives && has_lane) {
      flow.word = hca::flow::memory(way.mtu);
      to = way.end;
    } else if (arrives || way.stop != control::Cause::None) {
      flow.word = hca::flow::blocked(arrives ? control::Cause::WayLane : way.stop);
      flow.end = way.stop_at;
    }
    flow.ports = std::move(way.ports);
  }
  if (to != nullptr) flow.dest_port = to->device_index;
  return flow;
}

// Returns whether posters find another one than before. The traffic so far counts on the last one.
bool store_flow(Core& core, Qp& qp, Flow flow) {
  hca::QpEntry& entry = *core.arena().qp(qp.index);
  const bool is_same = entry.connection.flow.load(std::memory_order_relaxed) == flow.word &&
                       entry.connection.dest_port == flow.dest_port && qp.way == flow.ports &&
                       qp.way_end == flow.end;
  if (is_same) return false;
  count_connection(core, qp);
  qp.way = std::move(flow.ports);
  qp.way_end = flow.end;
  entry.connection.dest_port = flow.dest_port;
  entry.connection.way_end = flow.end;
  entry.connection.flow.store(flow.word, std::memory_order_release);
  return true;
}

// The queue pair that this one is to speak with if that one is to speak with it, whether or not a
// way leads there now.
Qp* partner_of(Core& core, const Qp& qp) {
  if (!is_connected_type(qp.type) || qp.attr.dest_qpn == 0) return nullptr;
  Qp* peer = core.qps.find(hca::qp_index(qp.attr.dest_qpn));
  const bool mutual = peer != nullptr && !peer->dying && peer->qpn == qp.attr.dest_qpn &&
                      peer->attr.dest_qpn == qp.qpn && peer->type == verbs::peer_type(qp.type);
  return mutual ? peer : nullptr;
}

bool is_armed(const Qp& qp) {
  return qp.attr.mig_state == MigState::Armed;
}

bool is_whole(const Flow& flow) {
  return hca::flow::plane_of(flow.word) == hca::flow::kMemory;
}

// Whether requests get to the peer by the alternate path, and their answers back.
bool has_whole_alternate(Core& core, const Qp& qp) {
  const auto leads = [&core](const Qp& from, const Qp& to) {
    const Path path = alternate_path(from);
    const Flow flow = find_flow(core, path);
    const fabric::Port* end = port_number(to, to.attr.alt_port);
    return is_whole(flow) && path.from->state == verbs::PortState::Active && end != nullptr &&
           flow.dest_port == end->device_index;
  };
  const Qp* peer = partner_of(core, qp);
  return peer != nullptr && is_armed(*peer) && leads(qp, *peer) && leads(*peer, qp);
}

// Posters that have begun with the last one look again, also those of the peer, to which answers
// go. Hardware leaves a broken path when its retries are over; here it is known at once, and the
// path is left before a request has failed.
void store_and_tell(Core& core, Qp& qp) {
  Flow flow = find_flow(core, primary_path(qp));
  if (!is_whole(flow) && is_armed(qp) && has_whole_alternate(core, qp)) return migrate(core, qp);
  if (!store_flow(core, qp, std::move(flow))) return;
  hca::advance_epoch(core.arena(), qp.file->session->slot);
  core.memory.kick(qp.file->session->slot);
}

bool is_connected_somewhere(const Qp& qp) {
  return !qp.dying && is_connected_type(qp.type) && qp.attr.port != 0;
}

}  // namespace

void follow_port(Core& core, const fabric::Port& port) {
  core.qps.for_each([&](const Qp& qp) {
    hca::QpEntry& entry = *core.arena().qp(qp.index);
    if (entry.id.port != port.device_index) return;
    store_source(qp, port, entry);
  });
}

void resolve_flows(Core& core, Resolve which) {
  core.qps.for_each([&core, which](Qp& qp) {
    if (!is_connected_somewhere(qp)) return;
    const hca::QpEntry& entry = *core.arena().qp(qp.index);
    if (which == Resolve::Missing && entry.connection.dest_port != hca::kNone) return;
    store_and_tell(core, qp);
  });
}

void follow_forwarding(Core& core) {
  const fabric::Graph& graph = core.fabric.graph();
  const std::vector<std::uint32_t> elements = core.fabric.graph().take_forwarding_marks();
  if (elements.empty()) return;
  std::vector<bool> marked(graph.element_count());
  for (const std::uint32_t element : elements) marked[element] = true;
  const auto is_marked = [&](std::uint32_t port) {
    return port != hca::kNone && marked[graph.port(port)->element];
  };
  core.qps.for_each([&](Qp& qp) {
    if (!is_connected_somewhere(qp)) return;
    const fabric::Port* from = primary_path(qp).from;
    const bool crosses = is_marked(graph.index_of(*from)) || is_marked(qp.way_end) ||
                         std::ranges::any_of(qp.way, is_marked);
    // Its path is broken: its alternate path may be whole by now.
    const bool may_leave = is_armed(qp) && qp.way_end != hca::kNone;
    if (crosses || may_leave) store_and_tell(core, qp);
  });
  core.datagram_ways.forget_those_that_pass(core, is_marked);
}

void follow_forwarding_soon(Core& core) {
  core.later.in(kGatherTime, [&core] { follow_forwarding(core); });
}

Qp* connected_peer(Core& core, const Qp& qp) {
  Qp* peer = partner_of(core, qp);
  if (peer == nullptr) return nullptr;
  const Path there = primary_path(qp);
  const Path back = primary_path(*peer);
  const bool mutual =
      destination_of(core, there) == back.from && destination_of(core, back) == there.from;
  return mutual ? peer : nullptr;
}

void store_path(Core& core, Qp& qp) {
  count_connection(core, qp);
  hca::QpEntry& entry = *core.arena().qp(qp.index);
  entry.id.access = qp.attr.access;
  entry.id.qkey = qp.attr.qkey;
  entry.id.min_rnr_timer = qp.attr.min_rnr_timer;
  entry.id.max_dest_rd_atomic = qp.attr.max_dest_rd_atomic;
  entry.connection.dest_qpn = qp.attr.dest_qpn;
  entry.connection.mtu = qp.attr.path_mtu;
  entry.connection.sq_psn = qp.attr.sq_psn;
  entry.connection.rq_psn = qp.attr.rq_psn;
  if (is_connected_type(qp.type)) {
    entry.connection.address = qp.attr.av;
    store_flow(core, qp, find_flow(core, primary_path(qp)));
  }
  if (qp.attr.port != 0) store_port(qp, entry);
  hca::advance_epoch(core.arena(), qp.file->session->slot);
}

void arm_migration(Core& core, Qp& qp) {
  Qp* peer = connected_peer(core, qp);
  if (peer == nullptr || peer->attr.mig_state != MigState::Rearm) return;
  qp.attr.mig_state = MigState::Armed;
  peer->attr.mig_state = MigState::Armed;
}

void migrate(Core& core, Qp& qp) {
  Qp* peer = partner_of(core, qp);
  if (is_armed(qp)) go_to_alternate(core, qp);
  // The other end would see it in the first packet that comes by the new path.
  if (peer != nullptr && is_armed(*peer)) go_to_alternate(core, *peer);
}

}  // namespace ib::drivers
