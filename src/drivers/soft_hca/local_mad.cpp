// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A MAD to the agents of the own port [IBA1 13.5.2], or to those at the end of a directed route
// over cables, is answered in the call that brought it, without a packet, a queue pair or a thread.
#include "drivers/soft_hca/handlers.h"
#include "fabric/mad_facts.h"
#include "mad/directed_route.h"

#include <fmt/format.h>

#include <bit>

namespace ib::drivers {
namespace {

using mad::RouteStep;

std::string describe(const Core& core, const fabric::Hca& hca) {
  return core.fabric.node_of(hca).name + " " + hca.name;
}

// The port of an element with this number; nullptr if it has none.
const fabric::Port* port_of(const fabric::Graph& graph, const fabric::Element& element,
                            std::uint8_t number) {
  const auto ports = graph.ports_of(element);
  const std::uint32_t index = number - element.first_number();
  return index < ports.size() ? &ports[index] : nullptr;
}

// Takes the steps of a directed route from a port of its source. Returns the port by which it comes
// to its end; nullptr, and the reason, if it leads nowhere.
const fabric::Port* follow(const fabric::Graph& graph, const fabric::Port& from, mad::Smp& smp,
                           std::string& reason) {
  const fabric::Port* at = &from;
  mad::RouteDecision next = mad::take_step(smp, graph.element_of(*at).is_switch(), 0);
  while (next.step == RouteStep::Send) {
    const fabric::Port* out = port_of(graph, graph.element_of(*at), next.port);
    const fabric::Port* peer = out != nullptr ? graph.peer_of(*out) : nullptr;
    if (peer == nullptr || out->physical_state != fabric::kLinkUp) {
      reason = fmt::format("the directed route leads out by port {}, which has no cable that is up",
                           next.port);
      return nullptr;
    }
    at = peer;
    next = mad::take_step(smp, graph.element_of(*at).is_switch(),
                          static_cast<std::uint8_t>(at->number));
  }
  if (next.step == RouteStep::Deliver) return at;
  reason =
      "the directed route does not end where its hops do: hop pointer, hop count and the LIDs of "
      "both ends (0xffff) have to fit, and a channel adapter sends nothing on";
  return nullptr;
}

Status answer_at(const Core& core, const fabric::Port& port, mad::Mad& mad, std::string& reason) {
  const fabric::Graph& graph = core.fabric.graph();
  const std::string description = describe(core, *core.fabric.hca_of(port));
  const mad::NodeFacts node = node_facts(graph, graph.element_of(port), description);
  const mad::Mad request = mad;
  return mad::answer(node, port_facts(port), request, mad, reason);
}

// The request goes along its hops and becomes the response that has come back.
Status answer_over_hops(const Core& core, const fabric::Port& from, mad::Mad& mad,
                        std::string& reason) {
  const fabric::Graph& graph = core.fabric.graph();
  auto smp = std::bit_cast<mad::Smp>(mad);
  const fabric::Port* end = follow(graph, from, smp, reason);
  if (end == nullptr) return Status::InvalidParameter;
  mad = std::bit_cast<mad::Mad>(smp);
  IB_CHECK(answer_at(core, *end, mad, reason));
  smp = std::bit_cast<mad::Smp>(mad);
  const fabric::Port* back = follow(graph, *end, smp, reason);
  if (back == nullptr) return Status::InvalidParameter;
  IB_ASSERT(&graph.element_of(*back) == &graph.element_of(from));
  mad = std::bit_cast<mad::Mad>(smp);
  return Status::Ok;
}

}  // namespace

void local_mad(Core& core, HcaFile& file, const control::MadIn& in, io::IrpRef irp) {
  const fabric::Port* port = find_port(file, in.port);
  if (port == nullptr) {
    return fail(core, std::move(irp), Status::InvalidParameter, no_such_port(file, in.port));
  }
  auto mad = std::bit_cast<mad::Mad>(in.mad);
  std::string reason;
  const bool leaves = mad::has_hops(std::bit_cast<mad::Smp>(mad));
  const Status status =
      leaves ? answer_over_hops(core, *port, mad, reason) : answer_at(core, *port, mad, reason);
  if (status != Status::Ok) return fail(core, std::move(irp), status, std::move(reason));
  succeed_with(std::move(irp), std::bit_cast<control::MadOut>(mad), mad::kMadSize);
}

}  // namespace ib::drivers
