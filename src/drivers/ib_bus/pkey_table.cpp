// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "drivers/ib_bus/pkey_table.h"

#include "drivers/ib_bus/ib_bus.h"
#include "drivers/soft_hca/events.h"
#include "drivers/soft_hca/hca_device.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace ib::drivers {
namespace {

constexpr std::uint16_t kBase = 0x7fff;  // without the bit for full membership

bool same_partition(std::uint16_t a, std::uint16_t b) {
  return (a & kBase) == (b & kBase);
}

}  // namespace

Status add_partition(Core& core, const fabric::Hca& hca, fabric::Port& port, std::uint16_t pkey,
                     std::string_view name, std::string& reason) {
  if (!is_child_name(name, reason)) return Status::InvalidParameter;
  if (name.front() != 'i' && name.front() != 'e') {
    reason = fmt::format("\"{}\": names of partitions begin with i (IPoIB) or e (Ethernet)", name);
    return Status::InvalidParameter;
  }
  if (port.is_ethernet()) {
    reason = fmt::format("port {} of {} is an Ethernet port: it has the default partition only",
                         port.number, hca.name);
    return Status::NotSupported;
  }
  if ((pkey & kBase) == 0) {
    reason = fmt::format("P_Key {:#x} names no partition", pkey);
    return Status::InvalidParameter;
  }
  for (const std::uint16_t known : port.pkeys) {
    if (!same_partition(known, pkey)) continue;
    reason = fmt::format("port {} of {} has P_Key {:#x} already", port.number, hca.name, known);
    return Status::AlreadyExists;
  }
  for (const fabric::Partition& partition : port.partitions) {
    if (partition.name != name) continue;
    reason = fmt::format("port {} of {} has a partition {} already", port.number, hca.name, name);
    return Status::AlreadyExists;
  }
  if (port.partitions.size() >= kMaxPartitions) {
    reason = fmt::format("a port has at most {} extra partitions", kMaxPartitions);
    return Status::LimitExceeded;
  }
  const auto free = std::find(port.pkeys.begin(), port.pkeys.end(), std::uint16_t{0});
  if (free != port.pkeys.end()) {
    *free = pkey;
  } else {
    port.pkeys.push_back(pkey);
  }
  port.partitions.push_back({pkey, std::string(name)});
  publish_ports(core, hca);
  core.trace.add(fmt::format("port {} of {} is in partition {:#x} ({}) now", port.number, hca.name,
                             pkey, name));
  raise_port(core, hca, port.number, verbs::EventType::PkeyChange);
  return Status::Ok;
}

Status may_remove_partition(Core& core, const fabric::Hca& hca, const fabric::Port& port,
                            std::uint16_t pkey, std::string& reason) {
  const bool known =
      std::any_of(port.partitions.begin(), port.partitions.end(),
                  [&](const fabric::Partition& partition) { return partition.pkey == pkey; });
  if (!known) {
    reason = fmt::format("port {} of {} has no extra partition {:#x}", port.number, hca.name, pkey);
    return Status::NotFound;
  }
  std::set<const Session*> users;
  core.qps.for_each([&](const Qp& qp) {
    if (qp.file->session->wants_ca_events) return;
    const bool here = qp.file->hca == &hca && qp.attr.port == port.number && !qp.dying &&
                      qp.attr.pkey_index < port.pkeys.size() &&
                      port.pkeys[qp.attr.pkey_index] == pkey &&
                      qp.attr.state != verbs::QpState::Reset;
    if (here) users.insert(qp.file->session);
  });
  if (users.empty()) return Status::Ok;
  std::string names;
  for (const Session* user : users) names = list(names, describe(*user));
  reason = fmt::format("queue pairs use P_Key {:#x}: {}", pkey, names);
  return Status::DeviceBusy;
}

void remove_partition(Core& core, const fabric::Hca& hca, fabric::Port& port, std::uint16_t pkey) {
  std::replace(port.pkeys.begin(), port.pkeys.end(), pkey, std::uint16_t{0});
  // Index 0 is always there, so the table never gets empty.
  while (port.pkeys.back() == 0) port.pkeys.pop_back();
  std::erase_if(port.partitions,
                [&](const fabric::Partition& partition) { return partition.pkey == pkey; });
  publish_ports(core, hca);
  core.trace.add(fmt::format("port {} of {} left partition {:#x}", port.number, hca.name, pkey));
  raise_port(core, hca, port.number, verbs::EventType::PkeyChange);
}

}  // namespace ib::drivers
