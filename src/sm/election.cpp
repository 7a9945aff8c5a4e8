// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "sm/election.h"

namespace ib::sm {

SmInfo Election::info() const {
  SmInfo info;
  info.guid = guid_;
  info.sm_key = key_;
  info.activity = activity_;
  info.priority_state =
      static_cast<std::uint8_t>((priority_ & 15u) << 4 | static_cast<unsigned>(state_));
  return info;
}

Decision Election::stand_by(std::uint32_t port) {
  state_ = SmState::Standby;
  watched_ = port;
  successor_ = kNone;
  return {Step::Wait, port};
}

Decision Election::on_discovered(const std::vector<Rival>& rivals) {
  if (state_ == SmState::Standby || state_ == SmState::NotActive) return {};
  const Rival* best = nullptr;
  const Rival* master = nullptr;
  for (const Rival& rival : rivals) {
    if (rival.info.state() == SmState::NotActive) continue;
    if (best == nullptr || outranks(rival.info, best->info)) best = &rival;
    if (rival.info.state() != SmState::Master) continue;
    if (master == nullptr || outranks(rival.info, master->info)) master = &rival;
  }
  const bool has_better = best != nullptr && outranks(best->info, info());
  if (state_ == SmState::Discovering) {
    if (master != nullptr) return stand_by(master->port);
    if (has_better) return stand_by(best->port);
    state_ = SmState::Master;
    return {Step::SetUp};
  }
  successor_ = kNone;
  // Of two masters the lower one gives way, as soon as it has found the other one.
  const bool has_better_master = master != nullptr && outranks(master->info, info());
  if (!has_better_master && !has_better) {
    return {Step::SetUp, kNone, master != nullptr ? master->port : kNone};
  }
  successor_ = has_better_master ? master->port : best->port;
  return {Step::HandOver, successor_};
}

// The one that is watched has to be a master, or to become one: two that stand by for each other
// would wait for always.
Decision Election::on_poll(const SmInfo& info) {
  if (state_ != SmState::Standby) return {};
  const bool will_be_one = info.state() == SmState::Discovering && outranks(info, this->info());
  return info.state() == SmState::Master || will_be_one ? Decision{} : on_silence();
}

Decision Election::on_silence() {
  if (state_ != SmState::Standby) return {};
  state_ = SmState::Discovering;
  watched_ = kNone;
  return {Step::Sweep};
}

void Election::on_handed_over() {
  if (state_ == SmState::Master && successor_ != kNone) stand_by(successor_);
}

Verdict Election::on_control(std::uint32_t modifier, const SmInfo& sender, std::uint32_t from) {
  constexpr Verdict kRefused{mad::mad_status::kBadField};
  if (key_ != 0 && sender.sm_key != key_) return kRefused;
  switch (modifier) {
    case sm_control::kHandover:
      if (state_ == SmState::NotActive) return kRefused;
      state_ = SmState::Master;
      watched_ = kNone;
      return {.acknowledges = true, .sweeps = true};
    case sm_control::kAcknowledge:
      if (state_ == SmState::Standby) return {};
      if (state_ != SmState::Master || successor_ == kNone) return kRefused;
      stand_by(successor_);
      return {};
    case sm_control::kDisable:
      if (state_ != SmState::Standby) return kRefused;
      state_ = SmState::NotActive;
      watched_ = kNone;
      return {};
    case sm_control::kStandby:
      if (state_ != SmState::NotActive) return kRefused;
      stand_by(from);
      return {};
    case sm_control::kDiscover:
      if (state_ == SmState::NotActive) return kRefused;
      if (state_ == SmState::Standby) state_ = SmState::Discovering;
      return {.sweeps = true};
    default: return kRefused;
  }
}

}  // namespace ib::sm
