// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Checks that look at elements and ports one by one, or compare those of a subnet. examine.cpp
// calls them after the ways and puts their findings in order.
#include "fabric/health/element_checks.h"

#include "mad/link_ability.h"
#include "verbs/link_speed.h"
#include "verbs/types.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>

namespace ib::fabric::health {
namespace {

using verbs::PortState;

bool is_cabled_end(const Survey& survey, const SurveyPort& port) {
  return port.is_ethernet == 0 && survey.element_of(port).is_switch == 0 && port.peer != kNoIndex;
}

std::string rate_text(std::uint8_t width, std::uint8_t speed) {
  const verbs::LinkSpeed found = verbs::link_speed(speed);
  return fmt::format("{}x of {} Gb/s", verbs::link_lanes(width), found.tenths / 10.0);
}

}  // namespace

void examine_guids(const Survey& survey, Report& report) {
  std::unordered_map<std::uint64_t, const SurveyElement*> nodes;
  for (const SurveyElement& element : survey.elements) {
    if (element.is_gone != 0) continue;
    const auto [found, is_new] = nodes.try_emplace(element.guid, &element);
    if (is_new) continue;
    report.findings.push_back(
        {Severity::Fault, "guids", std::string(survey.name(element)),
         fmt::format("{:#018x} is the GUID of {} too", element.guid, survey.name(*found->second)),
         "give one of them another GUID: managers take them for one element"});
  }
  std::unordered_map<std::uint64_t, const SurveyPort*> ports;
  for (const SurveyPort& port : survey.ports) {
    const bool is_there = survey.element_of(port).is_gone == 0;
    if (!is_there || !survey.is_end_port(port) || port.guid == 0) continue;
    const auto [found, is_new] = ports.try_emplace(port.guid, &port);
    if (is_new) continue;
    report.findings.push_back(
        {Severity::Fault, "guids", survey.place(port),
         fmt::format("{:#018x} is the GUID of {} too", port.guid, survey.place(*found->second)),
         "give one of them another GUID: both have the same GID"});
  }
}

void examine_lids(const Survey& survey, Report& report) {
  std::map<std::pair<std::uint32_t, std::uint32_t>, const SurveyPort*> owners;
  for (const SurveyPort& port : survey.ports) {
    const bool has_lids = survey.is_end_port(port) && port.is_ethernet == 0 && port.lid != 0;
    if (!has_lids || (port.peer == kNoIndex && survey.element_of(port).is_switch == 0)) continue;
    for (std::uint32_t lid = port.lid; lid < port.lid + (1u << port.lmc); ++lid) {
      const auto [found, is_new] = owners.try_emplace({port.subnet, lid}, &port);
      if (is_new) continue;
      report.findings.push_back(
          {Severity::Fault, "lids", survey.place(port),
           fmt::format("LID {} is that of {} too", lid, survey.place(*found->second)),
           "let the subnet manager sweep again: packets reach one of the two"});
      break;
    }
  }
}

void examine_managers(const Survey& survey, Report& report) {
  std::map<std::uint32_t, std::pair<const SurveyPort*, bool>> subnets;  // one end; has a manager
  for (const SurveyPort& port : survey.ports) {
    if (port.is_ethernet == 0 && port.is_sm != 0) subnets[port.subnet].second = true;
    if (is_cabled_end(survey, port)) subnets[port.subnet].first = &port;
  }
  for (const auto& [subnet, about] : subnets) {
    const auto& [port, has_manager] = about;
    if (port == nullptr) continue;
    ++report.counts.subnets;
    if (has_manager || survey.softib_manages) continue;
    report.findings.push_back(
        {Severity::Fault, "managers", survey.place(*port),
         "no subnet manager works in its subnet, and softib keeps out of it (--sm none)",
         "start one: `softib run -- opensm`; or start the fabric without --sm none"});
  }
}

namespace {

// Why the link of a port is down; empty: the other end says it.
std::string why_down(const Survey& survey, const SurveyPort& port) {
  const SurveyPort& peer = *survey.peer_of(port);
  if (port.physical_state == kDisabled) return "somebody has disabled it";
  if (peer.physical_state == kDisabled || survey.element_of(peer).is_absent != 0) return {};
  return "no width or speed is enabled at both ends";
}

}  // namespace

void examine_ports(const Survey& survey, Report& report) {
  for (const SurveyPort& port : survey.ports) {
    const auto state = static_cast<PortState>(port.state);
    const SurveyElement& element = survey.element_of(port);
    if (port.is_ethernet != 0 || port.peer == kNoIndex || element.is_absent != 0) continue;
    if (state == PortState::Active) continue;
    Finding finding;
    finding.check = "ports";
    finding.where = survey.place(port);
    if (port.physical_state == kLinkUp) {
      finding.what = fmt::format("its link is up, and it is in state {}: no data",
                                 state == PortState::Armed ? "Armed" : "Init");
      finding.remedy = "a subnet manager has to activate it";
    } else {
      const std::string why = why_down(survey, port);
      if (why.empty()) continue;
      finding.what = fmt::format("it is down: {}", why);
      finding.remedy = element.is_switch != 0
                           ? "`softib cable up`, or `ibportstate LID PORT enable`"
                           : "`softib port up`, or `ibportstate LID PORT enable`";
      if (port.physical_state != kDisabled) {
        finding.remedy =
            "enable one at both: `ibportstate LID PORT width 255`, speed 15, espeed 31";
      }
    }
    report.findings.push_back(std::move(finding));
  }
  for (const SurveyElement& element : survey.elements) {
    const bool has_cable = std::ranges::any_of(
        survey.ports_of(element), [](const SurveyPort& port) { return port.peer != kNoIndex; });
    if (element.is_absent == 0 || !has_cable) continue;
    const bool is_switch = element.is_switch != 0;
    report.findings.push_back(
        {is_switch ? Severity::Fault : Severity::Warning, "ports",
         std::string(survey.name(element)),
         is_switch ? "it has no power, so its cables are down" : "it is asleep or pulled out",
         is_switch ? "`softib switch up`" : "`softib hca add`, `softib power wake`"});
  }
}

void examine_links(const Survey& survey, Report& report) {
  for (const SurveyPort& port : survey.ports) {
    const SurveyPort* peer = survey.peer_of(port);
    if (peer == nullptr || peer < &port || port.is_ethernet != 0) continue;
    ++report.counts.cables;
    if (port.physical_state != kLinkUp || peer->physical_state != kLinkUp) continue;
    const auto best = mad::common_rate(mad::ability_of({port.best_width, port.best_speed}),
                                       mad::ability_of({peer->best_width, peer->best_speed}));
    const bool is_slower =
        best && (verbs::link_lanes(port.width) < verbs::link_lanes(best->width) ||
                 port.speed < best->speed);
    if (!is_slower) continue;
    report.findings.push_back(
        {Severity::Fault, "links", survey.place(port),
         fmt::format("its link to {} runs at {}, and both ends could do {}", survey.place(*peer),
                     rate_text(port.width, port.speed), rate_text(best->width, best->speed)),
         "enable the rest at both ends and let it train again: `ibportstate LID PORT width 255`, "
         "speed 15, espeed 31, reset"});
  }
}

namespace {

// Ports of a subnet that have the same partitions.
struct Group {
  std::set<std::uint16_t> pkeys;
  const SurveyPort* first = nullptr;
  std::uint64_t size = 0;
};

bool share_any(const Group& a, const Group& b) {
  return std::ranges::any_of(a.pkeys, [&](std::uint16_t mine) {
    return std::ranges::any_of(
        b.pkeys, [&](std::uint16_t other) { return verbs::share_partition(mine, other); });
  });
}

std::string text_of(const Group& group) {
  std::string pkeys;
  for (const std::uint16_t pkey : group.pkeys) pkeys += fmt::format(" {:#06x}", pkey);
  return fmt::format("{} port{} with {}", group.size, group.size == 1 ? "" : "s",
                     pkeys.empty() ? "no P_Key" : pkeys.substr(1));
}

}  // namespace

// A partition for each of many tenants makes as many pairs as the square of their number.
constexpr std::size_t kMostPartitionFindings = 1000;

void examine_partitions(const Survey& survey, Report& report) {
  std::map<std::uint32_t, std::map<std::set<std::uint16_t>, Group>> subnets;
  for (const SurveyPort& port : survey.ports) {
    const bool is_end = port.is_ethernet == 0 && survey.element_of(port).is_switch == 0;
    if (!is_end || port.lid == 0) continue;
    std::set<std::uint16_t> pkeys;
    for (const std::uint16_t pkey : survey.pkeys_of(port)) {
      if ((pkey & 0x7fff) != 0) pkeys.insert(pkey);
    }
    Group& group = subnets[port.subnet][pkeys];
    if (group.size++ == 0) group.first = &port;
    group.pkeys = std::move(pkeys);
  }
  std::size_t said = 0;
  for (const auto& [subnet, groups] : subnets) {
    for (auto a = groups.begin(); a != groups.end(); ++a) {
      for (auto b = a; b != groups.end(); ++b) {
        const Group& one = a->second;
        const Group& other = b->second;
        const std::uint64_t pairs = a == b ? one.size * (one.size - 1) / 2 : one.size * other.size;
        report.counts.pairs += pairs;
        if (pairs == 0 || share_any(one, other)) continue;
        report.counts.pairs_apart += pairs;
        if (++said > kMostPartitionFindings) continue;
        report.findings.push_back(
            {Severity::Warning, "partitions", survey.place(*one.first),
             a == b
                 ? fmt::format("{}: they cannot talk to each other, {} pairs", text_of(one), pairs)
                 : fmt::format("{} and {}, such as {}, have no partition in common: {} pairs",
                               text_of(one), text_of(other), survey.place(*other.first), pairs),
             "if that is not meant: a partition of which one of two is a full member (P_Key with "
             "0x8000); OpenSM's partitions.conf, or `softib partition add`"});
      }
    }
  }
}

}  // namespace ib::fabric::health
