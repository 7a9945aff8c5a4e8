// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "services/sm/sm_service.h"

#include <bit>
#include <utility>

namespace ib::services {

SmService::SmService(fabric::Smi& smi, fabric::Fabric& fabric, platform::Executor& executor,
                     SetIsSm set_is_sm, const Options& options)
    : smi_(smi),
      fabric_(fabric),
      executor_(executor),
      set_is_sm_(std::move(set_is_sm)),
      port_(options.port),
      burst_(options.burst),
      manager_(options.settings, options.random) {
  set_is_sm_(*fabric_.graph().port(port_), true);
  work_at(executor_.now());
}

SmService::~SmService() {
  set_is_sm_(*fabric_.graph().port(port_), false);
}

void SmService::work_at(Instant when) {
  timer_ = executor_.at(when, [this] { work(); });
}

// Answers of agents come while their requests are being sent.
void SmService::work() {
  is_working_ = true;
  std::uint32_t left = burst_;
  while (left > 0) {
    const auto out = manager_.poll(executor_.now());
    if (!out) break;
    --left;
    fabric::PacketLids lids;
    if (out->lid != mad::kPermissiveLid) lids = {fabric_.graph().port(port_)->lid, out->lid};
    smi_.send(port_, lids, std::bit_cast<mad::Mad>(out->smp));
  }
  is_working_ = false;
  if (left == 0) return work_at(executor_.now());
  if (const auto due = manager_.deadline()) work_at(*due);
}

bool SmService::on_smp(std::uint32_t port, const fabric::PacketLids& lids, const mad::Mad& mad) {
  if (port != port_) return false;
  const bool is_ours = manager_.on_smp(std::bit_cast<mad::Smp>(mad), lids.source, executor_.now());
  if (is_ours && !is_working_) work_at(executor_.now());
  return is_ours;
}

void SmService::request_sweep(bool is_full) {
  manager_.request_sweep(is_full);
  work_at(executor_.now());
}

void SmService::look_at(std::uint64_t switch_guid) {
  manager_.look_at(switch_guid);
  if (!is_working_) work_at(executor_.now());
}

void SmService::set_priority(std::uint8_t priority) {
  manager_.set_priority(priority);
  work_at(executor_.now());
}

void SmService::set_groups(std::vector<sm::MulticastGroup> groups) {
  const bool is_at_rest = manager_.is_settled() && !is_working_;
  manager_.set_groups(std::move(groups));
  if (is_at_rest) return work();
  work_at(executor_.now());
}

}  // namespace ib::services
