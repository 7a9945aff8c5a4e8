// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "softib/subnet/sm_page.h"

#include <fmt/format.h>

#include <algorithm>

namespace ib::softib {
namespace {

constexpr std::size_t kMostProblems = 20;  // --json has all

std::string place_text(const Json& place) {
  return fmt::format("{}/{} port {} (LID {}, GUID {})", text_of(place, "node"),
                     text_of(place, "hca"), number_of(place, "port"), number_of(place, "lid"),
                     text_of(place, "port_guid"));
}

std::string counted(std::uint64_t number, const char* one, const char* many) {
  return fmt::format("{} {}", number, number == 1 ? one : many);
}

std::string manager_text(const Json& manager) {
  std::string text = fmt::format("  {} at {}\n", text_of(manager, "state"), place_text(manager));
  const bool is_master = text_of(manager, "state") == "master";
  if (is_master) {
    text += fmt::format("    {} and {}, routed by {}; {}{}\n",
                        counted(number_of(manager, "switches"), "switch", "switches"),
                        counted(number_of(manager, "adapters"), "HCA", "HCAs"),
                        text_of(manager, "routing"),
                        counted(number_of(manager, "sweeps"), "sweep", "sweeps"),
                        manager.value("settled", false) ? ", all is set up" : ", one is under way");
  }
  const Json& problems = list_of(manager, "problems");
  for (std::size_t i = 0; i < problems.size() && i < kMostProblems; ++i) {
    text += fmt::format("    problem: {}\n", problems[i].get<std::string>());
  }
  const std::uint64_t left = number_of(manager, "problems_left_out") +
                             (problems.size() - std::min(problems.size(), kMostProblems));
  if (left != 0) text += fmt::format("    and {} more problems (--json)\n", left);
  return text;
}

}  // namespace

std::string sm_page(const std::string& fabric, const Json& json) {
  const bool contends = json.contains("priority") && json["priority"].is_number();
  std::string text = fmt::format(
      "fabric \"{}\": softib's subnet manager {}\n", fabric,
      contends
          ? fmt::format("takes part in the election with priority {}", number_of(json, "priority"))
          : "gives way to those of programs");
  for (const Json& manager : list_of(json, "managers")) text += manager_text(manager);
  for (const Json& place : list_of(json, "programs")) {
    text += fmt::format("  a program's at {}\n", place_text(place));
  }
  const bool is_empty = list_of(json, "managers").empty() && list_of(json, "programs").empty();
  if (is_empty) text += "  none: no subnet has a cable, and softib sets ports up without one\n";
  return text;
}

}  // namespace ib::softib
