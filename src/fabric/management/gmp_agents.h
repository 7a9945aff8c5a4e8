// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// GmpAgents: the agents of general management that every element has [IBA1 13.4.4, 16], and the way
// of a request to an element where nobody has queue pair 1: there and back within the call.
//
// Thread rule: as the fabric's.
#pragma once

#include "fabric/graph.h"
#include "fabric/management/perf_agent.h"
#include "fabric/management/walk.h"
#include "mad/header.h"

#include <cstdint>
#include <optional>
#include <utility>

namespace ib::fabric {

class GmpAgents {
 public:
  GmpAgents(Graph& graph, platform::Executor& executor, PerfAgent::Reading reading)
      : graph_(graph), perf_(graph, executor, std::move(reading)) {}

  PerfAgent& perf() { return perf_; }
  Port& port(std::uint32_t index) { return *graph_.port(index); }  // of the graph

  // Returns the answer to a request that has come to an element by this port: an agent's, or the
  // refusal of a class that has none. Returns nothing if it is no Get or Set, which alone are
  // always answered.
  std::optional<mad::Mad> answer(const Port& at, const mad::Mad& request);

  // Carries a request from a port of a channel adapter to `end`, which has the destination LID, and
  // the answer back. Returns nothing if it was lost on its way, or had no answer. `pkey`: of the
  // packets.
  std::optional<mad::Mad> exchange(Port& from, const Port& end, PacketLids lids, std::uint16_t pkey,
                                   const mad::Mad& request);

 private:
  // Returns the port by which it has come to the element of `end`; nullptr if it was lost.
  Port* carry(Port& from, const Port& end, PacketLids lids);

  Graph& graph_;
  PerfAgent perf_;
};

}  // namespace ib::fabric
