// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "fabric/health/take_survey.h"

#include "fabric/subnet_setup.h"

#include <algorithm>

namespace ib::fabric::health {
namespace {

SurveyPort survey_of(const Fabric& fabric, const Port& port, Survey& survey) {
  const Graph& graph = fabric.graph();
  SurveyPort out;
  out.guid = port.guid;
  out.element = port.element;
  const Port* peer = graph.peer_of(port);
  out.peer = peer != nullptr ? graph.index_of(*peer) : kNoIndex;
  out.subnet = graph.subnet_of(port);
  out.pkeys_at = static_cast<std::uint32_t>(survey.pkeys.size());
  survey.pkeys.insert(survey.pkeys.end(), port.pkeys.begin(), port.pkeys.end());
  out.pkey_count = static_cast<std::uint32_t>(port.pkeys.size());
  out.lid = port.lid;
  out.lmc = port.lmc;
  out.number = static_cast<std::uint8_t>(port.number);
  out.state = static_cast<std::uint8_t>(port.state);
  out.physical_state = port.physical_state;
  out.width = port.width;
  out.speed = port.speed;
  out.best_width = port.best_width;
  out.best_speed = port.best_speed;
  out.is_ethernet = port.is_ethernet() ? 1 : 0;
  out.is_sm = (port.capability_mask & kIsSm) != 0 ? 1 : 0;
  return out;
}

bool is_absent(const Fabric& fabric, const Element& element) {
  if (element.is_switch()) return !element.has_power;
  const Hca* hca = fabric.find_hca(element.hca);
  return hca == nullptr || !hca->present || hca->asleep;
}

}  // namespace

Survey take_survey(const Fabric& fabric) {
  const Graph& graph = fabric.graph();
  Survey survey;
  survey.has_ideal_network = graph.has_ideal_network();
  for (std::uint32_t i = 0; i < graph.element_count(); ++i) {
    const Element& element = graph.element(i);
    const std::string name = element.name();
    const std::span<const Port> ports = graph.ports_of(element);
    SurveyElement out;
    out.guid = element.node_guid;
    out.first_port = static_cast<std::uint32_t>(survey.ports.size());
    out.port_count = static_cast<std::uint32_t>(ports.size());
    out.name_at = static_cast<std::uint32_t>(survey.names.size());
    out.name_size = static_cast<std::uint32_t>(name.size());
    out.is_switch = element.is_switch() ? 1 : 0;
    out.is_gone = element.is_gone ? 1 : 0;
    out.is_absent = is_absent(fabric, element) ? 1 : 0;
    survey.names += name;
    for (const Port& port : ports) survey.ports.push_back(survey_of(fabric, port, survey));
    survey.elements.push_back(out);
  }
  survey.softib_manages = fabric.management() == SubnetManagement::Softib;
  survey.tables.resize(survey.elements.size());
  return survey;
}

std::string table_bytes(const Graph& graph, std::uint32_t first_element) {
  constexpr int kMostSwitches = 16;  // computed in one request at most
  std::string bytes;
  int taken = 0;
  for (std::uint32_t i = first_element; i < graph.element_count() && taken < kMostSwitches; ++i) {
    const Element& element = graph.element(i);
    if (!element.is_switch()) continue;
    const Switch& tables = fresh_tables(graph, element);
    const std::size_t size =
        std::min(tables.linear.size(), tables.facts.linear_top + std::size_t{1});
    append_table(bytes, i, std::span(tables.linear).first(size));
    ++taken;
  }
  return bytes;
}

}  // namespace ib::fabric::health
