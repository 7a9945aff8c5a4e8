// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The messages of sampling: settings in, results out. PerfAgent hands them over; the course of a
// sample is in port_samples.cpp, and timers here call it.
#include "fabric/management/sample_agent.h"

#include "mad/gmp_answer.h"

#include <algorithm>
#include <cstring>
#include <type_traits>

namespace ib::fabric {
namespace {

namespace status = mad::mad_status;

bool names_the_mechanism(const mad::Mad& request) {
  const std::uint32_t modifier = mad::header_of(request).modifier;
  return modifier == 0 || modifier == mad::kAllMechanisms;
}

SampleSettings settings_of(const mad::PortSamplesControl& in) {
  return {in.port_select, in.sample_start, in.sample_interval, in.tag, in.counter_select};
}

mad::PortSamplesControl control_of(const PortSamples& samples) {
  constexpr unsigned kBits = 3;  // of a counter's mask
  constexpr auto masks = [](unsigned counters) {
    std::uint32_t bits = 0;
    for (unsigned i = 0; i < counters; ++i) bits = bits << kBits | mad::kMandatoryAndOptional;
    return bits;
  };
  const SampleSettings& settings = samples.settings();
  mad::PortSamplesControl out;
  out.port_select = settings.port_select;
  out.tick = kSampleTick;
  out.counter_width = mad::kWidth32;
  out.counter_masks0_9 = masks(10);
  out.counter_masks10_14 = static_cast<std::uint16_t>(masks(5));
  out.sample_status = static_cast<std::uint8_t>(samples.state());
  out.option_mask = sample_options();
  out.sample_start = settings.start;
  out.sample_interval = settings.interval;
  out.tag = settings.tag;
  out.counter_select = settings.select;
  return out;
}

}  // namespace

std::span<const Port> counting_ports(const Graph& graph, const Element& element) {
  const std::span<const Port> all = graph.ports_of(element);
  return element.is_switch() ? all.subspan(1) : all;
}

PortSamples::Values SampleAgent::read(const Element& element, std::uint8_t port_select) const {
  if (port_select != mad::kAllPorts) return {reading_(*graph_.port_of(element, port_select))};
  PortSamples::Values values;
  for (const Port& port : counting_ports(graph_, element)) values.push_back(reading_(port));
  return values;
}

void SampleAgent::advance(std::uint32_t end) {
  Mechanism& mechanism = mechanisms_.at(end);
  const Element& element = graph_.element_of(*graph_.port(end));
  mechanism.samples.advance(
      executor_.now(), [&] { return read(element, mechanism.samples.settings().port_select); });
  mechanism.timer.reset();
  if (const auto due = mechanism.samples.deadline()) {
    mechanism.timer = executor_.at(*due, [this, end] { advance(end); });
  }
}

const PortSamples& SampleAgent::samples(const Port& at) {
  static const PortSamples kUnused;
  const std::uint32_t end = graph_.index_of(graph_.end_port_of(at));
  const auto found = mechanisms_.find(end);
  if (found == mechanisms_.end()) return kUnused;
  advance(end);  // its timer may be late
  return found->second.samples;
}

void SampleAgent::begin(const Port& at, const SampleSettings& settings) {
  const Element& element = graph_.element_of(at);
  const std::uint32_t clock = settings.port_select == mad::kAllPorts ? 1 : settings.port_select;
  const std::uint8_t speed = graph_.port_of(element, clock)->speed;
  const std::uint32_t end = graph_.index_of(graph_.end_port_of(at));
  if (mechanisms_[end].samples.begin(settings, speed, executor_.now())) advance(end);
}

// The answer to a Get, and to a Set that came too late, has the settings of the last sample.
mad::Mad SampleAgent::control(const Port& at, const mad::Mad& request) {
  mad::PortSamplesControl in;
  std::memcpy(static_cast<void*>(&in), request.data() + offsetof(mad::PerfMad, data), sizeof in);
  const bool is_port = in.port_select == mad::kAllPorts ||
                       graph_.port_of(graph_.element_of(at), in.port_select) != nullptr;
  if (!is_port || !names_the_mechanism(request)) {
    return mad::gmp_answer(request, status::kBadField);
  }
  const std::uint32_t end = graph_.index_of(graph_.end_port_of(at));
  if (mad::header_of(request).method == mad::method::kSet) {
    if (!std::ranges::all_of(in.counter_select, can_sample)) {
      return mad::gmp_answer(request, status::kBadField);
    }
    (void)samples(at);  // one that is over by now makes room
    begin(at, settings_of(in));
  }
  mad::PortSamplesControl out = control_of(samples(at));
  if (!mechanisms_.contains(end)) out.port_select = in.port_select;
  return mad::gmp_answer_with(request, out);
}

template <class Attribute>
mad::Mad SampleAgent::result(const Port& at, const mad::Mad& request) {
  if (!names_the_mechanism(request)) return mad::gmp_answer(request, status::kBadField);
  const PortSamples& now = samples(at);
  Attribute out;
  out.tag = now.settings().tag;
  out.sample_status = static_cast<std::uint8_t>(now.state());
  constexpr bool kIsWide = requires {
    out.extended_width;
  };
  if constexpr (kIsWide) out.extended_width = mad::kExtendedWidth64;
  using Field = std::conditional_t<kIsWide, std::uint64_t, std::uint32_t>;
  for (std::size_t i = 0; i < out.counters.size(); ++i) {
    out.counters[i] = narrow<Field>(now.result(i));
  }
  return mad::gmp_answer_with(request, out);
}

template mad::Mad SampleAgent::result<mad::PortSamplesResult>(const Port&, const mad::Mad&);
template mad::Mad SampleAgent::result<mad::PortSamplesResultExtended>(const Port&, const mad::Mad&);

}  // namespace ib::fabric
