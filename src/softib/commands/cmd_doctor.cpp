// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// softib doctor: what this machine offers, what a lack costs, how to mend it; the settings that
// programs get.
#include "softib/commands/command.h"
#include "softib/doctor/doctor.h"
#include "softib/launch/defaults.h"
#include "softib/terminal/color.h"
#include "softib/terminal/columns.h"
#include "softib/terminal/terminal.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>

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

}  // namespace

void add_doctor(CLI::App& app, Context& context) {
  Command command(app, "doctor", "what this machine can do, and what it lacks");
  auto json = std::make_shared<bool>(false);
  command.flag("--json", *json, "for programs");
  command.footer(
      "Exit code: 0 if softib can run here, 1 if not. Changes nothing.\n"
      "\nExample:\n"
      "  softib doctor");
  command.callback([json, &context] {
    Findings findings;
    check_installation(findings);
    check_kernel(findings);
    check_limits(findings);
    check_programs(findings);
    const auto count = [&](Level level) {
      return std::count_if(findings.begin(), findings.end(),
                           [&](const Finding& it) { return it.level == level; });
    };
    const std::ptrdiff_t failures = count(Level::Fail);
    const std::vector<SuppliedSetting> settings = supplied_settings(current_environment());
    print(*json ? as_json(findings, settings, failures == 0)
                : as_text(findings, settings, failures, count(Level::Warn)));
    if (failures != 0) context.exit = Exit::Failed;
  });
}

}  // namespace ib::softib
