// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Gets the survey, then the tables in parts, then the survey once more: if that has changed, all is
// done again. The examination itself is in fabric/health.
#include "softib/doctor/subnet_examination.h"

#include "base/buffers.h"
#include "fabric/health/examine.h"
#include "setup/cli_error.h"
#include "softib/pages/fabric_state.h"
#include "softib/terminal/color.h"
#include "softib/terminal/columns.h"
#include "softib/terminal/terminal.h"
#include "verbs/control_topology.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <string_view>

namespace ib::softib {
namespace {

namespace health = fabric::health;
using verbs::control::TopologyForm;

std::string ask(ControlClient& client, TopologyForm form, std::uint32_t first = 0) {
  verbs::control::TopologyIn in;
  in.form = form;
  in.first = first;
  return client.read_text(static_cast<verbs::control::Code>(verbs::control::TopologyCode::Topology),
                          bytes_of(in), kLimitOfAll);
}

CliError not_understood() {
  return {Exit::Daemon, "softibd answers in another form; is it of another version?"};
}

void ask_tables(ControlClient& client, health::Survey& survey) {
  std::uint32_t next = 0;
  while (true) {
    const auto rest = std::find_if(
        survey.elements.begin() + std::min<std::ptrdiff_t>(next, std::ssize(survey.elements)),
        survey.elements.end(),
        [](const health::SurveyElement& each) { return each.is_switch != 0; });
    if (rest == survey.elements.end()) return;
    const auto after = health::take_tables(survey, ask(client, TopologyForm::Tables, next));
    if (!after || *after <= next) throw not_understood();
    next = *after;
  }
}

const char* severity_name(health::Severity severity) {
  return severity == health::Severity::Fault ? "FAULT" : "warn";
}

// Of one check there may be thousands.
constexpr std::size_t kMostOfOneCheck = 20;

std::string finding_text(const health::Finding& finding) {
  const auto folded = [](const std::string& text) {
    constexpr std::size_t kIndent = 12;
    return terminal_size().columns == 0 ? text : wrap_words(text, page_columns(), kIndent, 6);
  };
  const Paint paint = finding.severity == health::Severity::Fault ? Paint::Bad : Paint::Warning;
  return fmt::format("{} {}: {}\n      {}\n      fix:  {}\n",
                     painted(paint, fmt::format("{:<5}", severity_name(finding.severity))),
                     finding.check, finding.where, folded(finding.what), folded(finding.remedy));
}

std::string counted(std::uint64_t count, std::string_view one, std::string_view many) {
  return fmt::format("{} {}", count, count == 1 ? one : many);
}

std::string checked_text(const health::Counts& counts) {
  std::string text = fmt::format(
      "checked: {}, {}, {}, {}\n", counted(counts.adapters, "adapter", "adapters"),
      counted(counts.switches, "switch", "switches"), counted(counts.cables, "cable", "cables"),
      counted(counts.subnets, "subnet", "subnets"));
  const std::string ways = counted(counts.ways, "way", "ways");
  text += fmt::format(
      "  {} of data from port to LID by the tables of the switches: {}\n", ways,
      counts.ways_cut_off == 0 ? "all arrive" : fmt::format("{} cut off", counts.ways_cut_off));
  text += fmt::format("  {} from switch to switch that lead on to others, for credit loops\n",
                      counted(counts.channels, "channel", "channels"));
  text += fmt::format("  {} of ports, for a common partition\n",
                      counted(counts.pairs, "pair", "pairs"));
  if (counts.ideal_ports != 0) {
    text += fmt::format("  {} without a cable: the ideal network joins them, without tables\n",
                        counted(counts.ideal_ports, "port", "ports"));
  }
  if (counts.ethernet_ports != 0) {
    text += fmt::format("  not looked at: {}\n",
                        counted(counts.ethernet_ports, "Ethernet port", "Ethernet ports"));
  }
  return text;
}

}  // namespace

health::Report examine_subnet(ControlClient& client) {
  constexpr int kTries = 3;
  bool is_steady = false;
  std::optional<health::Survey> survey;
  std::string before = ask(client, TopologyForm::Survey);
  for (int i = 0; i < kTries && !is_steady; ++i) {
    survey = health::survey_from(before);
    if (!survey) throw not_understood();
    ask_tables(client, *survey);
    std::string after = ask(client, TopologyForm::Survey);
    is_steady = before == after;
    before = std::move(after);
  }
  health::Report report = health::examine(*survey);
  if (!is_steady) {
    report.findings.push_back({health::Severity::Warning, "subnet", "the whole fabric",
                               "it changed while it was looked at: findings may be of no moment",
                               "look again when it has come to rest"});
  }
  return report;
}

std::uint64_t count_faults(const health::Report& report) {
  return static_cast<std::uint64_t>(
      std::ranges::count(report.findings, health::Severity::Fault, &health::Finding::severity));
}

std::string subnet_page(const health::Report& report) {
  std::string text;
  std::map<std::string, std::size_t> shown;
  for (const health::Finding& finding : report.findings) {
    if (++shown[finding.check] <= kMostOfOneCheck) text += finding_text(finding);
  }
  for (const auto& [check, count] : shown) {
    if (count <= kMostOfOneCheck) continue;
    text += fmt::format("      {}: {} more (--json has all)\n", check, count - kMostOfOneCheck);
  }
  if (!text.empty()) text += "\n";
  text += checked_text(report.counts);
  const std::uint64_t faults = count_faults(report);
  const std::uint64_t warnings = report.findings.size() - faults;
  text += faults == 0 ? "no fault" : counted(faults, "fault", "faults");
  if (warnings != 0) text += ", " + counted(warnings, "warning", "warnings");
  return text + "\n";
}

std::string subnet_json(const health::Report& report, const std::string& fabric) {
  Json findings = Json::array();
  for (const health::Finding& each : report.findings) {
    findings.push_back(
        {{"severity", each.severity == health::Severity::Fault ? "fault" : "warning"},
         {"check", each.check},
         {"where", each.where},
         {"what", each.what},
         {"fix", each.remedy}});
  }
  const health::Counts& counts = report.counts;
  const Json checked = {{"adapters", counts.adapters},
                        {"switches", counts.switches},
                        {"cables", counts.cables},
                        {"subnets", counts.subnets},
                        {"ways", counts.ways},
                        {"ways_cut_off", counts.ways_cut_off},
                        {"channels", counts.channels},
                        {"pairs", counts.pairs},
                        {"pairs_apart", counts.pairs_apart},
                        {"ideal_ports", counts.ideal_ports},
                        {"ethernet_ports", counts.ethernet_ports}};
  return Json{{"version", 1},
              {"fabric", fabric},
              {"faults", count_faults(report)},
              {"findings", std::move(findings)},
              {"checked", checked}}
             .dump(2, ' ', false, Json::error_handler_t::replace) +
         "\n";
}

}  // namespace ib::softib
