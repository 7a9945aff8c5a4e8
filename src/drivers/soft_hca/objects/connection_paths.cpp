// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "drivers/soft_hca/objects/connection_paths.h"

#include "drivers/soft_hca/events.h"
#include "drivers/soft_hca/objects/traffic.h"
#include "hca/layout/epoch.h"

namespace ib::drivers {
namespace {

using verbs::MigState;
using verbs::QpType;

bool is_connected_type(QpType type) {
  return !verbs::is_datagram(type);
}

const fabric::Port* port_of(const Qp& qp) {
  return qp.attr.port != 0 ? &qp.file->hca->ports[qp.attr.port - 1u] : nullptr;
}

// Returns the port to which the requests of a connected queue pair go, or nullptr if there is none,
// or no way leads to it.
const fabric::Port* destination_of(const Core& core, const Qp& qp) {
  const fabric::Port* from = port_of(qp);
  if (from == nullptr) return nullptr;
  const verbs::AddressVector& av = qp.attr.av;
  const fabric::Graph& graph = core.fabric.graph();
  const fabric::Port* to =
      from->is_ethernet() ? graph.route(*from, av.dgid) : graph.route(*from, av.dlid);
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
  raise_qp(core, qp, verbs::EventType::PathMig);
}

void store_port(const Qp& qp, hca::QpEntry& entry) {
  const fabric::Hca& hca = *qp.file->hca;
  const fabric::Port& port = hca.ports[qp.attr.port - 1u];
  entry.id.port = hca.first_port + port.number - 1;
  entry.id.lid = port.lid;
  entry.id.pkey =
      qp.attr.pkey_index < port.pkeys.size() ? port.pkeys[qp.attr.pkey_index] : std::uint16_t{0};
}

void store_flow(const Core& core, const Qp& qp, hca::QpEntry& entry) {
  entry.connection.address = qp.attr.av;
  const fabric::Port* port = destination_of(core, qp);
  entry.connection.dest_port = port != nullptr ? port->device_index : hca::kNone;
  const std::uint32_t flow =
      port != nullptr ? hca::flow::kMemory : hca::flow::blocked(control::Cause::PeerUnknown);
  entry.connection.flow.store(flow, std::memory_order_release);
}

}  // namespace

void follow_port(Core& core, const fabric::Port& port) {
  core.qps.for_each([&](const Qp& qp) {
    hca::QpEntry& entry = *core.arena().qp(qp.index);
    if (entry.id.port != port.device_index) return;
    entry.id.lid = port.lid;
    entry.id.pkey =
        qp.attr.pkey_index < port.pkeys.size() ? port.pkeys[qp.attr.pkey_index] : std::uint16_t{0};
  });
}

void resolve_flows(Core& core, Resolve which) {
  core.qps.for_each([&core, which](Qp& qp) {
    if (qp.dying || !is_connected_type(qp.type)) return;
    hca::QpEntry& entry = *core.arena().qp(qp.index);
    const std::uint32_t before = entry.connection.dest_port;
    if (which == Resolve::Missing && before != hca::kNone) return;
    const fabric::Port* port = destination_of(core, qp);
    const std::uint32_t now = port != nullptr ? port->device_index : hca::kNone;
    if (before == now) return;
    count_traffic(core, qp);
    store_flow(core, qp, entry);
  });
}

Qp* connected_peer(Core& core, const Qp& qp) {
  if (!is_connected_type(qp.type) || qp.attr.dest_qpn == 0) return nullptr;
  Qp* peer = core.qps.find(hca::qp_index(qp.attr.dest_qpn));
  const bool mutual = peer != nullptr && !peer->dying && peer->qpn == qp.attr.dest_qpn &&
                      peer->attr.dest_qpn == qp.qpn && peer->type == verbs::peer_type(qp.type) &&
                      destination_of(core, qp) == port_of(*peer) &&
                      destination_of(core, *peer) == port_of(qp);
  return mutual ? peer : nullptr;
}

void store_path(Core& core, Qp& qp) {
  count_traffic(core, qp);
  hca::QpEntry& entry = *core.arena().qp(qp.index);
  entry.id.access = qp.attr.access;
  entry.id.qkey = qp.attr.qkey;
  entry.id.min_rnr_timer = qp.attr.min_rnr_timer;
  entry.id.max_dest_rd_atomic = qp.attr.max_dest_rd_atomic;
  entry.connection.dest_qpn = qp.attr.dest_qpn;
  entry.connection.mtu = qp.attr.path_mtu;
  entry.connection.sq_psn = qp.attr.sq_psn;
  entry.connection.rq_psn = qp.attr.rq_psn;
  if (is_connected_type(qp.type)) store_flow(core, qp, entry);
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
  Qp* peer = connected_peer(core, qp);
  if (qp.attr.mig_state == MigState::Armed) go_to_alternate(core, qp);
  // The other end would see it in the first packet that comes by the new path.
  if (peer != nullptr && peer->attr.mig_state == MigState::Armed) go_to_alternate(core, *peer);
}

}  // namespace ib::drivers
