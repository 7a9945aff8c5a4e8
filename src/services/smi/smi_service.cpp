// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "services/smi/smi_service.h"

#include "fabric/source_lid.h"
#include "mad/smp.h"
#include "services/smi/traps.h"

#include <algorithm>
#include <bit>
#include <set>
#include <utility>

namespace ib::services {
namespace {

constexpr int kMostSent = 10;
constexpr std::size_t kMostTraps = 4096;  // under way

// SubnetTimeOut [IBA1 14.2.5.6]: the least time between two traps, 4.096 us * 2^n.
Duration trap_period(const fabric::Port& port) {
  return std::chrono::nanoseconds(4096) * (std::int64_t{1} << (port.subnet_timeout & 31));
}

}  // namespace

SmiService::SmiService(fabric::Smi& smi, fabric::Fabric& fabric, platform::Executor& executor,
                       UmadService& umad)
    : smi_(smi), fabric_(fabric), executor_(executor), umad_(umad) {
  smi_.set_receiver(this);
  umad_.set_subnet(this);
}

SmiService::~SmiService() {
  smi_.set_receiver(nullptr);
  umad_.set_subnet(nullptr);
}

// A directed route that begins here leaves with the permissive LID as its source, one that is first
// to go by LID with that of the port.
void SmiService::send(const GsiAddress& to, const mad::Mad& mad) {
  const fabric::Port* from = fabric_.graph().port(to.port);
  if (from == nullptr || from->is_ethernet()) return;
  fabric::PacketLids lids;
  lids.destination = to.remote.lid;
  if (lids.destination != mad::kPermissiveLid)
    lids.source = fabric::source_lid(*from, to.remote.path_bits);
  smi_.send(to.port, lids, mad);
}

bool SmiService::on_smp(std::uint32_t port, const fabric::PacketLids& lids, const mad::Mad& mad) {
  const auto header = std::bit_cast<mad::Smp>(mad).header;
  if (header.method == mad::method::kTrapRepress) {
    const auto trap = traps_.find(header.transaction_id);
    if (trap != traps_.end()) {
      traps_.erase(trap);
      return true;
    }
  }
  if (local_manager_ != nullptr && local_manager_->on_smp(port, lids, mad)) return true;
  GsiAddress from;
  from.port = port;
  from.remote.lid = lids.source;
  const fabric::Port* own = fabric_.graph().port(port);
  if (own != nullptr && own->has_lid(lids.destination)) {
    from.remote.path_bits = static_cast<std::uint8_t>(lids.destination - own->lid);
  }
  return umad_.on_smp(from, mad);
}

void SmiService::on_bad_key(std::uint32_t port, const fabric::PacketLids& lids,
                            const mad::Mad& mad) {
  const fabric::Port& from = fabric_.graph().end_port_of(*fabric_.graph().port(port));
  raise(from, bad_m_key_notice(from.lid, lids.source, std::bit_cast<mad::Smp>(mad)));
}

void SmiService::on_changes(const fabric::PortChanges& changes) {
  std::set<const fabric::Port*> switches;
  for (const fabric::PortChange& change : changes) {
    const fabric::Port& port = *fabric_.graph().port(change.port);
    const fabric::Port& sender = std::as_const(fabric_).graph().end_port_of(port);
    const bool is_of_switch = fabric_.graph().element_of(port).is_switch();
    const bool is_link =
        (change.what & fabric::change::kState) != 0 &&
        (change.before == verbs::PortState::Down || port.state == verbs::PortState::Down ||
         port.state == verbs::PortState::Init);
    if (is_of_switch && is_link && switches.insert(&sender).second) {
      raise(sender, link_state_notice(sender.lid));
    }
    if ((change.what & fabric::change::kCapabilities) != 0) {
      raise(port, sa::capability_notice(port.lid, port.gid(), port.capability_mask));
    }
    raise_link_errors(port, change.what);
  }
}

void SmiService::raise_link_errors(const fabric::Port& port, std::uint32_t what) {
  const fabric::Graph& graph = fabric_.graph();
  const auto raise_if = [&](std::uint32_t bit, std::uint16_t trap) {
    if ((what & bit) == 0) return;
    raise_once(port, link_error_notice(trap, graph.element_of(port).is_switch(),
                                       graph.end_port_of(port).lid, port.number));
  };
  raise_if(fabric::change::kLinkIntegrity, sa::trap::kLinkIntegrity);
  raise_if(fabric::change::kBufferOverrun, sa::trap::kBufferOverrun);
  raise_if(fabric::change::kFlowControl, sa::trap::kFlowControl);
}

void SmiService::on_key_violation(const fabric::KeyViolation& violation, const fabric::Port& at) {
  raise_once(at, bad_key_notice(fabric_.graph(), violation, at));
}

void SmiService::raise_once(const fabric::Port& about, const sa::Notice& notice) {
  const std::uint32_t index = fabric_.graph().index_of(about);
  const bool is_under_way = std::ranges::any_of(traps_, [&](const auto& entry) {
    return entry.second.number == notice.trap && entry.second.about == index;
  });
  if (is_under_way) return;
  const std::uint64_t before = last_tid_;
  raise(std::as_const(fabric_).graph().end_port_of(about), notice);
  if (last_tid_ != before) traps_.at(last_tid_).about = index;
}

void SmiService::raise(const fabric::Port& from, const sa::Notice& notice) {
  const bool has_manager = from.sm_lid != 0 && from.lid != 0 && !fabric_.is_managed_here(from);
  if (!has_manager || traps_.size() >= kMostTraps) return;
  const std::uint64_t tid = ++last_tid_;
  Trap& trap = traps_[tid];
  trap.port = fabric_.graph().index_of(from);
  trap.number = notice.trap;
  trap.mad = trap_smp(notice, tid);
  // From the executor: the change that it tells of is not over yet.
  trap.timer = executor_.at(executor_.now(), [this, tid] { transmit(tid); });
}

void SmiService::transmit(std::uint64_t tid) {
  Trap& trap = traps_.at(tid);
  const fabric::Port& from = *fabric_.graph().port(trap.port);
  const bool is_wanted = from.sm_lid != 0 && !fabric_.is_managed_here(from);
  if (!is_wanted || trap.sent == kMostSent) {
    traps_.erase(tid);
    return;
  }
  ++trap.sent;
  trap.timer = executor_.at(executor_.now() + trap_period(from), [this, tid] { transmit(tid); });
  smi_.send(trap.port, {from.lid, from.sm_lid}, mad::Mad(trap.mad));  // it may be repressed now
}

}  // namespace ib::services
