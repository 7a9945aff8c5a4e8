// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// PortSamples: a sampling mechanism [IBA1 16.1.3.2]. It waits for SampleStart, takes the values of
// the counters, and after SampleInterval again; the differences are the result. A sample cannot be
// stopped or changed: a Set that comes meanwhile has no effect, and its sender sees by Tag and
// SampleStatus of the answer that the mechanism is another's.
//
// Time comes in as an argument. An advance() that is late moves the sample: the interval counts
// from when the first values were taken.
#pragma once

#include "base/time.h"
#include "fabric/management/counter_values.h"
#include "mad/perf.h"

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace ib::fabric {

// PortSamplesControl:Tick. It is the longest, since softibd's timers are no clocks of nanoseconds.
inline constexpr std::uint8_t kSampleTick = 0xff;

// The duration of so many ticks at a port of this speed (a code of verbs), not shorter.
Duration sample_span(std::uint32_t ticks, std::uint8_t speed);

// The bits of PortSamplesControl:OptionMask: all that PortRcvErrorDetails and
// PortXmitDiscardDetails show.
std::uint64_t sample_options();
// Whether a CounterSelect names nothing, or what can be sampled.
bool can_sample(std::uint16_t select);

struct SampleSettings {
  std::uint8_t port_select = 0;
  std::uint32_t start = 0;  // ticks until it begins
  std::uint32_t interval = 0;
  std::uint16_t tag = 0;
  std::array<Be16, mad::kSampleCounters> select{};
};

class PortSamples {
 public:
  enum class State : std::uint8_t { Done, Waiting, Running };  // SampleStatus
  // Of each port that is sampled, all that it has ever counted.
  using Values = std::vector<CounterValues>;

  // Begins a sample, for which advance() is to be called at once. Returns false, and changes
  // nothing, if one is under way.
  bool begin(const SampleSettings& settings, std::uint8_t speed, Instant now);
  // When advance() is due; nothing: no sample is under way.
  std::optional<Instant> deadline() const;
  // `read` gives the values of now, if it is time for them.
  template <std::invocable Read>
  void advance(Instant now, const Read& read) {
    if (state_ == State::Waiting && now >= due_) start(now, read());
    if (state_ == State::Running && now >= due_) finish(read());
  }

  State state() const { return state_; }
  const SampleSettings& settings() const { return settings_; }
  // Counted by a counter of the last sample; 0 while one is under way.
  std::uint64_t result(std::size_t counter) const;

 private:
  void start(Instant now, Values first);
  void finish(Values last);

  State state_ = State::Done;
  SampleSettings settings_;
  Duration interval_{};
  Instant due_{};         // unless Done
  Values first_;          // while Running
  CounterValues result_;  // the sum of all ports
};

}  // namespace ib::fabric
