// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// SampleAgent: the part of performance management that samples counters [IBA1 16.1.3.2, 16.1.3.3]:
// PortSamplesControl, PortSamplesResult and PortSamplesResultExtended. Each port of an adapter has
// a mechanism, and a switch has one for all its ports, since a result does not say of which port it
// is. Attribute modifiers 0 and "all" name it. PortSelect 0xff samples the sum of all ports; ticks
// are then those of the first.
//
// Thread rule: the executor's thread.
#pragma once

#include "fabric/graph.h"
#include "fabric/management/port_samples.h"
#include "mad/header.h"
#include "platform/executor.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <unordered_map>
#include <utility>

namespace ib::fabric {

// The ports of an element that count: port 0 of a switch is inside of it.
std::span<const Port> counting_ports(const Graph& graph, const Element& element);

class SampleAgent {
 public:
  // All that a port has ever counted.
  using Reading = std::function<CounterValues(const Port& port)>;

  SampleAgent(const Graph& graph, platform::Executor& executor, Reading reading)
      : graph_(graph), executor_(executor), reading_(std::move(reading)) {}

  // Answers a Get or a Set of PortSamplesControl; `at` is a port of the element.
  mad::Mad control(const Port& at, const mad::Mad& request);
  // Answers a Get of PortSamplesResult or of PortSamplesResultExtended.
  template <class Attribute>
  mad::Mad result(const Port& at, const mad::Mad& request);
  // Its mechanism has had no sample: it is another port now.
  void forget(const Port& port) { mechanisms_.erase(graph_.index_of(port)); }

 private:
  struct Mechanism {
    PortSamples samples;
    std::unique_ptr<platform::Timer> timer;
  };

  // As it is now; one that nobody has set has the default settings.
  const PortSamples& samples(const Port& at);
  void begin(const Port& at, const SampleSettings& settings);
  void advance(std::uint32_t end);
  PortSamples::Values read(const Element& element, std::uint8_t port_select) const;

  const Graph& graph_;
  platform::Executor& executor_;
  Reading reading_;
  std::unordered_map<std::uint32_t, Mechanism> mechanisms_;  // by port, those that were set
};

}  // namespace ib::fabric
