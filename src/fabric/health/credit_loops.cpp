// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The graph of channels comes from ways.cpp; here its strongly connected parts are found, and of
// each a shortest circle for the report.
#include "fabric/health/credit_loops.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <deque>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace ib::fabric::health {
namespace {

// Tarjan's algorithm with a stack of its own, since a way through all channels is as long as they
// are many.
class Loops {
 public:
  Loops(const Survey& survey, const Channels& channels)
      : survey_(survey),
        channels_(channels),
        number_(channels.size()),
        low_(channels.size()),
        is_open_(channels.size()) {}

  // The channels of each part that has a circle.
  std::vector<std::vector<std::uint32_t>> parts() {
    for (std::uint32_t i = 0; i < channels_.size(); ++i) {
      if (number_[i] == 0 && channels_[i] != PortMask{}) visit(i);
    }
    return std::move(parts_);
  }

  // One of the fewest channels, from the first of the part back to it.
  std::vector<std::uint32_t> shortest_circle(const std::vector<std::uint32_t>& part) const {
    std::unordered_map<std::uint32_t, std::uint32_t> before;  // on the way to each
    for (const std::uint32_t each : part) before[each] = kNoIndex;
    std::deque<std::uint32_t> next{part.front()};
    while (!next.empty()) {
      const std::uint32_t at = next.front();
      next.pop_front();
      for (const std::uint32_t to : successors(at)) {
        const auto found = before.find(to);
        if (found == before.end() || found->second != kNoIndex) continue;
        found->second = at;
        if (to == part.front()) return back_from(to, before);
        next.push_back(to);
      }
    }
    return {};
  }

 private:
  struct Frame {
    std::uint32_t channel = 0;
    std::vector<std::uint32_t> successors;
  };

  std::vector<std::uint32_t> successors(std::uint32_t channel) const {
    std::vector<std::uint32_t> out;
    const SurveyPort* peer = survey_.peer_of(survey_.ports[channel]);
    if (peer == nullptr) return out;
    const std::uint32_t first = survey_.element_of(*peer).first_port;
    for (std::uint32_t i = 0; i < channels_[channel].size(); ++i) {
      for (std::uint64_t word = channels_[channel][i]; word != 0; word &= word - 1) {
        out.push_back(first + i * 64 + static_cast<std::uint32_t>(std::countr_zero(word)));
      }
    }
    return out;
  }

  std::vector<std::uint32_t> back_from(
      std::uint32_t end, const std::unordered_map<std::uint32_t, std::uint32_t>& before) const {
    std::vector<std::uint32_t> circle;
    std::uint32_t at = end;
    do {
      circle.push_back(at);
      at = before.at(at);
    } while (at != end);
    std::ranges::reverse(circle);
    std::rotate(circle.begin(), std::ranges::min_element(circle), circle.end());
    return circle;
  }

  void open(std::uint32_t channel) {
    number_[channel] = low_[channel] = ++last_number_;
    is_open_[channel] = true;
    open_.push_back(channel);
    frames_.push_back({channel, successors(channel)});
  }

  void visit(std::uint32_t first) {
    open(first);
    while (!frames_.empty()) {
      Frame& frame = frames_.back();
      if (frame.successors.empty()) {
        close();
        continue;
      }
      const std::uint32_t to = frame.successors.back();
      frame.successors.pop_back();
      if (number_[to] == 0) {
        open(to);
      } else if (is_open_[to]) {
        low_[frame.channel] = std::min(low_[frame.channel], number_[to]);
      }
    }
  }

  void close() {
    const std::uint32_t channel = frames_.back().channel;
    frames_.pop_back();
    if (!frames_.empty()) {
      const std::uint32_t parent = frames_.back().channel;
      low_[parent] = std::min(low_[parent], low_[channel]);
    }
    if (low_[channel] != number_[channel]) return;
    std::vector<std::uint32_t> part;
    do {
      part.push_back(open_.back());
      is_open_[open_.back()] = false;
      open_.pop_back();
    } while (part.back() != channel);
    if (part.size() > 1) parts_.push_back(std::move(part));  // no channel leads to itself
  }

  const Survey& survey_;
  const Channels& channels_;
  std::uint32_t last_number_ = 0;
  std::vector<std::uint32_t> number_;  // by channel, in the order of visits; 0: not yet
  std::vector<std::uint32_t> low_;
  std::vector<bool> is_open_;
  std::vector<std::uint32_t> open_;
  std::vector<Frame> frames_;
  std::vector<std::vector<std::uint32_t>> parts_;
};

}  // namespace

void examine_credit_loops(const Survey& survey, const Channels& channels, Report& report) {
  Loops loops(survey, channels);
  for (const std::vector<std::uint32_t>& part : loops.parts()) {
    const std::vector<std::uint32_t> circle = loops.shortest_circle(part);
    std::string text;
    for (const std::uint32_t channel : circle) {
      text += survey.place(survey.ports[channel]) + " -> ";
    }
    const SurveyPort& first = survey.ports[circle.front()];
    report.findings.push_back(
        {Severity::Warning, "credit loops", survey.place(first),
         fmt::format("{}port {}: {} channels wait for each other in a circle; {} are joined by "
                     "circles",
                     text, first.number, circle.size(), part.size()),
         "adapters of hardware could stand still here, if all data goes on one virtual lane: use a "
         "routing engine that keeps circles apart (OpenSM: -R updn, lash, dfsssp, torus-2QoS); "
         "softib queues nothing and does not stand still"});
  }
  for (std::size_t i = 0; i < channels.size(); ++i) {
    if (channels[i] != PortMask{}) ++report.counts.channels;
  }
}

}  // namespace ib::fabric::health
