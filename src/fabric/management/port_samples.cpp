// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "fabric/management/port_samples.h"

#include "base/assert.h"
#include "verbs/link_speed.h"

#include <utility>

namespace ib::fabric {
namespace {

// kNever: a counter that softib has nothing to count for.
constexpr auto kNever = Counter::kCount;

// Of a CounterSelect that can_sample().
Counter selected_counter(std::uint16_t select) {
  constexpr std::array kMandatory = {kNever,
                                     Counter::TransmitData,
                                     Counter::ReceiveData,
                                     Counter::TransmitPackets,
                                     Counter::ReceivePackets,
                                     Counter::TransmitWait};
  switch (select) {
    case mad::kSelectLocalPhysicalErrors: return Counter::LocalPhysicalErrors;
    case mad::kSelectBufferOverruns: return Counter::BufferOverruns;
    case mad::kSelectInactiveDiscards: return Counter::InactiveDiscards;
    default: return select < kMandatory.size() ? kMandatory[select] : kNever;
  }
}

}  // namespace

Duration sample_span(std::uint32_t ticks, std::uint8_t speed) {
  constexpr std::uint64_t kBits = 10 * (kSampleTick + 1), kNanosecondsByKilo = 1'000'000;
  const std::uint64_t rate = verbs::link_speed(speed).kbits;
  return Duration((ticks * kBits * kNanosecondsByKilo + rate - 1) / rate);
}

bool can_sample(std::uint16_t select) {
  constexpr std::uint16_t kLastMandatory = 5;
  return select <= kLastMandatory ||
         (select >= mad::kSelectLocalPhysicalErrors && select <= mad::kSelectHeadOfQueueDiscards);
}

std::uint64_t sample_options() {
  std::uint64_t mask = 0;
  for (std::uint16_t i = mad::kSelectLocalPhysicalErrors; can_sample(i); ++i) {
    mask |= std::uint64_t{1} << (i - mad::kFirstOptionalSelect + 1);
  }
  return mask;
}

bool PortSamples::begin(const SampleSettings& settings, std::uint8_t speed, Instant now) {
  if (state_ != State::Done) return false;
  settings_ = settings;
  interval_ = sample_span(settings.interval, speed);
  due_ = now + sample_span(settings.start, speed);
  result_ = {};
  state_ = State::Waiting;
  return true;
}

std::optional<Instant> PortSamples::deadline() const {
  return state_ == State::Done ? std::nullopt : std::optional(due_);
}

void PortSamples::start(Instant now, Values first) {
  first_ = std::move(first);
  due_ = now + interval_;
  state_ = State::Running;
}

void PortSamples::finish(Values last) {
  IB_ASSERT(last.size() == first_.size());
  for (std::size_t i = 0; i < last.size(); ++i) {
    last[i].subtract(first_[i]);
    result_.add(last[i]);
  }
  first_.clear();
  state_ = State::Done;
}

std::uint64_t PortSamples::result(std::size_t counter) const {
  const Counter selected = selected_counter(settings_.select[counter]);
  return selected == kNever ? 0 : result_[selected];
}

}  // namespace ib::fabric
