// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Ports going up and down, also with the other end of their cable, and their capability mask
// [IBA1 11.2.1.5].
#include "drivers/soft_hca/events.h"
#include "drivers/soft_hca/handlers.h"
#include "drivers/soft_hca/hca_device.h"
#include "drivers/soft_hca/objects/path_migration.h"

#include <fmt/format.h>

namespace ib::drivers {
namespace {

constexpr std::uint32_t kResetQkeyCounter = 1;
constexpr std::uint32_t kInitType = 2;
constexpr std::uint32_t kShutdown = 4;
// Bits that a consumer may set: IsSM, IsCommunicationManagementSupported, IsSNMPTunnelingSupported,
// IsDeviceManagementSupported, IsVendorClassSupported [IBA1 14.2.5.6].
constexpr std::uint32_t kSettable = (1u << 1) | (1u << 16) | (1u << 17) | (1u << 19) | (1u << 20);

// Armed queue pairs whose port is down go to their alternate path.
void migrate_from(Core& core, const fabric::Hca& hca, std::uint32_t number) {
  core.qps.for_each([&](Qp& qp) {
    const bool here = qp.file->hca == &hca && qp.attr.port == number && !qp.dying &&
                      qp.attr.mig_state == verbs::MigState::Armed && qp.attr.alt_port != number;
    if (here) migrate(core, qp);
  });
}

// Whether a port answers the other end of its cable.
bool answers(const Core& core, const fabric::Port& port) {
  const fabric::Hca* hca = core.fabric.hca_of(port);
  return hca != nullptr && hca->present && !hca->asleep && port.physical_state != fabric::kDisabled;
}

// The physical state of a port that nobody has taken down.
std::uint8_t trained_state(const Core& core, const fabric::Port& port) {
  const fabric::Port* peer = core.fabric.graph().peer_of(port);
  return peer == nullptr || answers(core, *peer) ? fabric::kLinkUp : fabric::kPolling;
}

// Gives a port its physical state, and the state that follows from it. Posters see a change, and
// programs get an event.
void change_state(Core& core, fabric::Hca& hca, fabric::Port& port, std::uint8_t physical) {
  const bool up = physical == fabric::kLinkUp;
  const auto state = up ? verbs::PortState::Active : verbs::PortState::Down;
  const bool same = port.state == state;
  if (same && port.physical_state == physical) return;
  port.state = state;
  port.physical_state = physical;
  const char* now = up                             ? "up"
                    : physical == fabric::kPolling ? "down: the other end of its cable is silent"
                                                   : "down";
  core.trace.add(fmt::format("port {} of {}{} is {}", port.number, name_of(core, hca),
                             port.is_ethernet() ? "" : fmt::format(" (LID {})", port.lid), now));
  if (same) return;
  publish_ports(core, hca);
  if (hca.asleep) return;  // programs get the event when it wakes up
  raise_port(core, hca, port.number, up ? verbs::EventType::PortActive : verbs::EventType::PortErr);
  if (!up) migrate_from(core, hca, port.number);
  kick_all(core);
}

// After a change at the other end of its cable.
void train(Core& core, fabric::Port& port) {
  fabric::Hca& hca = *core.fabric.hca_of(port);
  if (!hca.present || port.physical_state == fabric::kDisabled) return;
  change_state(core, hca, port, trained_state(core, port));
}

void train_peer(Core& core, const fabric::Port& port) {
  if (fabric::Port* peer = core.fabric.graph().peer_of(port); peer != nullptr) train(core, *peer);
}

}  // namespace

void kick_all(Core& core) {
  for (std::uint32_t slot = 0; slot < core.by_slot.size(); ++slot) {
    if (core.by_slot[slot] != nullptr) core.memory.kick(slot);
  }
}

void set_port_state(Core& core, fabric::Hca& hca, fabric::Port& port, bool up) {
  if (up == (port.physical_state != fabric::kDisabled)) return;
  change_state(core, hca, port, up ? trained_state(core, port) : fabric::kDisabled);
  train_peer(core, port);
}

void train_links(Core& core, fabric::Hca& hca) {
  for (fabric::Port& port : hca.ports) {
    train(core, port);
    train_peer(core, port);
  }
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
  port->capability_mask = (port->capability_mask | in.set_cap_mask) & ~in.clear_cap_mask;
  if (changed != 0) core.fabric.report_change(*file.hca);
  if ((in.flags & kShutdown) != 0) set_port_state(core, *file.hca, *port, false);
  succeed(std::move(irp));
}

}  // namespace ib::drivers
