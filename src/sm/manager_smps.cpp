// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// SMPs that come to a manager: answers, SMInfo of other managers, and traps.
#include "sa/records/notice.h"
#include "sm/manager.h"
#include "sm/sweep/port_setup.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>

namespace ib::sm {

namespace attribute = mad::smp_attribute;

bool Manager::on_smp(const mad::Smp& smp, std::uint16_t source, Instant now) {
  const mad::MadHeader& header = smp.header;
  if (mad::is_response(header.method)) {
    const auto request = window_.close(smp);
    if (!request) return false;
    const Answer answer{static_cast<std::uint16_t>(header.status & ~mad::kDirectionBit), smp.data};
    dispatch(*request, &answer, now);
    return true;
  }
  if (header.method == mad::method::kTrap && header.attribute == attribute::kNotice) {
    return on_trap(smp, source);
  }
  if (header.attribute != attribute::kSmInfo) return false;
  if (!election_.has_guid()) return true;  // it has no rank so far
  if (header.method == mad::method::kGet) {
    outbox_.push_back(answer_to(smp, source, mad::mad_status::kOk, own_info()));
    return true;
  }
  return header.method == mad::method::kSet && on_control(smp, source, now);
}

void Manager::on_sm_info(const Request& request, const Answer* answer, Instant now) {
  const bool is_answered = answer != nullptr && answer->status == mad::mad_status::kOk;
  if (request.method == mad::method::kSet) {
    if (is_answered && request.modifier == sm_control::kHandover) {
      election_.on_handed_over();
      if (state() == SmState::Standby) begin_state(false, now);
      return;
    }
    // Nobody takes over.
    if (!is_answered && state() == SmState::Master && phase_ == Phase::Idle) {
      is_partial_ = false;
      begin_setup();
    }
    return;
  }
  if (!clock_.is_polling) {
    if (is_answered) heard_.push_back({request.port, read<SmInfo>(answer->data)});
    return;
  }
  clock_.missed = is_answered ? 0 : clock_.missed + 1;
  Decision decision;
  if (is_answered) {
    decision = election_.on_poll(read<SmInfo>(answer->data));
  } else if (clock_.missed >= settings_.polls) {
    decision = election_.on_silence();
  }
  if (decision.step != Step::Sweep) return;
  clock_.is_polling = false;
  clock_.missed = 0;
  follow(decision, now);
}

bool Manager::on_control(const mad::Smp& smp, std::uint16_t source, Instant now) {
  const auto sender = read<SmInfo>(smp.data);
  const std::uint32_t from = subnet_.find_port(sender.guid);
  const Verdict verdict = election_.on_control(smp.header.modifier, sender, from);
  outbox_.push_back(answer_to(smp, source, verdict.status, own_info()));
  if (verdict.status != mad::mad_status::kOk) return true;
  if (verdict.acknowledges) {
    // Nobody can say what the other one has written.
    forget_writes();
    if (auto out =
            request_back(smp, source, mad::method::kSet, sm_control::kAcknowledge, own_info())) {
      outbox_.push_back(*std::move(out));
    }
  }
  const bool is_waiting = state() == SmState::Standby || state() == SmState::NotActive;
  if (!verdict.sweeps && !is_waiting) return true;
  begin_state(verdict.sweeps, now);
  return true;
}

// All that is under way was for another state.
void Manager::begin_state(bool sweeps, Instant now) {
  window_.clear();
  clock_.is_polling = false;
  clock_.missed = 0;
  wanted_.full = sweeps;
  rest(now, sweeps ? Duration::zero() : settings_.poll_interval);
}

// Each trap is repressed; a master looks where something has changed.
bool Manager::on_trap(const mad::Smp& smp, std::uint16_t source) {
  if (state() != SmState::Master || source == mad::kPermissiveLid) return false;
  const auto notice = sa::decode_some<sa::Notice>(std::as_bytes(std::span(smp.data)));
  const std::uint32_t holder = lids_.holder(notice.issuer_lid);
  const bool is_known = holder != kNone && subnet_.is_served(subnet_.port(holder));
  const std::uint32_t port = is_known ? holder : kNone;
  Outgoing out{smp, source};
  out.smp.header.method = mad::method::kTrapRepress;
  out.smp.m_key = key_for(subnet_, settings_, port);
  outbox_.push_back(out);
  if (!notice.is_generic) return true;
  switch (notice.trap) {
    case sa::trap::kLinkStateChanged:
      look_at_node(port != kNone ? subnet_.port(port).node : kNone);
      break;
    case sa::trap::kCapabilitiesChanged:
      wanted_.light = true;
      if (port != kNone) wanted_.ports.push_back(port);
      break;
    default:
      problems_.add({ProblemKind::Trap,
                     port != kNone ? subnet_.node_of(subnet_.port(port)).guid() : 0, notice.trap,
                     fmt::format("trap {} of {}", notice.trap,
                                 port != kNone ? subnet_.name_of(subnet_.port(port))
                                               : fmt::format("LID {}", notice.issuer_lid))});
  }
  return true;
}

void Manager::look_at(std::uint64_t switch_guid) {
  look_at_node(subnet_.find(switch_guid));
}

// The switches at both ends of a link tell at about the same time.
void Manager::look_at_node(std::uint32_t node) {
  const bool is_known = node != kNone && subnet_.node(node).is_there;
  if (!is_known || state() != SmState::Master) {
    wanted_.light = true;
  } else if (phase_ == Phase::Discovering && discovery_.is_narrow()) {
    discovery_.look_at(node);
  } else if (std::ranges::find(wanted_.switches, node) == wanted_.switches.end()) {
    wanted_.switches.push_back(node);
  }
}

}  // namespace ib::sm
