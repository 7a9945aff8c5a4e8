// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// For each LID one pass over the switches, each of which is walked once. The links that ways use
// one after the other are the channels of credit_loops.cpp.
#include "fabric/health/ways.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>

namespace ib::fabric::health {
namespace {

enum class Kind : std::uint8_t { NoEntry, NoCable, WrongEnd, Circle };

// A place where ways end that should not.
struct Fault {
  Kind kind = Kind::NoEntry;
  std::uint32_t port = 0;             // by which the switch sends it, or its port 0
  std::vector<std::uint32_t> circle;  // ports by which it leaves the switches
  std::uint64_t ways = 0;
  std::uint32_t lids = 0;
  std::uint16_t last_lid = 0;
  std::uint32_t from = 0;  // one of them
  std::uint32_t to = 0;
};

// A switch with adapters that send.
struct Entry {
  std::uint32_t element = 0;
  std::vector<std::uint32_t> sources;
};

class Ways {
 public:
  Ways(const Survey& survey, Report& report)
      : survey_(survey),
        report_(report),
        channels_(survey.ports.size()),
        seen_(survey.elements.size()),
        outcome_(survey.elements.size()),
        next_(survey.elements.size()) {}

  Channels examine() {
    find_entries();
    for (const SurveyPort& to : survey_.ports) {
      if (!survey_.is_data_end(to)) continue;
      for (unsigned i = 0; i < 1u << to.lmc; ++i) {
        examine_lid(to, static_cast<std::uint16_t>(to.lid + i));
      }
    }
    for (const Fault& fault : faults_) tell(fault);
    return std::move(channels_);
  }

 private:
  static constexpr std::uint32_t kArrives = 0;  // else 1 + index of a fault
  static constexpr std::uint32_t kUnderWay = kNoIndex;

  void find_entries() {
    std::unordered_map<std::uint32_t, std::size_t> place_of;  // of a switch, in its list
    for (const SurveyPort& from : survey_.ports) {
      if (!survey_.is_data_end(from)) continue;
      const std::uint32_t element = survey_.peer_of(from)->element;
      if (survey_.elements[element].is_switch == 0) continue;
      std::vector<Entry>& entries = entries_[from.subnet];
      const auto [found, is_new] = place_of.try_emplace(element, entries.size());
      if (is_new) entries.push_back({element, {}});
      entries[found->second].sources.push_back(survey_.index_of(from));
    }
  }

  void examine_lid(const SurveyPort& to, std::uint16_t lid) {
    const SurveyPort& last = *survey_.peer_of(to);
    if (survey_.element_of(last).is_switch == 0) {  // a cable between two adapters
      if (survey_.is_data_end(last)) ++report_.counts.ways;
      return;
    }
    ++generation_;
    for (const Entry& entry : entries_[to.subnet]) {
      const bool is_own = entry.element == last.element;
      const std::uint64_t ways = entry.sources.size() - (is_own ? 1 : 0);
      report_.counts.ways += ways;
      if (ways == 0) continue;
      const std::uint32_t outcome = follow(entry.element, to, lid);
      if (outcome != kArrives) count(faults_[outcome - 1], entry, to, lid, ways);
    }
  }

  void count(Fault& fault, const Entry& entry, const SurveyPort& to, std::uint16_t lid,
             std::uint64_t ways) {
    report_.counts.ways_cut_off += ways;
    if (fault.ways == 0) {
      const std::uint32_t end = survey_.index_of(to);
      fault.from = entry.sources[0] != end ? entry.sources[0] : entry.sources[1];
      fault.to = end;
    }
    if (fault.last_lid != lid) ++fault.lids;
    fault.last_lid = lid;
    fault.ways += ways;
  }

  // From a switch on; each switch is looked at once for a LID.
  std::uint32_t follow(std::uint32_t element, const SurveyPort& to, std::uint16_t lid) {
    way_.clear();
    std::uint32_t outcome = kArrives;
    while (true) {
      if (seen_[element] == generation_) {
        outcome = outcome_[element];
        if (outcome == kUnderWay) outcome = circle_from(element);
        break;
      }
      seen_[element] = generation_;
      outcome_[element] = kUnderWay;
      const SurveyPort* out = out_port(survey_.elements[element], lid);
      if (out == nullptr) {
        way_.push_back(survey_.elements[element].first_port);
        outcome = fault(Kind::NoEntry, way_.back());
        break;
      }
      way_.push_back(survey_.index_of(*out));
      if (!survey_.carries(*out)) {
        outcome = fault(Kind::NoCable, way_.back());
        break;
      }
      if (out->peer == survey_.index_of(to)) break;
      element = survey_.peer_of(*out)->element;
      if (survey_.elements[element].is_switch == 0) {
        outcome = fault(Kind::WrongEnd, way_.back());
        break;
      }
    }
    if (outcome == kArrives) note_channels(element, to);
    for (const std::uint32_t port : way_) outcome_[survey_.ports[port].element] = outcome;
    return outcome;
  }

