// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// softib counters: what the ports of the subnet have carried, and what they carry now.
#include "softib/commands/command.h"
#include "softib/commands/usage.h"
#include "softib/pages/fabric_state.h"
#include "softib/picture/subnet_reading.h"
#include "softib/subnet/counters_page.h"
#include "softib/subnet/subnet_request.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace ib::softib {
namespace {

using std::chrono::seconds;
using std::chrono::steady_clock;

constexpr std::uint32_t kLongestPause = 86400;  // s

struct CountersOptions {
  std::string fabric;
  std::vector<std::string> names;
  std::string watch;  // seconds; empty: not
  bool json = false;
  bool all = false;
};

// "--watch" is "1".
seconds pause_of(const std::string& text) {
  std::uint32_t value = 0;
  const char* last = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), last, value);
  if (error == std::errc{} && rest == last && value >= 1 && value <= kLongestPause) {
    return seconds(value);
  }
  throw CliError(Exit::Usage,
                 fmt::format("--watch={}: say whole seconds, from 1 to {}", text, kLongestPause));
}

[[noreturn]] void complain_about(ControlClient& client, const std::string& name,
                                 const std::vector<PortCount>& all, const std::string& fabric) {
  constexpr std::size_t kShown = 12;
  const std::size_t colon = name.rfind(':');
  if (colon != std::string::npos) {
    const std::vector<PortCount> ports = ports_named(all, name.substr(0, colon));
    if (!ports.empty()) {
      throw CliError(Exit::NotFound, fmt::format("{} has no port {}; it has {} to {}",
                                                 ports.front().element, name.substr(colon + 1),
                                                 ports.front().number, ports.back().number));
    }
  }
  if (ask_node_named(client, name.substr(0, colon))) {
    throw CliError(Exit::NotFound,
                   fmt::format("{} has no InfiniBand port; `softib status` has the counters of "
                               "Ethernet ports",
                               name.substr(0, colon)));
  }
  std::vector<std::string> names = element_names(all);
  const std::string meant = nearest(name.substr(0, colon), names);
  const std::size_t count = names.size();
  names.resize(std::min(count, kShown));
  throw CliError(
      Exit::NotFound,
      fmt::format("fabric \"{}\" has no node or switch \"{}\"{}\n  It has {}{}; `softib topology "
                  "--table` lists them.",
                  fabric, name, meant.empty() ? "" : fmt::format("; did you mean \"{}\"?", meant),
                  fmt::join(names, ", "),
                  count > kShown ? fmt::format(" and {} others", count - kShown) : ""));
}

class Reader {
 public:
  explicit Reader(const CountersOptions& options)
      : options_(options), client_(connect_up(options.fabric)) {
    for (const std::string& name : options.names) {
      names_.push_back(with_node_name(client_, name, options.fabric));
    }
  }

  std::vector<PortCount> read() {
    const Json topology = ask_topology_json(client_);
    std::vector<PortCount> all = port_counts(read_subnet(topology, Json::object()));
    if (names_.empty()) return all;
    std::vector<PortCount> chosen;
    for (const std::string& name : names_) {
      const std::vector<PortCount> found = ports_named(all, name);
      if (found.empty()) complain_about(client_, name, all, options_.fabric);
      for (const PortCount& port : found) {
        const bool is_known = std::any_of(chosen.begin(), chosen.end(), [&](const PortCount& one) {
          return one.guid == port.guid && one.number == port.number;
        });
        if (!is_known) chosen.push_back(port);
      }
    }
    return chosen;
  }

 private:
  const CountersOptions& options_;
  ControlClient client_;
  std::vector<std::string> names_;
};

struct Reading {
  std::vector<PortCount> ports;
  steady_clock::time_point time;
};

void watch(const CountersOptions& options) {
  const seconds pause = pause_of(options.watch);
  Reader reader(options);
  const auto take = [&reader] { return Reading{reader.read(), steady_clock::now()}; };
  std::optional<Reading> last;
  const auto page = [&] {
    if (!last) {
      last = take();
      std::this_thread::sleep_for(pause);
    }
    Reading now = take();
    const double took = std::chrono::duration<double>(now.time - last->time).count();
    const std::string text =
        options.json ? rates_json(now.ports, last->ports, took).dump() + "\n"
                     : rates_page(counted_since(last->ports, now.ports), took, options.all);
    last = std::move(now);
    return text;
  };
  print_page(page, pause, options.json);
}

void counters(const CountersOptions& options) {
  if (!options.watch.empty()) return watch(options);
  const std::vector<PortCount> ports = Reader(options).read();
  print(options.json ? counters_json(ports).dump(2) + "\n" : counters_page(ports, options.all));
}

}  // namespace

void add_counters(CLI::App& app, Context&) {
  Command command(app, "counters", "what the ports of the subnet have carried, and their errors");
  auto options = std::make_shared<CountersOptions>();
  add_fabric_option(command, options->fabric);
  command
      .flag("--watch{1}", options->watch,
            "what comes in each second, or in as many, the busiest port first, until Ctrl-C or "
            "`softib down`")
      .placeholder("[=SECONDS]");
  command.flag("--all", options->all, "ports that have carried nothing, too");
  command.flag("--json", options->json, "all ports, for programs; with --watch one object a line");
  command.option("ports", options->names, "those of a node or switch, by name, number or GUID")
      .placeholder("NODE|SWITCH[:PORT] ...");
  command.footer(
      "Bytes are those on the wire, with headers. Packets are unicast where nothing\n"
      "else is said. perfquery -R clears counters.\n"
      "\nExamples:\n"
      "  softib counters\n"
      "  softib counters node0 switch-1-0:5\n"
      "  softib counters --watch\n"
      "  softib counters --json | jq '.ports[] | select(.errors != {})'");
  command.callback([options] {
    until_down(options->fabric, !options->watch.empty(), [&] { counters(*options); });
  });
}

}  // namespace ib::softib
