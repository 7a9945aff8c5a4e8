// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "drivers/diagnostics/trace_error.h"

#include "drivers/soft_hca/handlers.h"
#include "drivers/soft_hca/lifetime/process_slots.h"
#include "drivers/trace/explain.h"
#include "verbs/gid.h"
#include "verbs/post_refusal.h"
#include "verbs/report_count.h"

#include <fmt/format.h>

#include <algorithm>

namespace ib::drivers {
namespace {

using verbs::control::Cause;
using verbs::control::PostRefusal;

Party party(const HcaFile& file, std::uint32_t qpn, verbs::QpType type) {
  const Session& session = *file.session;
  return {session.node->name, file.hca->name, session.program, session.pid, qpn, type};
}

// The party that posted the request; none, if its queue is not there.
std::optional<Party> poster_of(Core& core, const control::TraceErrorIn& in) {
  const auto why = static_cast<PostRefusal>(in.cause);
  if (why == PostRefusal::SrqSges || why == PostRefusal::SrqQueueFull) {
    const Srq* srq = core.srqs.find(in.qp_index);
    if (srq == nullptr) return std::nullopt;
    Party self = party(*srq->file, srq->index, verbs::QpType::Rc);
    self.is_srq = true;
    return self;
  }
  const Qp* qp = core.qps.find(in.qp_index);
  if (qp == nullptr) return std::nullopt;
  return party(*qp->file, qp->qpn, qp->type);
}

// The GID that names a port for people: an IP address of its node, if it has one.
std::string best_gid(const fabric::Port& port) {
  const auto address =
      std::find_if(port.gids.begin() + 1, port.gids.end(),
                   [](const fabric::GidEntry& entry) { return !verbs::is_zero(entry.gid); });
  return verbs::address_text(address != port.gids.end() ? address->gid : port.gid());
}

// The ports of a link layer: "1 (node0, softib0, port 1), 2 (node1, softib0, port 1)"
std::string ports_of(Core& core, bool ethernet) {
  constexpr std::size_t kShown = 8;
  std::string text;
  std::size_t count = 0;
  for (const fabric::Node& node : core.fabric.nodes()) {
    for (const fabric::Hca& hca : node.hcas) {
      for (const fabric::Port& port : hca.ports) {
        if (!hca.present || port.is_ethernet() != ethernet) continue;
        if (++count > kShown) return text + ", ...";
        text += fmt::format("{}{} ({}, {}, port {})", count == 1 ? "" : ", ",
                            ethernet ? best_gid(port) : std::to_string(port.lid), node.name,
                            hca.name, port.number);
      }
    }
  }
  return text;
}

bool is_joined(const Core& core, const fabric::Port& a, const fabric::Port& b) {
  return core.fabric.graph().reaches(a, b);
}

std::string text_of(const Core& core, const fabric::Port& port) {
  const fabric::Hca* hca = core.fabric.hca_of(port);
  if (hca == nullptr) {
    return fmt::format("switch {}, port {}", core.fabric.graph().element_of(port).description,
                       port.number);
  }
  return fmt::format("{}, {}, port {}", core.fabric.node_of(*hca).name, hca->name, port.number);
}

// Where the peer of this queue pair should be.
PeerPlace place_of(Core& core, const control::TraceErrorIn& in) {
  PeerPlace place;
  if (const verbs::Gid gid = ip_trouble_gid(in); !verbs::is_zero(gid)) {
    const fabric::Port* target = core.fabric.graph().find_port(gid);
    if (target != nullptr) place.target = text_of(core, *target);
    return place;
  }
  const Qp* qp = core.qps.find(in.qp_index);
  if (verbs::control::is_of_way(in.cause)) {
    const fabric::Port* end = core.fabric.graph().port(static_cast<std::uint32_t>(in.detail >> 32));
    if (end != nullptr && in.cause != Cause::WayMtu) place.way_end = text_of(core, *end);
  }
  if (in.cause != Cause::PeerUnknown || qp == nullptr) return place;
  const auto& ports = qp->file->hca->ports;
  const std::uint32_t number = qp->attr.port;
  place.is_ethernet = number >= 1 && number <= ports.size() && ports[number - 1].is_ethernet();
  const fabric::Port* port = nullptr;
  if (!place.is_ethernet) {
    port = core.fabric.graph().find_port(static_cast<std::uint16_t>(in.detail));
    if (in.detail == 0) return place;
  } else {
    if (qp->type == verbs::QpType::Ud) return place;
    place.gid = verbs::address_text(qp->attr.av.dgid);
    port = core.fabric.graph().find_port(qp->attr.av.dgid);
  }
  if (port == nullptr) {
    place.others = ports_of(core, place.is_ethernet);
  } else if (number >= 1 && number <= ports.size() && !is_joined(core, ports[number - 1], *port)) {
    place.unreached = text_of(core, *port);
  }
  return place;
}

// The range that peers address by this key: of a window what it is bound to, which only device
// memory has.
std::optional<KeyRange> range_of(const Core& core, std::uint32_t key) {
  const Key* found = core.keys.find(key >> 8);
  if (found == nullptr) return std::nullopt;
  const hca::KeyEntry& entry = *core.arena().key(found->index);
  if (entry.id.key.load() != key) return std::nullopt;
  if (found->kind == Kind::Window) return KeyRange{entry.id.iova, entry.id.length};
  return KeyRange{found->iova, found->length};
}

// Returns the port that a queue pair is at; nullptr if there is none, or it is one of Ethernet.
const fabric::Port* port_of(const Qp& qp) {
  const auto& ports = qp.file->hca->ports;
  const std::uint32_t number = qp.attr.port;
  if (number < 1 || number > ports.size() || ports[number - 1].is_ethernet()) return nullptr;
  return &ports[number - 1];
}

bool is_held_by(const Qp& qp, std::uint32_t pid) {
  return std::ranges::any_of(
      qp.holders, [pid](const Qp::Holder& one) { return one.file->session->pid == pid; });
}

// A receiver that drops packets for their keys counts them, and its manager hears of it. The
// poster says so, of queue pairs of its own.
void count_violation(Core& core, const control::TraceErrorIn& in, std::uint32_t pid, const Qp& to) {
  const Qp* from = core.qps.find(in.qp_index);
  if (from != nullptr && !is_held_by(*from, pid)) return;
  const bool is_of_switch = in.cause == Cause::WayPartition;
  const bool is_pkey = in.cause == Cause::PkeyMismatch || is_of_switch;
  const bool is_sent = in.status != verbs::WcStatus::LocQpOpErr;  // else it never left
  if (from == nullptr || !is_sent || (!is_pkey && in.cause != Cause::QkeyMismatch)) return;
  fabric::KeyViolation violation;
  violation.from = port_of(*from);
  violation.to = port_of(to);
  if (violation.from == nullptr || violation.to == nullptr) return;
  if (!core.fabric.graph().reaches(*violation.from, *violation.to)) return;
  violation.is_pkey = is_pkey;
  if (is_of_switch) {
    violation.at = core.fabric.graph().port(static_cast<std::uint32_t>(in.detail >> 32));
    if (violation.at == nullptr) return;
  }
  violation.key = is_of_switch ? std::uint32_t{core.arena().qp(from->index)->id.pkey}
                               : static_cast<std::uint32_t>(in.detail >> 32);
  violation.service_level = from->attr.av.sl;
  violation.source_qp = from->qpn;
  violation.target_qp = to.qpn;
  const fabric::Port* at = count_violations(core.fabric, violation, verbs::times_of(in));
  if (at != nullptr && core.on_key_violation) core.on_key_violation(violation, *at);
}

}  // namespace

// Comes on the poster's connection of its own, which owns nothing: the owner is that of the queue.
void trace_error(Core& core, Session& session, const control::TraceErrorIn& in, io::IrpRef irp) {
  const std::optional<Party> self = poster_of(core, in);
  if (!self) {
    // Destroyed since: reports of a program that ends come behind its last call.
    return fail_quietly(std::move(irp), Status::InvalidParameter,
                        fmt::format("there is no queue pair {}", in.qp_index));
  }
  std::optional<Party> peer;
  const Qp* other = core.qps.find(hca::qp_index(in.peer_qpn));
  if (other != nullptr && other->qpn == in.peer_qpn) {
    peer = party(*other->file, other->qpn, other->type);
    count_violation(core, in, session.pid, *other);
  }
  TraceEntry entry;
  entry.kind = TraceKind::Error;
  entry.node = self->node;
  entry.program = self->program;
  entry.pid = self->pid;
  entry.count = verbs::times_of(in);
  if (in.cause == Cause::PeerProcessGone) entry.event = loss_event(self->pid, in.detail);
  if (peer && (self->is_srq || peer->qpn != self->qpn)) entry.peer = name_of(*peer);
  entry.text = explain_error(in, *self, peer, place_of(core, in), range_of(core, in.key));
  core.trace.add(std::move(entry));
  succeed(std::move(irp));
}

}  // namespace ib::drivers
