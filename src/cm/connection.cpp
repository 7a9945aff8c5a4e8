// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The engine's states as the consumer sees them.
#include "cm/connection_internal.h"

namespace ib::cm {
namespace {

struct PublicState {
  State operator()(const state::ReqSent& s) const {
    return s.req.mra_received ? State::ReqSentMraReceived : State::ReqSent;
  }
  State operator()(const state::ReqReceived& s) const {
    return s.mra ? State::ReqReceivedMraSent : State::ReqReceived;
  }
  State operator()(const state::RepSent& s) const {
    return s.rep.mra_received ? State::RepSentMraReceived : State::RepSent;
  }
  State operator()(const state::RepReceived& s) const {
    return s.mra ? State::RepReceivedMraSent : State::RepReceived;
  }
  State operator()(const state::Established&) const { return State::Established; }
  State operator()(const state::DreqSent&) const { return State::DreqSent; }
  State operator()(const state::DreqReceived&) const { return State::DreqReceived; }
  State operator()(const state::TimeWait&) const { return State::TimeWait; }
  State operator()(const state::Refused&) const { return State::Closed; }
  State operator()(const state::Closed&) const { return State::Closed; }
};

template <class Change>
Change* path_change(Connection& connection) {
  auto* established = connection.in<state::Established>();
  if (established == nullptr || !established->path_change) return nullptr;
  return std::get_if<Change>(established->path_change.get());
}

}  // namespace

KeptMad keep(const mad::Mad& mad) {
  return std::make_unique<const mad::Mad>(mad);
}

State Connection::public_state() const {
  return std::visit(PublicState(), state);
}
Waiting Connection::waiting() const {
  if (const auto* s = std::get_if<state::ReqSent>(&state)) return s->req.waiting();
  if (const auto* s = std::get_if<state::RepSent>(&state)) return s->rep.waiting();
  if (const auto* s = std::get_if<state::DreqSent>(&state)) return s->dreq.waiting();
  return {};
}
state::LapSent* Connection::lap_sent() {
  return path_change<state::LapSent>(*this);
}
state::LapReceived* Connection::lap_received() {
  return path_change<state::LapReceived>(*this);
}
state::LapAnswered* Connection::lap_answered() {
  return path_change<state::LapAnswered>(*this);
}

}  // namespace ib::cm
