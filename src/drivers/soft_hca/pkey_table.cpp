// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "drivers/soft_hca/pkey_table.h"

#include "drivers/ib_bus/ib_bus.h"
#include "drivers/soft_hca/events.h"
#include "drivers/soft_hca/hca_device.h"

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
    reason = say("\"", name, "\": names of partitions begin with i (IPoIB) or e (Ethernet)");
    return Status::InvalidParameter;
  }
  if ((pkey & kBase) == 0) {
    reason = say("P_Key ", hex(pkey), " names no partition");
    return Status::InvalidParameter;
  }
  for (const std::uint16_t known : port.pkeys) {
    if (!same_partition(known, pkey)) continue;
    reason = say("port ", port.number, " of ", hca.name, " has P_Key ", hex(known), " already");
    return Status::AlreadyExists;
  }
  for (const fabric::Partition& partition : port.partitions) {
    if (partition.name != name) continue;
    reason = say("port ", port.number, " of ", hca.name, " has a partition ", name, " already");
    return Status::AlreadyExists;
  }
  if (port.partitions.size() >= kMaxPartitions) {
    reason = say("a port has at most ", kMaxPartitions, " extra partitions");
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
  core.trace.add(say("port ", port.number, " of ", hca.name, " is in partition ", hex(pkey), " (",
                     name, ") now"));
  raise_port(core, hca, port.number, verbs::EventType::PkeyChange);
  return Status::Ok;
}

Status may_remove_partition(Core& core, const fabric::Hca& hca, const fabric::Port& port,
                            std::uint16_t pkey, std::string& reason) {
  const bool known =
      std::any_of(port.partitions.begin(), port.partitions.end(),
                  [&](const fabric::Partition& partition) { return partition.pkey == pkey; });
  if (!known) {
    reason = say("port ", port.number, " of ", hca.name, " has no extra partition ", hex(pkey));
    return Status::NotFound;
  }
  std::set<const Session*> users;
  core.qps.for_each([&](const Qp& qp) {
    const bool here = qp.file->hca == &hca && qp.attr.port == port.number && !qp.dying &&
                      qp.attr.pkey_index < port.pkeys.size() &&
                      port.pkeys[qp.attr.pkey_index] == pkey &&
                      qp.attr.state != verbs::QpState::Reset;
    if (here) users.insert(qp.file->session);
  });
  if (users.empty()) return Status::Ok;
  std::string names;
  for (const Session* user : users) names = list(names, describe(*user));
  reason = say("queue pairs use P_Key ", hex(pkey), ": ", names);
  return Status::DeviceBusy;
}

void remove_partition(Core& core, const fabric::Hca& hca, fabric::Port& port, std::uint16_t pkey) {
  std::replace(port.pkeys.begin(), port.pkeys.end(), pkey, std::uint16_t{0});
  // Index 0 is always there, so the table never gets empty.
  while (port.pkeys.back() == 0) port.pkeys.pop_back();
  std::erase_if(port.partitions,
                [&](const fabric::Partition& partition) { return partition.pkey == pkey; });
  publish_ports(core, hca);
  core.trace.add(say("port ", port.number, " of ", hca.name, " left partition ", hex(pkey)));
  raise_port(core, hca, port.number, verbs::EventType::PkeyChange);
}

}  // namespace ib::drivers
