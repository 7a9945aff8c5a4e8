// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// An HCA comes, goes, sleeps and wakes (docs/design/0004).
#include "drivers/soft_hca/events.h"
#include "drivers/soft_hca/handlers.h"
#include "drivers/soft_hca/hca_device.h"
#include "drivers/soft_hca/lifetime/process_slots.h"
#include "drivers/soft_hca/objects/connection_paths.h"
#include "fabric/forwarding/data_way.h"
#include "fabric/port_attributes.h"
#include "fabric/port_states.h"
#include "hca/layout/epoch.h"
#include "io/power_manager.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <vector>

namespace ib::drivers {
namespace {

using verbs::EventType;
using verbs::PortState;
using verbs::QpState;

// Posters look at the state of a queue pair before each request; its owner flushes it when kicked.
void break_queue_pair(Core& core, Qp& qp) {
  hca::QpEntry& entry = *core.arena().qp(qp.index);
  const QpState state = current_state(core, qp);
  if (state == QpState::Reset || state == QpState::Error) return;
  entry.geometry.error_detail.store(0, std::memory_order_relaxed);
  entry.geometry.error_cause.store(control::Cause::HcaRemoved, std::memory_order_release);
  entry.id.state.store(QpState::Error, std::memory_order_seq_cst);
  qp.attr.state = QpState::Error;
}

void on_start(HcaDevice& self) {
  fabric::Hca& hca = self.hca;
  hca.present = true;
  hca.asleep = false;
  train_links(self.core, hca);
  publish_ports(self.core, hca);
  raise_ca(self.core, hca, EventType::CaAdded);
}

void on_gone(HcaDevice& self, bool surprise) {
  if (self.removed) return;
  self.removed = true;
  self.hca.present = false;
  self.hca.asleep = false;
  publish_ports(self.core, self.hca);
  self.core.trace.add(fmt::format("HCA {} ({:#x}) was {}", name_of(self.core, self.hca),
                                  self.hca.node_guid, surprise ? "pulled out" : "removed"));
  if (surprise) retire_files(self.core, self.hca);
  for (fabric::Port& port : self.hca.ports) {
    set_capabilities(self.core, self.hca, port, port.capability_mask & ~fabric::kIsSm);
  }
  raise_ca(self.core, self.hca, EventType::CaRemoved);
  train_links(self.core, self.hca);
  kick_all(self.core);
}

void raise_ports(Core& core, const fabric::Hca& hca, EventType type) {
  for (const fabric::Port& port : hca.ports) {
    if (port.state == PortState::Active) raise_port(core, hca, port.number, type);
  }
}

void sleep(HcaDevice& self, io::IrpRef irp) {
  Core& core = self.core;
  self.hca.asleep = true;
  publish_ports(core, self.hca);
  core.trace.add(fmt::format("HCA {} sleeps", name_of(core, self.hca)), TraceKind::Device);
  raise_ports(core, self.hca, EventType::PortErr);
  train_links(core, self.hca);
  // Work requests that have begun end before the device is down.
  core.after_quiescence(
      hca::kAnyOwner, [&self, irp = std::move(irp)]() mutable { pass_down(self, std::move(irp)); });
}

void wake(HcaDevice& self) {
  if (!self.hca.asleep) return;
  self.hca.asleep = false;
  publish_ports(self.core, self.hca);
  self.core.trace.add(fmt::format("HCA {} is awake", name_of(self.core, self.hca)),
                      TraceKind::Device);
  raise_ports(self.core, self.hca, EventType::PortActive);
  train_links(self.core, self.hca);
  kick_all(self.core);
}

// The LIDs that a port had (by device memory, which others can write) lead to it no longer.
void forget_lids(Core& core, std::uint32_t port, std::uint32_t first) {
  constexpr std::uint32_t kMost = 128;  // LMC 7
  for (std::uint32_t i = 0; i < kMost; ++i) {
    hca::Shared32* const at = core.arena().lid(first + i);
    std::uint32_t number = port + 1;  // not that of another port, which may have the LID by now
    if (at == nullptr || at->load(std::memory_order_relaxed) != number) return;
    at->compare_exchange_strong(number, 0, std::memory_order_seq_cst);
  }
}

void write_ports(Core& core, const fabric::Hca& hca) {
  for (const fabric::Port& port : hca.ports) {
    const auto state = hca.present ? port.state : PortState::Down;
    const std::uint32_t index = hca.first_port + port.number - 1;
    hca::PortEntry& entry = *core.arena().port(index);
    entry.link_layer.store(port.link_layer, std::memory_order_relaxed);
    bool is_other = entry.lid != port.lid;
    if (is_other) forget_lids(core, index, entry.lid);
    forget_lids(core, index, port.lid + (1u << port.lmc));
    entry.lid = port.lid;
    for (std::uint32_t i = 0; i < entry.gids.size(); ++i) {
      const verbs::Gid gid = i < port.gids.size() ? port.gids[i].gid : verbs::Gid{};
      core.gid_chains.store(core.arena(), index, i, gid);
    }
    entry.segment.store(core.fabric.graph().segment_of(port), std::memory_order_relaxed);
    entry.has_switches.store(fabric::is_behind_switch(core.fabric.graph(), port) ? 1 : 0,
                             std::memory_order_relaxed);
    entry.mtu.store(port_attributes(port).active_mtu, std::memory_order_relaxed);
    for (std::size_t i = 0; i < entry.pkeys.size(); ++i) {
      const std::uint16_t pkey = i < port.pkeys.size() ? port.pkeys[i] : std::uint16_t{0};
      is_other |= entry.pkeys[i].exchange(pkey, std::memory_order_acq_rel) != pkey;
    }
    if (is_other) {
      follow_port(core, port);
      core.fabric.graph().mark_forwarding(core.fabric.graph().element_of(port));
    }
    for (std::uint32_t i = 0; port.lid != 0 && i < 1u << port.lmc; ++i) {
      core.arena().lid(port.lid + i)->store(index + 1, std::memory_order_release);
    }
    entry.state.store(hca.asleep ? hca::kPortAsleep : state, std::memory_order_seq_cst);
  }
}

}  // namespace

void publish_ports(Core& core, const fabric::Hca& hca) {
  const std::array one{&hca};
  publish_ports(core, one);
}

void publish_ports(Core& core, std::span<const fabric::Hca* const> hcas) {
  if (hcas.empty()) return;
  for (const fabric::Hca* hca : hcas) write_ports(core, *hca);
  resolve_flows(core, Resolve::Missing);
  hca::advance_epoch(core.arena(), hca::kAnyOwner);
  for (const fabric::Hca* hca : hcas) core.fabric.report_change(*hca);
}

void publish_all(Core& core) {
  std::vector<const fabric::Hca*> hcas;
  fabric::PortChanges changes;
  for (const fabric::Node& node : core.fabric.nodes()) {
    for (const fabric::Hca& hca : node.hcas) {
      hcas.push_back(&hca);
      for (fabric::Port& port : hca.ports) fabric::train(core.fabric, port, changes);
    }
  }
  publish_ports(core, hcas);
  apply_changes(core, changes);
}

void retire_files(Core& core, const fabric::Hca& hca) {
  for (const auto& [id, session] : core.sessions) {
    for (const auto& file : session->files) {
      if (file->hca != &hca || file->removed) continue;
      file->removed = true;
      for (const std::uint32_t index : file->of(Kind::Qp)) {
        Qp& qp = *core.qps.find(index);
        if (qp.dying) continue;
        expect_loss(core, qp, control::Cause::HcaRemoved, hca::kPeersHca);
        break_queue_pair(core, qp);
      }
      if (file->closing) continue;
      push_event(core, *session,
                 {EventType::DeviceFatal, control::EventObject::Device, file->number, 0, 0});
    }
  }
}

std::string users_of(Core& core, const fabric::Hca& hca) {
  std::string users;
  for (const auto& [id, session] : core.sessions) {
    const bool uses = std::any_of(
        session->files.begin(), session->files.end(),
        [&](const auto& file) { return file->hca == &hca && !file->closing && !file->removed; });
    if (uses) users = list(users, describe(*session));
  }
  return users;
}

void on_hca_pnp(io::DeviceObject& device, io::IrpRef irp) {
  auto& self = static_cast<HcaDevice&>(device);
  switch (static_cast<io::PnpMinor>(irp->code)) {
    case io::PnpMinor::Start: on_start(self); break;
    case io::PnpMinor::QueryRemove:
      if (const std::string users = users_of(self.core, self.hca); !users.empty()) {
        return fail(self.core, std::move(irp), Status::DeviceBusy,
                    fmt::format("HCA {} is in use by {}", self.hca.name, users));
      }
      break;
    case io::PnpMinor::Remove: on_gone(self, false); break;
    case io::PnpMinor::SurpriseRemoval: on_gone(self, true); break;
    case io::PnpMinor::CancelRemove:
    case io::PnpMinor::QueryDeviceRelations:
    case io::PnpMinor::QueryId: break;
  }
  pass_down(self, std::move(irp));
}

void on_hca_power(io::DeviceObject& device, io::IrpRef irp) {
  auto& self = static_cast<HcaDevice&>(device);
  const auto& request = *irp->parameters.get<io::PowerRequest>();
  if (request.is_system) return io::follow_system_power(self, std::move(irp));
  const bool set = irp->code == static_cast<std::uint32_t>(io::PowerMinor::Set);
  if (set && request.device == io::DevicePower::D3) return sleep(self, std::move(irp));
  if (set) wake(self);
  pass_down(self, std::move(irp));
}

}  // namespace ib::drivers
