// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The tables and the JSON of `softib counters`: port_counts.cpp has chosen the ports,
// cmd_counters.cpp prints.
#include "softib/subnet/counters_page.h"

#include "softib/pages/status_page.h"
#include "softib/terminal/color.h"
#include "softib/terminal/columns.h"
#include "softib/terminal/terminal.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace ib::softib {
namespace {

using fabric::ShownTraffic;

constexpr std::uint64_t kWord = 4;  // bytes; counters of data are in these
constexpr std::size_t kName = 18;   // columns

// The number of the port stays; what is cut of a long name, JSON has.
std::string port_name(const std::string& element, std::uint32_t number) {
  const std::string tail = number == 0 ? "" : fmt::format(":{}", number);
  const std::size_t room = kName - tail.size();
  if (element.size() <= room) return element + tail;
  return element.substr(0, room - 3) + "..." + tail;
}

std::string head(const std::string& per) {
  return painted(Paint::Heading,
                 fmt::format("{:<18} {:<18} {:>10} {:>9} {:>10} {:>9}", "PORT", "LEADS TO",
                             "SENT" + per, "PACKETS" + per, "RECEIVED" + per, "PACKETS" + per)) +
         "\n";
}

std::uint64_t per_second(std::uint64_t count, double seconds) {
  return static_cast<std::uint64_t>(std::llround(static_cast<double>(count) / seconds));
}

std::string row(const PortCount& port, double seconds) {
  const auto bytes = [&](const ShownTraffic& traffic) {
    return bytes_text(per_second(traffic.data * kWord, seconds));
  };
  const std::string state = port.state == fabric::LinkState::Active
                                ? ""
                                : fmt::format(" ({})", link_state_name(port.state));
  const std::string peer = port.peer.empty() ? "-" : port_name(port.peer, port.peer_port);
  return fmt::format("{:<18} {:<18} {:>10} {:>9} {:>10} {:>9}{}\n",
                     port_name(port.element, port.number), peer, bytes(port.sent),
                     per_second(port.sent.packets, seconds), bytes(port.received),
                     per_second(port.received.packets, seconds), state);
}

// Lines below a row: groups, and errors.
std::string details(const PortCount& port, const char* errors) {
  std::string text;
  if (port.sent.multicast != 0 || port.received.multicast != 0) {
    text += fmt::format("    unicast {} sent, {} received; multicast {} sent, {} received\n",
                        port.sent.unicast, port.received.unicast, port.sent.multicast,
                        port.received.multicast);
  }
  if (port.troubles.empty()) return text;
  fabric::ShownPort shown;
  shown.troubles = port.troubles;
  const std::size_t indent = 6 + std::string(errors).size();
  return text + "    " + painted(Paint::Warning, errors) + ": " +
         wrap_words(troubles_text(shown), page_columns(), 6, indent) + "\n";
}

bool is_shown(const PortCount& port, bool all) {
  return all || port.is_asked_for || !port.is_quiet();
}

std::string rest_line(const std::vector<PortCount>& ports, bool all, const std::string& when) {
  std::size_t quiet = 0;
  std::size_t unplugged = 0;
  for (const PortCount& port : ports) {
    if (is_shown(port, all)) continue;
    ++quiet;
    unplugged += port.peer.empty() ? 1u : 0u;
  }
  if (quiet == 0) return {};
  std::string text = quiet == ports.size()
                         ? fmt::format("no port has carried anything{}", when)
                         : fmt::format("{} {} carried nothing{}", quiet,
                                       quiet == 1 ? "other port has" : "other ports have", when);
  if (unplugged != 0) text += fmt::format(", {} of them without a cable", unplugged);
  return wrap_words(text + " (`--all` lists them)", page_columns(), 2) + "\n";
}

std::string table(const std::vector<PortCount>& ports, double seconds, bool all, const char* per,
                  const char* errors) {
  std::string text;
  for (const PortCount& port : ports) {
    if (is_shown(port, all)) text += row(port, seconds) + details(port, errors);
  }
  return text.empty() ? text : head(per) + text;
}

Json traffic_json(const ShownTraffic& traffic) {
  return {{"bytes", traffic.data * kWord},
          {"packets", traffic.packets},
          {"unicast", traffic.unicast},
          {"multicast", traffic.multicast}};
}

Json port_json(const PortCount& port) {
  Json json = {{"element", port.element},
               {"kind", port.is_switch ? "switch" : "adapter"},
               {"guid", fmt::format("{:#018x}", port.guid)},
               {"lid", port.lid},
               {"port", port.number},
               {"state", link_state_name(port.state)}};
  if (!port.peer.empty()) json["peer"] = {{"element", port.peer}, {"port", port.peer_port}};
  json["sent"] = traffic_json(port.sent);
  json["received"] = traffic_json(port.received);
  json["errors"] = Json::object();
  for (const fabric::ShownTrouble& trouble : port.troubles) {
    json["errors"][trouble.name] = trouble.count;
  }
  return json;
}

Json rate_json(const ShownTraffic& traffic, double seconds) {
  return {{"bytes", per_second(traffic.data * kWord, seconds)},
          {"packets", per_second(traffic.packets, seconds)}};
}

}  // namespace

std::string counters_page(const std::vector<PortCount>& ports, bool all) {
  if (ports.empty()) {
    return wrap_words("no InfiniBand ports; `softib status` has the counters of Ethernet ports",
                      page_columns(), 2) +
           "\n";
  }
  return table(ports, 1, all, "", "errors") + rest_line(ports, all, "");
}

std::string rates_page(std::vector<PortCount> ports, double seconds, bool all) {
  if (ports.empty()) return counters_page(ports, all);
  const auto load = [](const PortCount& port) {
    return std::pair(port.sent.data + port.received.data,
                     port.sent.packets + port.received.packets);
  };
  std::stable_sort(ports.begin(), ports.end(),
                   [&](const PortCount& a, const PortCount& b) { return load(a) > load(b); });
  return table(ports, seconds, all, "/S", "new errors") +
         rest_line(ports, all, fmt::format(" in {:.1f} s", seconds));
}

Json counters_json(const std::vector<PortCount>& ports) {
  Json json = {{"version", 1}, {"ports", Json::array()}};
  for (const PortCount& port : ports) json["ports"].push_back(port_json(port));
  return json;
}

Json rates_json(const std::vector<PortCount>& ports, const std::vector<PortCount>& since,
                double seconds) {
  Json json = counters_json(ports);
  json["seconds"] = std::round(seconds * 1000) / 1000;
  const std::vector<PortCount> more = counted_since(since, ports);
  for (std::size_t i = 0; i < more.size(); ++i) {
    json["ports"][i]["sent_per_second"] = rate_json(more[i].sent, seconds);
    json["ports"][i]["received_per_second"] = rate_json(more[i].received, seconds);
  }
  return json;
}

}  // namespace ib::softib
