// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The counters of a port in a row, in the order in which performance management selects them
// [IBA1 16.1.3.5, 16.1.4.11].
#pragma once

#include "fabric/port_counters.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>

namespace ib::fabric {

enum class Counter : std::uint8_t {
  SymbolErrors,  // bit 0 of PortCounters:CounterSelect, and so on
  LinkErrorRecovery,
  LinkDowned,
  ReceiveErrors,
  RemotePhysicalErrors,
  SwitchRelayErrors,
  TransmitDiscards,
  TransmitConstraintErrors,
  ReceiveConstraintErrors,
  LocalLinkIntegrityErrors,
  BufferOverrunErrors,
  Vl15Dropped,
  TransmitData,  // bit 0 of PortCountersExtended:CounterSelect, but for TransmitWait
  ReceiveData,
  TransmitPackets,
  ReceivePackets,
  TransmitWait,  // bit 0 of PortCounters:CounterSelect2
  UnicastTransmitPackets,
  UnicastReceivePackets,
  MulticastTransmitPackets,
  MulticastReceivePackets,
  LocalPhysicalErrors,  // bit 0 of PortRcvErrorDetails:CounterSelect
  BufferOverruns,       // its bit 2
  InactiveDiscards,     // bit 0 of PortXmitDiscardDetails:CounterSelect
  kCount
};
inline constexpr std::size_t kCounters = static_cast<std::size_t>(Counter::kCount);

// Visits all counters in the order of Counter.
template <class Counters, class Visit>
void each_counter(Counters& c, Visit&& visit) {
  visit(c.symbol_errors);
  visit(c.link_error_recovery);
  visit(c.link_downed);
  visit(c.receive_errors);
  visit(c.remote_physical_errors);
  visit(c.switch_relay_errors);
  visit(c.transmit_discards);
  visit(c.transmit_constraint_errors);
  visit(c.receive_constraint_errors);
  visit(c.local_link_integrity_errors);
  visit(c.buffer_overrun_errors);
  visit(c.vl15_dropped);
  visit(c.sent.data);
  visit(c.received.data);
  visit(c.sent.packets);
  visit(c.received.packets);
  visit(c.transmit_wait);
  visit(c.sent.unicast);
  visit(c.received.unicast);
  visit(c.sent.multicast);
  visit(c.received.multicast);
  visit(c.local_physical_errors);
  visit(c.buffer_overruns);
  visit(c.inactive_discards);
}

// A counter as a field of a MAD, which stays at its largest value.
template <class Field>
Field narrow(std::uint64_t value) {
  constexpr std::uint64_t kMost = std::numeric_limits<Field>::max();
  return static_cast<Field>(std::min(value, kMost));
}

class CounterValues {
 public:
  CounterValues() = default;
  explicit CounterValues(const PortCounters& counters) {
    std::size_t i = 0;
    each_counter(counters, [&](auto value) { values_[i++] = value; });
  }

  std::uint64_t operator[](Counter counter) const {
    return values_[static_cast<std::size_t>(counter)];
  }
  std::uint64_t& operator[](Counter counter) { return values_[static_cast<std::size_t>(counter)]; }

  // The largest value at most.
  void add(const CounterValues& more) {
    for (std::size_t i = 0; i < kCounters; ++i) {
      const std::uint64_t sum = values_[i] + more.values_[i];
      values_[i] = sum < values_[i] ? std::numeric_limits<std::uint64_t>::max() : sum;
    }
  }
  // Leaves the difference from earlier values. A counter that is less than it was began again at 0.
  void subtract(const CounterValues& before) {
    for (std::size_t i = 0; i < kCounters; ++i) {
      if (values_[i] >= before.values_[i]) values_[i] -= before.values_[i];
    }
  }
  PortCounters counters() const {
    PortCounters out;
    std::size_t i = 0;
    each_counter(out, [&](auto& value) {
      value = static_cast<std::remove_reference_t<decltype(value)>>(values_[i++]);
    });
    return out;
  }

 private:
  std::array<std::uint64_t, kCounters> values_{};
};

}  // namespace ib::fabric
