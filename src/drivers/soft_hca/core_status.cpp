// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "drivers/soft_hca/core_status.h"

#include "drivers/soft_hca/handlers.h"
#include "drivers/soft_hca/objects/traffic.h"
#include "fabric/port_attributes.h"

namespace ib::drivers {
namespace {

using verbs::PortState;

constexpr std::uint8_t kPhysicalSleep = 1;  // PortPhysicalState [IBA1 14.2.5.6]

}  // namespace

control::CaAttr CoreStatus::ca(const fabric::Hca& hca) const {
  return ca_attributes(hca);
}

control::PortAttr CoreStatus::port(const fabric::Hca& hca, const fabric::Port& port) const {
  control::PortAttr attr = port_attributes(port);
  if (hca.asleep) {
    attr.state = PortState::Down;
    attr.phys_state = kPhysicalSleep;
  }
  return attr;
}

DeviceCounters CoreStatus::counters(const fabric::Hca& hca, const fabric::Port& port) const {
  const PortTotals::Served served = port_totals(core_, hca.first_port + port.number - 1).served;
  return {core_.gmp_agents.perf().counters(port), served.writes, served.reads, served.atomics};
}

}  // namespace ib::drivers