  // Where the way joined another one, `element` is the switch, and its port follows the last one.
  void note_channels(std::uint32_t element, const SurveyPort& to) {
    for (std::size_t i = 0; i + 1 < way_.size(); ++i) note(way_[i], way_[i + 1]);
    const SurveyPort& last = survey_.ports[way_.empty() ? 0 : way_.back()];
    const bool has_joined = !way_.empty() && last.peer != survey_.index_of(to);
    if (has_joined) note(way_.back(), next_[element]);
    for (const std::uint32_t port : way_) {
      next_[survey_.ports[port].element] = port;
    }
  }
  void note(std::uint32_t channel, std::uint32_t next) {
    const SurveyPort& port = survey_.ports[next];
    const SurveyPort* peer = survey_.peer_of(port);
    if (survey_.element_of(*peer).is_switch == 0) return;  // an adapter sends nothing on
    channels_[channel][port.number / 64] |= std::uint64_t{1} << port.number % 64;
  }

  const SurveyPort* out_port(const SurveyElement& element, std::uint16_t lid) const {
    const std::vector<std::uint8_t>& table =
        survey_.tables[survey_.ports[element.first_port].element];
    const std::uint8_t number = lid < table.size() ? table[lid] : kNoPort;
    if (number == 0 || number == kNoPort || number >= element.port_count) return nullptr;
    return &survey_.ports[element.first_port + number];
  }

  std::uint32_t circle_from(std::uint32_t element) {
    const auto first = std::ranges::find_if(
        way_, [&](std::uint32_t port) { return survey_.ports[port].element == element; });
    std::vector<std::uint32_t> circle(first, way_.end());
    std::rotate(circle.begin(), std::ranges::min_element(circle), circle.end());
    const std::uint32_t number = fault(Kind::Circle, circle.front());
    Fault& found = faults_[number - 1];
    if (found.circle.empty()) found.circle = std::move(circle);
    return number;
  }

  std::uint32_t fault(Kind kind, std::uint32_t port) {
    const auto [found, is_new] =
        fault_numbers_.try_emplace({kind, port}, static_cast<std::uint32_t>(faults_.size() + 1));
    if (is_new) {
      faults_.emplace_back();
      faults_.back().kind = kind;
      faults_.back().port = port;
    }
    return found->second;
  }

  std::string list_of(const std::vector<std::uint32_t>& ports) const {
    std::string text;
    for (const std::uint32_t port : ports) text += survey_.place(survey_.ports[port]) + " -> ";
    return text + std::string(survey_.name(survey_.element_of(survey_.ports[ports.front()])));
  }

  void tell(const Fault& fault) {
    const SurveyPort& port = survey_.ports[fault.port];
    const SurveyPort& to = survey_.ports[fault.to];
    const std::string name(survey_.name(survey_.element_of(port)));
    const std::string lids = fault.lids == 1 ? fmt::format("LID {}", fault.last_lid)
                                             : fmt::format("{} LIDs", fault.lids);
    const std::string from(survey_.name(survey_.element_of(survey_.ports[fault.from])));
    Finding finding;
    finding.check = "ways";
    finding.where = name;
    const auto what = [&]() -> std::string {
      switch (fault.kind) {
        case Kind::NoEntry: return fmt::format("its table has no port for {}", lids);
        case Kind::NoCable:
          finding.where = survey_.place(port);
          return fmt::format("{} lead out by it, and no data crosses its cable", lids);
        case Kind::WrongEnd:
          finding.where = survey_.place(port);
          return fmt::format("{} lead out by it, to {}, which does not have them", lids,
                             survey_.name(survey_.element_of(*survey_.peer_of(port))));
        case Kind::Circle: return fmt::format("{} go in a circle: {}", lids, list_of(fault.circle));
      }
      return {};
    }();
    finding.what = fmt::format("{}: {} ways are cut off, as from {} to {}", what, fault.ways, from,
                               survey_.name(survey_.element_of(to)));
    finding.remedy = "`softib path` shows such a way; let the subnet manager sweep again";
    report_.findings.push_back(std::move(finding));
  }

  const Survey& survey_;
  Report& report_;
  Channels channels_;
  std::unordered_map<std::uint32_t, std::vector<Entry>> entries_;  // by subnet
  std::uint32_t generation_ = 0;                                   // one for each LID
  std::vector<std::uint32_t> seen_;     // by element: the generation that was there last
  std::vector<std::uint32_t> outcome_;  // by element, of that generation
  std::vector<std::uint32_t> next_;     // by element, where the way arrives: its port
  std::vector<std::uint32_t> way_;      // ports by which it leaves switches
  std::vector<Fault> faults_;
  std::map<std::pair<Kind, std::uint32_t>, std::uint32_t> fault_numbers_;
};

}  // namespace

Channels examine_ways(const Survey& survey, Report& report) {
  return Ways(survey, report).examine();
}

}  // namespace ib::fabric::health
