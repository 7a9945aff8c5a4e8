// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// softib doctor: what this machine offers, what a lack costs, how to mend it; the settings that
// programs get. With --subnet the same of the subnet of a fabric that is up.
#include "softib/commands/command.h"
#include "softib/doctor/doctor.h"
#include "softib/doctor/subnet_examination.h"
#include "softib/launch/defaults.h"
#include "softib/pages/fabric_state.h"
#include "softib/terminal/color.h"
#include "softib/terminal/columns.h"
#include "softib/terminal/terminal.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdlib>
#include <optional>

namespace ib::softib {

const char* level_name(Level level) {
  switch (level) {
    case Level::Ok: return "ok";
    case Level::Warn: return "warn";
    case Level::Fail: return "FAIL";
  }
  return "?";
}

namespace {

nlohmann::json settings_as_json(const std::vector<SuppliedSetting>& settings) {
  nlohmann::json list = nlohmann::json::array();
  for (const SuppliedSetting& it : settings) {
    nlohmann::json row{{"variable", it.setting->variable},
                       {"value", it.setting->value},
                       {"program", it.setting->program},
                       {"reason", it.setting->reason},
                       {"supplied", it.user.empty()}};
    if (!it.user.empty()) row["user"] = it.user;
    list.push_back(std::move(row));
  }
  return list;
}

// `text` behind `taken` columns. In a file or pipe it is one line, for those who search it.
std::string folded(const std::string& text, std::size_t taken) {
  constexpr std::size_t kIndent = 12;
  return terminal_size().columns == 0 ? text : wrap_words(text, page_columns(), kIndent, taken);
}

std::string settings_as_text(const std::vector<SuppliedSetting>& settings) {
  std::string text = "\nsettings that softib run supplies:\n";
  for (const SuppliedSetting& it : settings) {
    const std::string why = fmt::format("{}: {}", it.setting->program, it.setting->reason);
    text +=
        fmt::format("  {}={}\n      {}\n", it.setting->variable, it.setting->value, folded(why, 6));
    if (!it.user.empty()) {
      text += fmt::format("      not supplied, since you have set: {}\n", it.user);
    }
  }
  return text;
}

std::string as_json(const Findings& findings, const std::vector<SuppliedSetting>& settings,
                    bool can_run) {
  nlohmann::json checks = nlohmann::json::array();
  for (const Finding& it : findings) {
    nlohmann::json check{{"check", it.check}, {"value", it.value}};
    check["level"] = it.level == Level::Fail ? "fail" : level_name(it.level);
    if (!it.cost.empty()) check["cost"] = it.cost;
    if (!it.fix.empty()) check["fix"] = it.fix;
    checks.push_back(std::move(check));
  }
  return nlohmann::json{
             {"can_run", can_run}, {"checks", checks}, {"settings", settings_as_json(settings)}}
             .dump(2) +
         "\n";
}

std::string as_text(const Findings& findings, const std::vector<SuppliedSetting>& settings,
                    std::ptrdiff_t failures, std::ptrdiff_t warnings) {
  std::string text;
  for (const Finding& it : findings) {
    const std::string level = fmt::format("{:<5}", level_name(it.level));
    const Paint paint = it.level == Level::Ok     ? Paint::Good
                        : it.level == Level::Warn ? Paint::Warning
                                                  : Paint::Bad;
    text += fmt::format("{} {:<31} {}\n", painted(paint, level), it.check, folded(it.value, 38));
    if (!it.cost.empty()) text += fmt::format("{:<6}cost: {}\n", "", folded(it.cost, 12));
    if (!it.fix.empty()) text += fmt::format("{:<6}fix:  {}\n", "", folded(it.fix, 12));
  }
  text += settings_as_text(settings);
  if (failures != 0) {
    return text + fmt::format("\nsoftib cannot run here: {} check{} failed\n", failures,
                              failures == 1 ? "" : "s");
  }
  if (warnings != 0) {
    return text + fmt::format("\nsoftib can run here, with {} restriction{}\n", warnings,
                              warnings == 1 ? "" : "s");
  }
  return text + "\nsoftib can run here\n";
}

struct DoctorOptions {
  bool json = false;
  bool subnet = false;
  std::optional<std::string> fabric;
};

void examine_machine(const DoctorOptions& options, Context& context) {
  Findings findings;
  check_installation(findings);
  check_kernel(findings);
  check_network(findings);
  check_limits(findings);
  check_programs(findings);
  const auto count = [&](Level level) {
    return std::count_if(findings.begin(), findings.end(),
                         [&](const Finding& it) { return it.level == level; });
  };
  const std::ptrdiff_t failures = count(Level::Fail);
  const std::vector<SuppliedSetting> settings = supplied_settings(current_environment());
  print(options.json ? as_json(findings, settings, failures == 0)
                     : as_text(findings, settings, failures, count(Level::Warn)));
  if (failures != 0) context.exit = Exit::Failed;
}

void examine_fabric(const DoctorOptions& options, Context& context) {
  const char* usual = std::getenv("SOFTIB_FABRIC");
  const std::string fabric = options.fabric.value_or(usual != nullptr ? usual : "default");
  ControlClient client = connect_up(fabric);
  const fabric::health::Report report = examine_subnet(client);
  print(options.json ? subnet_json(report, fabric) : subnet_page(report));
  if (count_faults(report) != 0) context.exit = Exit::Failed;
}

}  // namespace

void add_doctor(CLI::App& app, Context& context) {
  Command command(app, "doctor", "what this machine can do, and what it lacks");
  auto options = std::make_shared<DoctorOptions>();
  command.flag("--json", options->json, "for programs");
  command.flag("--subnet", options->subnet, "what is wrong in the subnet of a fabric instead");
  command.option("-f,--fabric", options->fabric, "of this fabric, as --subnet [default]")
      .placeholder("NAME");
  command.footer(
      "Exit code: 0 if softib can run here, or the subnet has no fault; 1 if not.\n"
      "Changes nothing.\n"
      "\nExamples:\n"
      "  softib doctor\n"
      "  softib doctor --subnet");
  command.callback([options, &context] {
    const bool is_about_subnet = options->subnet || options->fabric.has_value();
    is_about_subnet ? examine_fabric(*options, context) : examine_machine(*options, context);
  });
}

}  // namespace ib::softib
