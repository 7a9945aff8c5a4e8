// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A link that goes down and comes up in one request does so in two steps, each of which programs
// and subnet managers hear of.
#include "drivers/root/cable_requests.h"

#include "base/buffers.h"
#include "drivers/diagnostics/status.h"
#include "drivers/root/element_names.h"
#include "drivers/root/tree_requests.h"
#include "drivers/soft_hca/handlers.h"
#include "fabric/cables.h"
#include "fabric/link_errors.h"
#include "fabric/saturating_add.h"
#include "fabric/topology/link_names.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <initializer_list>
#include <string>
#include <utility>

namespace ib::drivers {
namespace {

using Json = nlohmann::ordered_json;
using verbs::control::CableAction;
using verbs::control::CableEnd;
using verbs::control::SwitchAction;

fabric::Port* find_end(fabric::Fabric& fabric, const CableEnd& end, std::string& reason) {
  fabric::Element* element = find_element(fabric, text_in(end.element), reason);
  return element != nullptr ? find_outer_port(fabric, *element, end.port, reason) : nullptr;
}

Json end_json(const fabric::Fabric& fabric, const fabric::Port& port) {
  const fabric::Element& element = fabric.graph().element_of(port);
  Json json = {{"text", fabric::port_words(fabric, port)},
               {"element", element.description},
               {"guid", fmt::format("{:#018x}", element.node_guid)},
               {"port", port.number},
               {"state", port_state_name(port.state)},
               {"is_disabled", port.physical_state == fabric::kDisabled}};
  if (port.lid != 0) json["lid"] = port.lid;
  return json;
}

Json cable_json(const fabric::Fabric& fabric, const fabric::Port& a, const fabric::Port& b) {
  const bool is_up = a.physical_state == fabric::kLinkUp && b.physical_state == fabric::kLinkUp;
  return {{"version", 1},
          {"ends", {end_json(fabric, a), end_json(fabric, b)}},
          {"width", fabric::width_name(a.width)},
          {"speed", fabric::speed_name(a.speed)},
          {"is_up", is_up}};
}

void answer_json(Core& core, io::IrpRef irp, const Json& json) {
  answer_text(core, std::move(irp),
              json.dump(2, ' ', false, Json::error_handler_t::replace) + '\n');
}

// The links of ports go down, and everybody hears of it.
void take_down(Core& core, std::initializer_list<fabric::Port*> ports) {
  fabric::PortChanges changes;
  for (fabric::Port* port : ports) fabric::lose_link(core.fabric, *port, changes);
  apply_changes(core, changes);
}

void add_cable(Core& core, const verbs::control::ChangeCableIn& in, fabric::Port& a,
               io::IrpRef irp) {
  std::string reason;
  fabric::Port* b = find_end(core.fabric, in.b, reason);
  if (b == nullptr) return fail(core, std::move(irp), Status::NotFound, std::move(reason));
  const auto code = [](std::uint32_t value) {
    return static_cast<std::uint8_t>(value <= 0xff ? value : 0);
  };
  const fabric::CableKind kind{code(in.width), code(in.speed)};
  if (fabric::width_name(kind.width).empty() || fabric::speed_name(kind.speed).empty()) {
    return fail(core, std::move(irp), Status::InvalidParameter,
                fmt::format("no cable has the codes {} for its width and {} for its speed; each "
                            "is a power of two, the width 1 to 16, the speed 1 to 128",
                            in.width, in.speed));
  }
  const Status fits = fabric::check_cable(core.fabric, a, *b, reason);
  if (fits != Status::Ok) return fail(core, std::move(irp), fits, std::move(reason));
  take_down(core, {&a, b});
  fabric::PortChanges changes;
  fabric::plug(core.fabric, a, *b, kind, changes);
  core.trace.add(fmt::format("a cable joins {} and {}", fabric::port_words(core.fabric, a),
                             fabric::port_words(core.fabric, *b)));
  apply_changes(core, changes);
  answer_json(core, std::move(irp), cable_json(core.fabric, a, *b));
}

void remove_cable(Core& core, fabric::Port& a, fabric::Port& b, io::IrpRef irp) {
  const Json before = cable_json(core.fabric, a, b);
  core.trace.add(fmt::format("the cable between {} and {} is pulled out",
                             fabric::port_words(core.fabric, a),
                             fabric::port_words(core.fabric, b)));
  take_down(core, {&a});
  fabric::PortChanges changes;
  fabric::unplug(core.fabric, a, changes);
  apply_changes(core, changes);
  answer_json(core, std::move(irp), before);
}

void no_cable(Core& core, const fabric::Port& port, io::IrpRef irp) {
  fail(core, std::move(irp), Status::NotFound,
       fmt::format("{} has no cable; `softib cable add` plugs one in",
                   fabric::port_words(core.fabric, port)));
}

Json switch_json(const fabric::Fabric& fabric, const fabric::Element& element) {
  Json json = {{"version", 1},
               {"name", element.description},
               {"guid", fmt::format("{:#018x}", element.node_guid)},
               {"ports", element.port_count},
               {"power", element.has_power}};
  const fabric::Port& manager = *fabric.graph().port_of(element, 0);
  if (manager.lid != 0) json["lid"] = manager.lid;
  return json;
}

// The first one; the names of switches may be those of others.
const fabric::Element* element_named(const fabric::Graph& graph, std::string_view name) {
  for (std::uint32_t i = 0; i < graph.element_count(); ++i) {
    const fabric::Element& element = graph.element(i);
    if (!element.is_gone && element.description == name) return &element;
  }
  return nullptr;
}

void forget_counters(Core& core, const fabric::Element& element) {
  for (const fabric::Port& port : core.fabric.graph().ports_of(element)) {
    core.gmp_agents.perf().forget(port);
  }
}

void add_switch(Core& core, const verbs::control::ChangeSwitchIn& in, io::IrpRef irp) {
  fabric::TopologyElement what;
  what.kind = fabric::ElementKind::Switch;
  what.description = text_in(in.name);
  what.ports = in.ports;
  what.node_guid = in.guid;
  if (what.description.empty()) {
    return fail(core, std::move(irp), Status::InvalidParameter, "a switch needs a name");
  }
  std::string reason;
  const fabric::Element* other = element_named(core.fabric.graph(), what.description);
  if (other == nullptr) other = find_element(core.fabric, what.description, reason);
  if (other != nullptr) {
    return fail(core, std::move(irp), Status::AlreadyExists,
                fmt::format("\"{}\" is the name of {} {:#018x}; use another", what.description,
                            other->is_switch() ? "switch" : "HCA", other->node_guid));
  }
  reason.clear();
  const auto added = fabric::add_switch(core.fabric, what, reason);
  if (!added) return fail(core, std::move(irp), added.error(), std::move(reason));
  forget_counters(core, **added);
  core.trace.add(fmt::format("switch {} is there, with {} ports", what.description, in.ports));
  answer_json(core, std::move(irp), switch_json(core.fabric, **added));
}

void change_other(Core& core, SwitchAction action, fabric::Element& element, io::IrpRef irp) {
  fabric::PortChanges changes;
  if (action == SwitchAction::Remove) {
    for (fabric::Port& port : core.fabric.graph().ports_of(element).subspan(1)) {
      take_down(core, {&port});
    }
    fabric::remove_switch(core.fabric, element, changes);
  } else {
    const bool loses_counters = action == SwitchAction::Up && !element.has_power;
    fabric::set_power(core.fabric, element, action == SwitchAction::Up, changes);
    if (loses_counters) forget_counters(core, element);
  }
  const char* words = action == SwitchAction::Remove ? "is taken out"
                      : action == SwitchAction::Up   ? "has power"
                                                     : "has no power";
  core.trace.add(fmt::format("switch {} {}", element.description, words));
  apply_changes(core, changes);
  answer_json(core, std::move(irp), switch_json(core.fabric, element));
}

}  // namespace

void change_cable(FabricTree& tree, const verbs::control::ChangeCableIn& in, io::IrpRef irp) {
  Core& core = tree.core();
  if (in.action > CableAction::Up) {
    return fail(
        core, std::move(irp), Status::InvalidParameter,
        fmt::format("there is no action {} on a cable", static_cast<std::uint32_t>(in.action)));
  }
  std::string reason;
  fabric::Port* a = find_end(core.fabric, in.a, reason);
  if (a == nullptr) return fail(core, std::move(irp), Status::NotFound, std::move(reason));
  if (in.action == CableAction::Add) return add_cable(core, in, *a, std::move(irp));
  fabric::Port* b = core.fabric.graph().peer_of(*a);
  if (b == nullptr) return no_cable(core, *a, std::move(irp));
  switch (in.action) {
    case CableAction::Add:
    case CableAction::Show: break;
    case CableAction::Remove: return remove_cable(core, *a, *b, std::move(irp));
    // The port that is named stays down; of the other end, whoever took it down is to say so.
    case CableAction::Down: set_port_state(core, *a, false); break;
    case CableAction::Up:
      set_port_state(core, *a, true);
      set_port_state(core, *b, true);
      break;
  }
  answer_json(core, std::move(irp), cable_json(core.fabric, *a, *b));
}

void cable_errors(FabricTree& tree, const verbs::control::CableErrorsIn& in, io::IrpRef irp) {
  Core& core = tree.core();
  std::string reason;
  fabric::Port* port = find_end(core.fabric, in.end, reason);
  if (port == nullptr) return fail(core, std::move(irp), Status::NotFound, std::move(reason));
  fabric::Port* peer = core.fabric.graph().peer_of(*port);
  if (peer == nullptr) return no_cable(core, *port, std::move(irp));
  if (port->is_ethernet()) {
    return fail(core, std::move(irp), Status::InvalidParameter,
                fmt::format("{} is Ethernet: these errors are those of InfiniBand cables",
                            fabric::port_words(core.fabric, *port)));
  }
  if (in.downed != 0) {
    if (port->physical_state != fabric::kLinkUp) {
      return fail(
          core, std::move(irp), Status::InvalidParameter,
          fmt::format("the link of {} is down already", fabric::port_words(core.fabric, *port)));
    }
    take_down(core, {port});
    for (fabric::Port* end : {port, peer}) {
      fabric::add_saturating(end->counters.link_downed, in.downed - 1);
    }
  }
  fabric::PortChanges changes;
  if (in.downed != 0) fabric::train(core.fabric, *port, changes);
  fabric::add_errors(
      core.fabric, *port,
      {in.symbol, in.recovery, in.physical, in.overrun, in.watchdog, in.remote, in.discards},
      changes);
  apply_changes(core, changes);
  succeed(std::move(irp));
}

void change_switch(FabricTree& tree, const verbs::control::ChangeSwitchIn& in, io::IrpRef irp) {
  Core& core = tree.core();
  if (in.action == SwitchAction::Add) return add_switch(core, in, std::move(irp));
  if (in.action > SwitchAction::Up) {
    return fail(
        core, std::move(irp), Status::InvalidParameter,
        fmt::format("there is no action {} on a switch", static_cast<std::uint32_t>(in.action)));
  }
  std::string reason;
  fabric::Element* element = find_switch(core.fabric, text_in(in.name), reason);
  if (element == nullptr) return fail(core, std::move(irp), Status::NotFound, std::move(reason));
  change_other(core, in.action, *element, std::move(irp));
}

}  // namespace ib::drivers
