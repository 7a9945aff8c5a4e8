// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "fabric/port_states.h"

#include "fabric/subnet_setup.h"
#include "mad/link_ability.h"

namespace ib::fabric {
namespace {

using verbs::PortState;

// Whether a port answers the other end of its cable.
bool answers(const Fabric& fabric, const Port& port) {
  if (port.physical_state == kDisabled) return false;
  const Element& element = fabric.graph().element_of(port);
  if (element.is_switch()) return element.has_power;
  const Hca& hca = *fabric.find_hca(element.hca);
  return hca.present && !hca.asleep;
}

mad::LinkAbility enabled_at(const Port& port) {
  return mad::enabled_of(mad::ability_of({port.best_width, port.best_speed}), port.settings);
}

// That the two ends of its cable agree on.
std::optional<mad::LinkRate> rate_of_link(const Fabric& fabric, const Port& port) {
  const Port* peer = fabric.graph().peer_of(port);
  return mad::common_rate(enabled_at(port), enabled_at(peer != nullptr ? *peer : port));
}

// The physical state of a port that nobody has taken down.
std::uint8_t trained_state(const Fabric& fabric, const Port& port) {
  const Port* peer = fabric.graph().peer_of(port);
  if (peer == nullptr) {
    const bool needs_cable =
        fabric.graph().element_of(port).is_switch() || !fabric.graph().has_ideal_network();
    return needs_cable ? kPolling : kLinkUp;
  }
  return answers(fabric, *peer) && rate_of_link(fabric, port) ? kLinkUp : kPolling;
}

// The link has trained: the state it is in then.
PortState begin_link(const Fabric& fabric, Port& port) {
  if (const auto rate = rate_of_link(fabric, port)) {
    port.width = rate->width;
    port.speed = rate->speed;
  }
  return port.is_ethernet() || fabric.is_managed_here(port) ? PortState::Active : PortState::Init;
}

void note(Fabric& fabric, const Port& port, PortState before, PortChanges& changes) {
  fabric.graph().mark_forwarding(fabric.graph().element_of(port));
  changes.push_back({fabric.graph().index_of(port), change::kState, before});
}

// A port goes down or comes up, without a manager that sets its state [IBA1 14.2.5.4].
void tell_manager(Graph& graph, const Port& port) {
  const Element& element = graph.element_of(port);
  if (element.is_switch()) graph.switch_of(element).facts.port_state_change = true;
}

// A cable between switches has come or gone: others reach each other.
void follow_cable(Fabric& fabric, const Port& port, PortChanges& changes) {
  Graph& graph = fabric.graph();
  const Port* peer = graph.peer_of(port);
  if (!graph.element_of(port).is_switch()) return;
  if (peer == nullptr || !graph.element_of(*peer).is_switch()) return;
  for (const std::uint32_t index : graph.refresh_segments()) {
    changes.push_back({index, change::kSegment, PortState::Nop});
  }
  if (fabric.is_managed_here(port)) mark_stale(fabric, port);
}

void settle(Fabric& fabric, Port& port, std::uint8_t physical, PortChanges& changes) {
  if (port.physical_state == physical) return;
  const PortState before = port.state;
  if (port.physical_state == kLinkUp) ++port.counters.link_downed;
  port.physical_state = physical;
  port.state = physical == kLinkUp ? begin_link(fabric, port) : PortState::Down;
  note(fabric, port, before, changes);
  tell_manager(fabric.graph(), port);
  follow_cable(fabric, port, changes);
}

bool is_there(const Fabric& fabric, const Port& port) {
  const Element& element = fabric.graph().element_of(port);
  return element.is_switch() ? element.has_power : fabric.find_hca(element.hca)->present;
}

void train_end(Fabric& fabric, Port& port, PortChanges& changes) {
  if (!is_there(fabric, port) || port.physical_state == kDisabled) return;
  settle(fabric, port, trained_state(fabric, port), changes);
}

}  // namespace

void train(Fabric& fabric, Port& port, PortChanges& changes) {
  train_end(fabric, port, changes);
  if (Port* peer = fabric.graph().peer_of(port); peer != nullptr) {
    train_end(fabric, *peer, changes);
  }
}

void lose_link(Fabric& fabric, Port& port, PortChanges& changes) {
  Port* const peer = fabric.graph().peer_of(port);
  for (Port* end : {&port, peer}) {
    if (end != nullptr && end->physical_state == kLinkUp) settle(fabric, *end, kPolling, changes);
  }
}

void set_enabled(Fabric& fabric, Port& port, bool is_enabled, PortChanges& changes) {
  if (is_enabled == (port.physical_state != kDisabled)) return;
  const std::uint8_t trained = is_there(fabric, port) ? trained_state(fabric, port) : kPolling;
  settle(fabric, port, is_enabled ? trained : kDisabled, changes);
  train(fabric, port, changes);
}

void retrain(Fabric& fabric, Port& port, PortChanges& changes) {
  const bool stays_up = port.physical_state == kLinkUp && rate_of_link(fabric, port);
  if (!stays_up) return train(fabric, port, changes);
  Port* const peer = fabric.graph().peer_of(port);
  for (Port* end : {&port, peer}) {
    if (end == nullptr) continue;
    const PortState before = end->state;
    end->state = begin_link(fabric, *end);
    note(fabric, *end, before, changes);
    tell_manager(fabric.graph(), *end);
  }
}

void advance(Fabric& fabric, Port& port, PortState state, PortChanges& changes) {
  if (port.state == state) return;
  const PortState before = port.state;
  port.state = state;
  note(fabric, port, before, changes);
}

}  // namespace ib::fabric
