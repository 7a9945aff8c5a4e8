// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// softib sm: softib's own subnet managers.
#include "softib/commands/command.h"
#include "softib/pages/fabric_state.h"
#include "softib/pages/manager_state.h"
#include "softib/subnet/sm_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <thread>

namespace ib::softib {
namespace {

using verbs::control::SmAction;
using Clock = std::chrono::steady_clock;

struct SmOptions {
  std::string fabric;
  std::string priority;
  std::uint32_t seconds = 60;
  bool full = false;
  bool json = false;
};

void show(const SmOptions& options, const std::string& text) {
  print(options.json ? text : sm_page(options.fabric, Json::parse(text)));
}

void status(const SmOptions& options) {
  ControlClient client = connect_up(options.fabric);
  show(options, ask_managers(client, SmAction::Show));
}

// Whether each master has finished a sweep since `before`. Managers that came later have.
bool has_swept(const Json& before, const Json& now) {
  return std::ranges::all_of(list_of(now, "managers"), [&](const Json& manager) {
    if (text_of(manager, "state") != "master") return true;
    if (!manager.value("settled", false)) return false;
    return std::ranges::none_of(list_of(before, "managers"), [&](const Json& old) {
      return text_of(old, "port_guid") == text_of(manager, "port_guid") &&
             number_of(old, "sweeps") >= number_of(manager, "sweeps");
    });
  });
}

void sweep(const SmOptions& options) {
  ControlClient client = connect_up(options.fabric);
  const Json before =
      Json::parse(ask_managers(client, options.full ? SmAction::FullSweep : SmAction::LightSweep));
  if (list_of(before, "managers").empty()) {
    throw CliError(Exit::NotFound, fmt::format("softib has no subnet manager in fabric \"{}\"; "
                                               "`softib sm status` tells who has",
                                               options.fabric));
  }
  const Clock::time_point deadline = Clock::now() + std::chrono::seconds(options.seconds);
  for (;;) {
    const std::string text = ask_managers(client, SmAction::Show);
    if (has_swept(before, Json::parse(text))) return show(options, text);
    if (Clock::now() > deadline) {
      throw CliError(Exit::Failed,
                     fmt::format("the sweep is not over after {} s; it goes on, `softib sm status` "
                                 "shows it",
                                 options.seconds));
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}

void set_priority(const SmOptions& options) {
  ControlClient client = connect_up(options.fabric);
  if (options.priority == "none") return show(options, ask_managers(client, SmAction::GiveWay));
  std::uint32_t number = 0;
  const char* const end = options.priority.data() + options.priority.size();
  const auto [rest, error] = std::from_chars(options.priority.data(), end, number);
  if (error != std::errc{} || rest != end || number > 15) {
    throw CliError(Exit::Usage,
                   fmt::format("\"{}\" is no priority: 0 to 15, or none", options.priority));
  }
  show(options, ask_managers(client, SmAction::SetPriority, number));
}

std::shared_ptr<SmOptions> add_action(Command& command) {
  auto options = std::make_shared<SmOptions>();
  add_fabric_option(command, options->fabric);
  command.flag("--json", options->json, "for programs");
  return options;
}

}  // namespace

void add_sm(CLI::App& app, Context&) {
  Command command(app, "sm", "softib's own subnet manager");
  command.require_subcommand();
  Command shows = command.subcommand("status", "where it is, its state, what it has found");
  shows.callback([options = add_action(shows)] { status(*options); });
  Command sweeps = command.subcommand(
      "sweep", "look at the subnet now, and wait until all that has changed is set up");
  auto options = add_action(sweeps);
  sweeps.flag("--full", options->full, "look at everything, also at what has not changed");
  sweeps.option("--timeout", options->seconds, "wait for this long at most")
      .whole_number(1, 3600)
      .placeholder("SECONDS [60]");
  sweeps.callback([options] { sweep(*options); });
  Command sets = command.subcommand(
      "priority", "take part in the election of the master, or give way to programs");
  options = add_action(sets);
  sets.option("priority", options->priority,
              "0 to 15: the highest becomes the master, of equal ones that with the lowest GUID; "
              "none: give way to each manager that a program runs")
      .placeholder("N|none")
      .required();
  sets.callback([options] { set_priority(*options); });
  command.footer(
      "A subnet with cables has a manager at the first HCA port whose link is up. It\n"
      "gives way to OpenSM and others that programs run, unless it has a priority.\n"
      "\nExamples:\n"
      "  softib sm status\n"
      "  softib sm sweep --full\n"
      "  softib sm priority 5\n"
      "  softib sm priority none");
}

}  // namespace ib::softib
