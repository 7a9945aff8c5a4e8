// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Each finding provoked, in a fabric or in its survey; and none where nothing is wrong.
#include "fabric/health/examine.h"

#include "fabric/health/credit_loops.h"
#include "fabric/health/take_survey.h"
#include "fabric/health/ways.h"
#include "fabric/management/subnet_test.h"
#include "fabric/port_states.h"
#include "fabric/subnet_setup.h"

#include <fmt/format.h>

namespace ib::fabric::health {
namespace {

using test::Subnet;
using verbs::PortState;

Survey survey_of(const Fabric& fabric) {
  Survey survey = take_survey(fabric);
  std::uint32_t next = 0;
  while (true) {
    const std::string bytes = table_bytes(fabric.graph(), next);
    if (bytes.empty()) return survey;
    const auto after = take_tables(survey, bytes);
    EXPECT_TRUE(after && *after > next);
    if (!after) return survey;
    next = *after;
  }
}

std::string text_of(const Report& report) {
  std::string text;
  for (const Finding& each : report.findings) {
    text +=
        fmt::format("{} {}: {}: {} ({})\n", each.severity == Severity::Fault ? "fault" : "warning",
                    each.check, each.where, each.what, each.remedy);
  }
  return text;
}

// The one finding.
Finding only(const Report& report) {
  EXPECT_EQ(report.findings.size(), 1u) << text_of(report);
  return report.findings.empty() ? Finding() : report.findings.front();
}

// fat-tree:levels=2,ports=4 has 8 adapters, two at the first ports of each leaf.
constexpr const char* kTree = "fat-tree:levels=2,ports=4";
constexpr std::uint64_t kWays = 8 * 7;

const Element& leaf_of(Subnet& t, std::size_t node) {
  return t.graph().element_of(*t.graph().peer_of(t.port_of_node(node)));
}

TEST(Examination, ATreeIsInOrder) {
  Subnet t(kTree);
  const Report report = examine(survey_of(t.fabric));
  EXPECT_EQ(text_of(report), "");
  EXPECT_EQ(report.counts.switches, 6u);
  EXPECT_EQ(report.counts.adapters, 8u);
  EXPECT_EQ(report.counts.cables, 16u);
  EXPECT_EQ(report.counts.subnets, 1u);
  EXPECT_EQ(report.counts.ways, kWays);
  EXPECT_EQ(report.counts.ways_cut_off, 0u);
  EXPECT_GT(report.counts.channels, 0u);
  EXPECT_EQ(report.counts.pairs, 8u * 7 / 2);
}

TEST(Examination, ASwitchThatWasTakenOutIsNotThere) {
  Subnet t("star:3");
  for (const std::uint32_t number : {1u, 2u, 3u}) {
    t.graph().disconnect(*t.graph().port_of(t.the_switch(), number));
  }
  t.graph().element_of(*t.graph().port_of(t.the_switch(), 0)).is_gone = true;
  const Report report = examine(survey_of(t.fabric));
  EXPECT_EQ(text_of(report), "");
  EXPECT_EQ(report.counts.switches, 0u);
  EXPECT_EQ(report.counts.adapters, 3u);
}

TEST(Examination, TheIdealNetworkIsInOrder) {
  const Fabric fabric = *Fabric::create({{"node0", "node1"}});
  const Report report = examine(survey_of(fabric));
  EXPECT_EQ(text_of(report), "");
  EXPECT_EQ(report.counts.ideal_ports, 2u);
  EXPECT_EQ(report.counts.ways, 0u);
}

TEST(Examination, ATableWithoutAnEntryCutsWaysOff) {
  Subnet t(kTree);
  const Element& leaf = leaf_of(t, 0);
  fresh_tables(t.graph(), leaf).set_linear(t.port_of_node(7).lid, kNoPort);
  const Report report = examine(survey_of(t.fabric));
  const Finding found = only(report);
  EXPECT_EQ(found.severity, Severity::Fault);
  EXPECT_EQ(found.check, "ways");
  EXPECT_EQ(found.where, leaf.description);
  EXPECT_EQ(found.what, fmt::format("its table has no port for LID {}: 2 ways are cut off, as from "
                                    "node0 softib0 to node7 softib0",
                                    t.port_of_node(7).lid));
  EXPECT_EQ(report.counts.ways, kWays);
  EXPECT_EQ(report.counts.ways_cut_off, 2u);
}

// A spine that has forgotten all: it is told once, with all ways that need it.
TEST(Examination, FaultsAreToldByTheirPlace) {
  Subnet t(kTree);
  const Element& leaf = leaf_of(t, 0);
  Survey survey = survey_of(t.fabric);
  survey.tables[t.graph().port_of(leaf, 0)->element].clear();
  const Report report = examine(survey);
  const Finding found = only(report);
  EXPECT_EQ(found.where, leaf.description);
  // Within the leaf, out of it and into it.
  EXPECT_EQ(report.counts.ways_cut_off, 2u + 2 * 6 + 6 * 2);
  EXPECT_TRUE(found.what.starts_with("its table has no port for 8 LIDs: 26 ways")) << found.what;
}

TEST(Examination, AnAdapterIsTheWrongEnd) {
  Subnet t(kTree);
  fresh_tables(t.graph(), leaf_of(t, 0)).set_linear(t.port_of_node(7).lid, 2);
  const Finding found = only(examine(survey_of(t.fabric)));
  EXPECT_EQ(found.where, "port 2 of " + leaf_of(t, 0).description);
  EXPECT_NE(found.what.find("to node1 softib0, which does not have them"), std::string::npos);
}

TEST(Examination, ACircleIsNamed) {
  Subnet t(kTree);
  const Element& leaf = leaf_of(t, 0);
  const std::uint16_t lid = t.port_of_node(7).lid;
  const std::uint8_t up = fresh_tables(t.graph(), leaf).port_to(lid);
  const Port& down = *t.graph().peer_of(*t.graph().port_of(leaf, up));
  const Element& spine = t.graph().element_of(down);
  fresh_tables(t.graph(), spine).set_linear(lid, static_cast<std::uint8_t>(down.number));
  const Report report = examine(survey_of(t.fabric));
  const Finding found = only(report);
  EXPECT_NE(found.what.find("in a circle: "), std::string::npos) << found.what;
  EXPECT_NE(found.what.find(fmt::format("port {} of {} -> ", up, leaf.description)),
            std::string::npos)
      << found.what;
  EXPECT_NE(found.what.find(fmt::format("port {} of {} -> ", down.number, spine.description)),
            std::string::npos)
      << found.what;
}

TEST(Examination, ACableThatIsDownIsToldWithTheWaysThatNeedIt) {
  Subnet t(kTree, SubnetManagement::Programs);
  Subnet managed(kTree);
  Survey survey = survey_of(managed.fabric);
  const Element& leaf = leaf_of(managed, 0);
  const std::uint8_t up = fresh_tables(managed.graph(), leaf).port_to(managed.port_of_node(7).lid);
  SurveyPort& port = survey.ports[managed.graph().index_of(*managed.graph().port_of(leaf, up))];
  SurveyPort& peer = survey.ports[port.peer];
  for (SurveyPort* each : {&port, &peer}) {
    each->state = static_cast<std::uint8_t>(PortState::Down);
    each->physical_state = kPolling;
  }
  port.physical_state = kDisabled;
  const Report report = examine(survey);
  ASSERT_EQ(report.findings.size(), 3u) << text_of(report);
  EXPECT_EQ(report.findings[0].check, "ports");
  EXPECT_EQ(report.findings[0].where, survey.place(port)) << "the end that is disabled";
  EXPECT_EQ(report.findings[0].what, "it is down: somebody has disabled it");
  EXPECT_EQ(report.findings[1].check, "ways");
  EXPECT_NE(text_of(report).find(survey.place(port) + ": "), std::string::npos);
  EXPECT_GT(report.counts.ways_cut_off, 0u);
}

TEST(Examination, PortsThatNobodyActivates) {
  Subnet t("star:3", SubnetManagement::Programs);
  Survey survey = survey_of(t.fabric);
  Report report = examine(survey);
  // Both ends of each cable, and no manager.
  ASSERT_EQ(report.findings.size(), 7u) << text_of(report);
  EXPECT_EQ(report.findings[0].check, "managers");
  EXPECT_EQ(report.findings[1].what, "its link is up, and it is in state Init: no data");
  EXPECT_EQ(report.counts.ways, 0u);
  survey.ports[t.graph().index_of(t.port_of_node(1))].is_sm = 1;
  report = examine(survey);
  EXPECT_EQ(report.findings.size(), 6u) << text_of(report);
}

TEST(Examination, AnAdapterThatIsAbsentIsAWarning) {
  Subnet t("star:3");
  Survey survey = survey_of(t.fabric);
  SurveyPort& port = survey.ports[t.graph().index_of(t.port_of_node(1))];
  survey.elements[port.element].is_absent = 1;
  for (SurveyPort* each : {&port, &survey.ports[port.peer]}) {
    each->state = static_cast<std::uint8_t>(PortState::Down);
    each->physical_state = kPolling;
  }
  const Finding found = only(examine(survey));
  EXPECT_EQ(found.severity, Severity::Warning);
  EXPECT_EQ(found.where, "node1 softib0");
  survey.elements[port.element].is_switch = 1;
  EXPECT_EQ(examine(survey).findings.front().severity, Severity::Fault) << "a switch without power";
}

TEST(Examination, LinksThatCouldBeFaster) {
  Subnet t("star:3");
  Port& port = t.port_of_node(1);
  Port& peer = *t.graph().peer_of(port);
  for (Port* each : {&port, &peer}) each->width = 1;
  Finding found = only(examine(survey_of(t.fabric)));
  EXPECT_EQ(found.check, "links");
  EXPECT_EQ(found.what, "its link to " +
                            fmt::format("port {} of {}", peer.number, leaf_of(t, 1).description) +
                            " runs at 1x of 25 Gb/s, and both ends could do 4x of 25 Gb/s");
  for (Port* each : {&port, &peer}) each->width = 2;
  for (Port* each : {&port, &peer}) each->speed = 4;
  EXPECT_EQ(only(examine(survey_of(t.fabric))).check, "links");
  peer.best_speed = 4;
  EXPECT_EQ(text_of(examine(survey_of(t.fabric))), "") << "one end cannot do more";
}

TEST(Examination, AddressesThatAreThereTwice) {
  Subnet t("star:3");
  const std::uint32_t one = t.graph().index_of(t.port_of_node(1));
  const std::uint32_t other = t.graph().index_of(t.port_of_node(0));
  Survey survey = survey_of(t.fabric);
  survey.ports[one].guid = survey.ports[other].guid;
  Finding found = only(examine(survey));
  EXPECT_EQ(found.check, "guids");
  EXPECT_NE(found.what.find("of port 1 of node0 softib0 too"), std::string::npos) << found.what;
  survey = survey_of(t.fabric);
  survey.elements[survey.ports[other].element].guid =
      survey.elements[survey.ports[one].element].guid;
  EXPECT_EQ(only(examine(survey)).check, "guids");
  survey = survey_of(t.fabric);
  survey.ports[other].lmc = 7;  // its LIDs reach into others
  EXPECT_EQ(examine(survey).findings.front().check, "lids");
}

TEST(Examination, PartitionsThatKeepProgramsApart) {
  Subnet t("star:4");
  t.port_of_node(0).pkeys = {0x8001, 0};
  t.port_of_node(1).pkeys = {0x0001};
  t.port_of_node(2).pkeys = {0x0001};
  t.port_of_node(3).pkeys = {0x8002, 0x8001};
  const Report report = examine(survey_of(t.fabric));
  const Finding found = only(report);
  EXPECT_EQ(found.severity, Severity::Warning);
  EXPECT_EQ(found.what, "2 ports with 0x0001: they cannot talk to each other, 1 pairs");
  EXPECT_EQ(report.counts.pairs, 6u);
  t.port_of_node(3).pkeys = {0x8002};
  EXPECT_EQ(examine(survey_of(t.fabric)).findings.size(), 3u);
}

// The fewest hops of a ring of four switches or more wait for each other in a circle; those of a
// tree do not, nor those of a mesh, where x goes before y.
TEST(Examination, CreditLoopsAreNamed) {
  Subnet t("torus:5x1");
  const Report report = examine(survey_of(t.fabric));
  ASSERT_EQ(report.findings.size(), 2u) << text_of(report);
  for (const Finding& each : report.findings) {
    EXPECT_EQ(each.check, "credit loops");
    EXPECT_EQ(each.severity, Severity::Warning);
    EXPECT_NE(each.what.find("5 channels wait for each other"), std::string::npos) << each.what;
  }
  EXPECT_EQ(report.counts.channels, 10u) << "both directions";
}

TEST(Survey, ItCrossesToAnotherProcess) {
  Subnet t(kTree);
  const Survey survey = survey_of(t.fabric);
  const std::string bytes = to_bytes(survey);
  auto copy = survey_from(bytes);
  ASSERT_TRUE(copy);
  copy->tables = survey.tables;
  EXPECT_EQ(to_bytes(*copy), bytes);
  EXPECT_EQ(text_of(examine(*copy)), "");
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    ASSERT_FALSE(survey_from(std::string_view(bytes).substr(0, size))) << size;
  }
  EXPECT_FALSE(survey_from(bytes + "x"));
}

TEST(Survey, IndexesThatLeadNowhereAreRefused) {
  Subnet t("star:3");
  const Survey good = take_survey(t.fabric);
  const auto is_refused = [&](auto&& change) {
    Survey bad = good;
    change(bad);
    return !survey_from(to_bytes(bad));
  };
  EXPECT_FALSE(is_refused([](Survey&) {}));
  EXPECT_TRUE(is_refused([](Survey& p) { p.ports[1].peer = 1000; }));
  EXPECT_TRUE(is_refused([](Survey& p) { p.ports[1].element = 1000; }));
  EXPECT_TRUE(is_refused([](Survey& p) { p.ports[1].pkey_count = 1000; }));
  EXPECT_TRUE(is_refused([](Survey& p) { p.elements[1].port_count = 0xffffffff; }));
  EXPECT_TRUE(is_refused([](Survey& p) { p.elements[1].name_at = 0xffffffff; }));
  Survey survey = good;
  std::string tables;
  append_table(tables, 1000, {});
  EXPECT_FALSE(take_tables(survey, tables));
  tables.clear();
  append_table(tables, 0, std::vector<std::uint8_t>(5));
  EXPECT_FALSE(take_tables(survey, std::string_view(tables).substr(0, tables.size() - 1)));
}

}  // namespace
}  // namespace ib::fabric::health
