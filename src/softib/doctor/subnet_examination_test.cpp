// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "softib/doctor/subnet_examination.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace ib::softib {
namespace {

using fabric::health::Report;
using fabric::health::Severity;

Report with_findings(int ports, int loops) {
  Report report;
  for (int i = 0; i < ports; ++i) {
    report.findings.push_back({Severity::Fault, "ports", "port " + std::to_string(i + 1) + " of x",
                               "it is down", "take it up"});
  }
  for (int i = 0; i < loops; ++i) {
    report.findings.push_back({Severity::Warning, "credit loops", "port 1 of y", "a circle", "-"});
  }
  report.counts.adapters = 1;
  report.counts.switches = 2;
  report.counts.ways = 12;
  return report;
}

TEST(SubnetPage, WithoutFindingsItSaysWhatWasLookedAt) {
  EXPECT_EQ(subnet_page(with_findings(0, 0)),
            "checked: 1 adapter, 2 switches, 0 cables, 0 subnets\n"
            "  12 ways of data from port to LID by the tables of the switches: all arrive\n"
            "  0 channels from switch to switch that lead on to others, for credit loops\n"
            "  0 pairs of ports, for a common partition\n"
            "no fault\n");
}

TEST(SubnetPage, OfManyFindingsOfOneCheckItHasTwenty) {
  const Report report = with_findings(25, 2);
  const std::string page = subnet_page(report);
  EXPECT_NE(page.find("FAULT ports: port 20 of x\n      it is down\n      fix:  take it up\n"),
            std::string::npos)
      << page;
  EXPECT_EQ(page.find("port 21 of x"), std::string::npos);
  EXPECT_NE(page.find("ports: 5 more (--json has all)\n"), std::string::npos);
  EXPECT_NE(page.find("warn  credit loops: port 1 of y\n"), std::string::npos);
  EXPECT_TRUE(page.ends_with("25 faults, 2 warnings\n")) << page;
  EXPECT_EQ(count_faults(report), 25u);
  EXPECT_TRUE(subnet_page(with_findings(0, 1)).ends_with("no fault, 1 warning\n"));
}

TEST(SubnetPage, WaysThatAreCutOffAndPortsThatAreNotLookedAt) {
  Report report = with_findings(1, 0);
  report.counts.ways_cut_off = 3;
  report.counts.ideal_ports = 1;
  report.counts.ethernet_ports = 2;
  const std::string page = subnet_page(report);
  EXPECT_NE(page.find("switches: 3 cut off\n"), std::string::npos);
  EXPECT_NE(page.find("  1 port without a cable: the ideal network joins"), std::string::npos);
  EXPECT_NE(page.find("  not looked at: 2 Ethernet ports\n"), std::string::npos);
}

TEST(SubnetPage, TheJsonHasAll) {
  const auto json = nlohmann::json::parse(subnet_json(with_findings(25, 1), "f"));
  EXPECT_EQ(json["fabric"], "f");
  EXPECT_EQ(json["faults"], 25);
  EXPECT_EQ(json["findings"].size(), 26u);
  EXPECT_EQ(json["findings"][25]["severity"], "warning");
  EXPECT_EQ(json["findings"][0]["fix"], "take it up");
  EXPECT_EQ(json["checked"]["ways"], 12);
}

}  // namespace
}  // namespace ib::softib
