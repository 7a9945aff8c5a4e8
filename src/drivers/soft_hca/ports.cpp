// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Changes of ports, by whoever they are made, become known: to posters, to programs, in the trace.
#include "drivers/soft_hca/events.h"
#include "drivers/soft_hca/handlers.h"
#include "drivers/soft_hca/hca_device.h"
#include "drivers/soft_hca/objects/connection_paths.h"
#include "fabric/port_states.h"
#include "fabric/subnet_setup.h"

#include <fmt/format.h>

#include <set>
#include <string>
#include <vector>

namespace ib::drivers {
namespace {

constexpr std::uint32_t kResetQkeyCounter = 1;
constexpr std::uint32_t kInitType = 2;
constexpr std::uint32_t kShutdown = 4;
// Bits that a consumer may set: IsSM, IsCommunicationManagementSupported, IsSNMPTunnelingSupported,
// IsDeviceManagementSupported, IsVendorClassSupported [IBA1 14.2.5.6].
constexpr std::uint32_t kSettable =
    fabric::kIsSm | (1u << 16) | (1u << 17) | (1u << 19) | (1u << 20);

// Armed queue pairs whose port is down go to their alternate path.
void migrate_from(Core& core, const fabric::Hca& hca, std::uint32_t number) {
  core.qps.for_each([&](Qp& qp) {
    const bool here = qp.file->hca == &hca && qp.attr.port == number && !qp.dying &&
                      qp.attr.mig_state == verbs::MigState::Armed && qp.attr.alt_port != number;
    if (here) migrate(core, qp);
  });
}

const char* state_words(const fabric::Port& port) {
  if (port.physical_state == fabric::kPolling) {
    return "down: the other end of its cable is silent, or enables other widths or speeds";
  }
  if (port.physical_state != fabric::kLinkUp) return "down";
  return port.state == verbs::PortState::Active ? "up" : "up, and waits for a subnet manager";
}

void trace_state(Core& core, const fabric::Port& port) {
  const fabric::Hca* hca = core.fabric.hca_of(port);
  const std::string owner = hca != nullptr
                                ? name_of(core, *hca)
                                : "switch " + core.fabric.graph().element_of(port).description;
  const bool has_lid = hca != nullptr && !port.is_ethernet();
  core.trace.add(fmt::format("port {} of {}{} is {}", port.number, owner,
                             has_lid ? fmt::format(" (LID {})", port.lid) : "", state_words(port)));
}

bool is_active(verbs::PortState state) {
  return state == verbs::PortState::Active;
}

// Programs get an event of each change that they can see.
void raise_events(Core& core, const fabric::Hca& hca, const fabric::Port& port,
                  const fabric::PortChange& change) {
  using verbs::EventType;
  namespace what = fabric::change;
  const auto raise = [&](std::uint32_t bit, EventType type) {
    if ((change.what & bit) != 0) raise_port(core, hca, port.number, type);
  };
  raise(what::kLid, EventType::LidChange);
  raise(what::kManager, EventType::SmChange);
  raise(what::kPkeys, EventType::PkeyChange);
  raise(what::kGids, EventType::GidChange);
  raise(what::kReregister, EventType::ClientReregister);
  const bool was = is_active(change.before);
  if ((change.what & what::kState) == 0 || was == is_active(port.state)) return;
  raise_port(core, hca, port.number, was ? EventType::PortErr : EventType::PortActive);
  if (was) migrate_from(core, hca, port.number);
}

}  // namespace

void kick_all(Core& core) {
  for (std::uint32_t slot = 0; slot < core.by_slot.size(); ++slot) {
    if (core.by_slot[slot] != nullptr) core.memory.kick(slot);
  }
}

void apply_changes(Core& core, const fabric::PortChanges& changes) {
  std::set<const fabric::Hca*> hcas;
  bool is_rerouted = false;
  bool is_moved = false;
  bool is_cut = false;  // at once, so that nothing passes that comes after the change
  for (const fabric::PortChange& change : changes) {
    const fabric::Port& port = *core.fabric.graph().port(change.port);
    const fabric::Hca* hca = core.fabric.hca_of(port);
    if ((change.what & fabric::change::kState) != 0) trace_state(core, port);
    is_rerouted |= (change.what & fabric::change::kSegment) != 0;
    is_cut |= is_active(change.before) && !is_active(port.state);
    is_moved |=
        is_active(change.before) != is_active(port.state) || change.what != fabric::change::kState;
    if (hca != nullptr) hcas.insert(hca);
  }
  publish_ports(core, std::vector(hcas.begin(), hcas.end()));
  if (is_rerouted) resolve_flows(core, Resolve::All);
  if (is_cut) follow_forwarding(core);
  for (const fabric::PortChange& change : changes) {
    const fabric::Port& port = *core.fabric.graph().port(change.port);
    const fabric::Hca* hca = core.fabric.hca_of(port);
    // Programs get the events of one that sleeps when it wakes up.
    if (hca != nullptr && !hca->asleep) raise_events(core, *hca, port, change);
  }
  if (is_moved) kick_all(core);
  if (core.on_port_changes) core.on_port_changes(changes);
}

void set_port_state(Core& core, fabric::Port& port, bool up) {
  fabric::PortChanges changes;
  fabric::set_enabled(core.fabric, port, up, changes);
  apply_changes(core, changes);
}

void train_links(Core& core, const fabric::Hca& hca) {
  fabric::PortChanges changes;
  for (fabric::Port& port : hca.ports) fabric::train(core.fabric, port, changes);
  apply_changes(core, changes);
}

void set_capabilities(Core& core, const fabric::Hca& hca, fabric::Port& port, std::uint32_t mask) {
  const std::uint32_t changed = port.capability_mask ^ mask;
  if (changed == 0) return;
  core.fabric.set_capabilities(port, mask);
  fabric::PortChanges changes{
      {core.fabric.graph().index_of(port), fabric::change::kCapabilities, verbs::PortState::Nop}};
  const bool is_manager_gone = (changed & ~mask & fabric::kIsSm) != 0;
  if (is_manager_gone) fabric::take_over(core.fabric, port, changes);
  apply_changes(core, changes);
  core.fabric.report_change(hca);
}

void modify_port(Core& core, HcaFile& file, const control::ModifyPortIn& in, io::IrpRef irp) {
  fabric::Port* port = find_port(file, in.port);
  if (port == nullptr) {
    return fail(core, std::move(irp), Status::InvalidParameter, no_such_port(file, in.port));
  }
  const std::uint32_t changed = in.set_cap_mask | in.clear_cap_mask;
  if ((changed & ~kSettable) != 0 ||
      (in.flags & ~(kResetQkeyCounter | kInitType | kShutdown)) != 0) {
    return fail(core, std::move(irp), Status::InvalidParameter,
                fmt::format("capability bits {:#x}, flags {:#x}: not for a program to change",
                            changed & ~kSettable, in.flags));
  }
  if ((in.flags & kInitType) != 0) {
    return fail(core, std::move(irp), Status::NotSupported, "this HCA has no InitType");
  }
  set_capabilities(core, *file.hca, *port,
                   (port->capability_mask | in.set_cap_mask) & ~in.clear_cap_mask);
  if ((in.flags & kShutdown) != 0) set_port_state(core, *port, false);
  succeed(std::move(irp));
}

}  // namespace ib::drivers
