// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// PerfAgent: the performance management agents of all elements [IBA1 16.1]. They count nothing
// themselves: they show what ports have counted since a client has cleared it. PortCounters and
// PortCountersExtended are views of the same counters, of which the first is the narrower one; the
// details of receive errors and of discards are cleared on their own. A sample counts what a client
// clears meanwhile too.
//
// Thread rule: as the fabric's.
#pragma once

#include "fabric/graph.h"
#include "fabric/management/counter_values.h"
#include "fabric/management/sample_agent.h"
#include "mad/header.h"
#include "platform/executor.h"

#include <cstdint>
#include <functional>
#include <unordered_map>

namespace ib::fabric {

class PerfAgent {
 public:
  // All that a port has counted, ever.
  using Reading = std::function<PortCounters(const Port& port)>;

  // Without a reading: what is in the ports.
  PerfAgent(const Graph& graph, platform::Executor& executor, Reading reading);
  PerfAgent(const PerfAgent&) = delete;
  PerfAgent& operator=(const PerfAgent&) = delete;

  // Answers a Get or a Set of the class and version; `at` is a port of the element.
  mad::Mad answer(const Port& at, const mad::Mad& request);
  // The counters of a port since a client has cleared them.
  PortCounters counters(const Port& port) const { return values(port).counters(); }
  // The same where all that it has counted, ever, has been read.
  PortCounters since_cleared(const Port& port, const PortCounters& all) const;
  // Its counters begin again at 0: it is another port now.
  void forget(const Port& port) {
    cleared_.erase(graph_.index_of(port));
    samples_.forget(port);
  }

 private:
  CounterValues all_counted(const Port& port) const;
  CounterValues values(const Port& port) const;
  CounterValues values(const Port& port, CounterValues all) const;
  CounterValues sum(const Element& element, std::uint8_t port_select) const;
  void clear(const Port& port, std::uint32_t counters);
  template <class Attribute>
  mad::Mad exchange(const Port& at, const mad::Mad& request);

  const Graph& graph_;
  Reading reading_;
  std::unordered_map<std::uint32_t, CounterValues> cleared_;  // by port: the values at that time
  SampleAgent samples_;
};

}  // namespace ib::fabric
