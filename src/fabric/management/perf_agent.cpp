// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// PortCounters and PortCountersExtended: one set of values, cut to the fields of each. A Set takes
// note of the values that it clears, and later answers subtract them.
#include "fabric/management/perf_agent.h"

#include "mad/class_port_info.h"
#include "mad/gmp_answer.h"
#include "mad/perf.h"

#include <algorithm>
#include <cstring>

namespace ib::fabric {
namespace {

constexpr std::uint32_t kResponseTime = 18;  // 4.096 us * 2^n, as adapters say

constexpr std::uint32_t bit(Counter counter) {
  return 1u << static_cast<unsigned>(counter);
}

// --- which counters a Set clears: a bit for each Counter ---

std::uint32_t selected(const mad::PortCounters& in) {
  return in.counter_select | ((in.counter_select2 & 1) != 0 ? bit(Counter::TransmitWait) : 0u);
}

std::uint32_t selected(const mad::PortCountersExtended& in) {
  constexpr std::uint32_t kErrors = 0xfff;  // SymbolErrors to Vl15Dropped
  constexpr unsigned kWaitBit = 12;
  const std::uint32_t data = in.counter_select & 0x0fu, casts = in.counter_select >> 4 & 0x0fu;
  const std::uint32_t more = in.counter_select2;
  return data << static_cast<unsigned>(Counter::TransmitData) |
         casts << static_cast<unsigned>(Counter::UnicastTransmitPackets) | (more & kErrors) |
         ((more >> kWaitBit & 1) != 0 ? bit(Counter::TransmitWait) : 0u);
}

std::uint32_t selected(const mad::PortRcvErrorDetails& in) {
  constexpr unsigned kOverruns = 1u << 2;
  const unsigned select = in.counter_select;
  return ((select & 1) != 0 ? bit(Counter::LocalPhysicalErrors) : 0u) |
         ((select & kOverruns) != 0 ? bit(Counter::BufferOverruns) : 0u);
}

std::uint32_t selected(const mad::PortXmitDiscardDetails& in) {
  return (in.counter_select & 1) != 0 ? bit(Counter::InactiveDiscards) : 0u;
}

// --- counters as fields ---

void fill(mad::PortCounters& out, const CounterValues& v) {
  constexpr std::uint64_t kMostOf4Bits = 15;
  out.symbol_errors = narrow<std::uint16_t>(v[Counter::SymbolErrors]);
  out.link_error_recovery = narrow<std::uint8_t>(v[Counter::LinkErrorRecovery]);
  out.link_downed = narrow<std::uint8_t>(v[Counter::LinkDowned]);
  out.receive_errors = narrow<std::uint16_t>(v[Counter::ReceiveErrors]);
  out.remote_physical_errors = narrow<std::uint16_t>(v[Counter::RemotePhysicalErrors]);
  out.switch_relay_errors = narrow<std::uint16_t>(v[Counter::SwitchRelayErrors]);
  out.transmit_discards = narrow<std::uint16_t>(v[Counter::TransmitDiscards]);
  out.transmit_constraint_errors = narrow<std::uint8_t>(v[Counter::TransmitConstraintErrors]);
  out.receive_constraint_errors = narrow<std::uint8_t>(v[Counter::ReceiveConstraintErrors]);
  out.integrity_overrun =
      static_cast<std::uint8_t>(std::min(v[Counter::LocalLinkIntegrityErrors], kMostOf4Bits) << 4 |
                                std::min(v[Counter::BufferOverrunErrors], kMostOf4Bits));
  out.vl15_dropped = narrow<std::uint16_t>(v[Counter::Vl15Dropped]);
  out.transmit_data = narrow<std::uint32_t>(v[Counter::TransmitData]);
  out.receive_data = narrow<std::uint32_t>(v[Counter::ReceiveData]);
  out.transmit_packets = narrow<std::uint32_t>(v[Counter::TransmitPackets]);
  out.receive_packets = narrow<std::uint32_t>(v[Counter::ReceivePackets]);
  out.transmit_wait = narrow<std::uint32_t>(v[Counter::TransmitWait]);
}

void fill(mad::PortCountersExtended& out, const CounterValues& v) {
  out.transmit_data = v[Counter::TransmitData];
  out.receive_data = v[Counter::ReceiveData];
  out.transmit_packets = v[Counter::TransmitPackets];
  out.receive_packets = v[Counter::ReceivePackets];
  out.unicast_transmit_packets = v[Counter::UnicastTransmitPackets];
  out.unicast_receive_packets = v[Counter::UnicastReceivePackets];
  out.multicast_transmit_packets = v[Counter::MulticastTransmitPackets];
  out.multicast_receive_packets = v[Counter::MulticastReceivePackets];
  for (std::size_t i = 0; i < out.errors.size(); ++i) out.errors[i] = v[static_cast<Counter>(i)];
  out.transmit_wait = v[Counter::TransmitWait];
}

// Packets of softib are never malformed, and no table of a switch leads back.
void fill(mad::PortRcvErrorDetails& out, const CounterValues& v) {
  out.local_physical_errors = narrow<std::uint16_t>(v[Counter::LocalPhysicalErrors]);
  out.buffer_overruns = narrow<std::uint16_t>(v[Counter::BufferOverruns]);
}

// Nothing is queued, so nothing waits too long.
void fill(mad::PortXmitDiscardDetails& out, const CounterValues& v) {
  out.inactive = narrow<std::uint16_t>(v[Counter::InactiveDiscards]);
}

// Answers repeat the selection.
template <class Attribute>
void copy_selection(const Attribute& in, Attribute& out) {
  out.port_select = in.port_select;
  out.counter_select = in.counter_select;
  if constexpr (requires { in.counter_select2; }) out.counter_select2 = in.counter_select2;
}

mad::ClassPortInfo class_port_info() {
  mad::ClassPortInfo info;
  info.capability_mask = static_cast<std::uint16_t>(mad::kPerfAllPortSelect |
                                                    mad::kPerfExtendedWidth | mad::kPerfXmitWait);
  info.capability_mask2_response_time = mad::kPerf2AdditionalExtended << 5 | kResponseTime;
  return info;
}

}  // namespace

PerfAgent::PerfAgent(const Graph& graph, platform::Executor& executor, Reading reading)
    : graph_(graph),
      reading_(std::move(reading)),
      samples_(graph, executor, [this](const Port& port) { return all_counted(port); }) {}

CounterValues PerfAgent::all_counted(const Port& port) const {
  return CounterValues(reading_ ? reading_(port) : port.counters);
}

CounterValues PerfAgent::values(const Port& port) const {
  return values(port, all_counted(port));
}

PortCounters PerfAgent::since_cleared(const Port& port, const PortCounters& all) const {
  return values(port, CounterValues(all)).counters();
}

CounterValues PerfAgent::values(const Port& port, CounterValues all) const {
  const auto cleared = cleared_.find(graph_.index_of(port));
  if (cleared != cleared_.end()) all.subtract(cleared->second);
  return all;
}

CounterValues PerfAgent::sum(const Element& element, std::uint8_t port_select) const {
  if (port_select != mad::kAllPorts) return values(*graph_.port_of(element, port_select));
  CounterValues sum;
  for (const Port& port : counting_ports(graph_, element)) sum.add(values(port));
  return sum;
}

void PerfAgent::clear(const Port& port, std::uint32_t counters) {
  const CounterValues now = all_counted(port);
  CounterValues& cleared = cleared_[graph_.index_of(port)];
  for (std::size_t i = 0; i < kCounters; ++i) {
    const auto counter = static_cast<Counter>(i);
    if ((counters & bit(counter)) != 0) cleared[counter] = now[counter];
  }
}

// The values in a Set do not matter: what it selects becomes 0, as with adapters.
template <class Attribute>
mad::Mad PerfAgent::exchange(const Port& at, const mad::Mad& request) {
  Attribute in;
  std::memcpy(static_cast<void*>(&in), request.data() + offsetof(mad::PerfMad, data), sizeof in);
  const Element& element = graph_.element_of(at);
  const bool is_all = in.port_select == mad::kAllPorts;
  if (!is_all && graph_.port_of(element, in.port_select) == nullptr) {
    return mad::gmp_answer(request, mad::mad_status::kBadField);
  }
  const bool is_set = mad::header_of(request).method == mad::method::kSet;
  if (is_set) {
    const std::uint32_t counters = selected(in);
    if (is_all) {
      for (const Port& port : counting_ports(graph_, element)) clear(port, counters);
    } else {
      clear(*graph_.port_of(element, in.port_select), counters);
    }
  }
  Attribute out;
  copy_selection(in, out);
  fill(out, sum(element, in.port_select));
  return mad::gmp_answer_with(request, out);
}

mad::Mad PerfAgent::answer(const Port& at, const mad::Mad& request) {
  namespace status = mad::mad_status;
  const mad::MadHeader header = mad::header_of(request);
  const bool is_get = header.method == mad::method::kGet;
  if (!is_get && header.method != mad::method::kSet) {
    return mad::gmp_answer(request, status::kMethodNotSupported);
  }
  switch (header.attribute) {
    case mad::kClassPortInfo:
      if (is_get) return mad::gmp_answer_with(request, class_port_info());
      break;
    case mad::perf_attribute::kPortSamplesControl: return samples_.control(at, request);
    case mad::perf_attribute::kPortSamplesResult:
      if (is_get) return samples_.result<mad::PortSamplesResult>(at, request);
      break;
    case mad::perf_attribute::kPortSamplesResultExtended:
      if (is_get) return samples_.result<mad::PortSamplesResultExtended>(at, request);
      break;
    case mad::perf_attribute::kPortCounters: return exchange<mad::PortCounters>(at, request);
    case mad::perf_attribute::kPortCountersExtended:
      return exchange<mad::PortCountersExtended>(at, request);
    case mad::perf_attribute::kPortRcvErrorDetails:
      return exchange<mad::PortRcvErrorDetails>(at, request);
    case mad::perf_attribute::kPortXmitDiscardDetails:
      return exchange<mad::PortXmitDiscardDetails>(at, request);
    default: break;
  }
  return mad::gmp_answer(request, status::kAttributeNotSupported);
}

}  // namespace ib::fabric
