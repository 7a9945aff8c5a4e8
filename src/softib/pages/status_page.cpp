// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "softib/pages/status_page.h"

#include "softib/pages/connections_page.h"
#include "softib/pages/explanation.h"
#include "softib/terminal/color.h"
#include "softib/terminal/columns.h"
#include "softib/terminal/terminal.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace ib::softib {
namespace {

// "3 qps, 1 mr" out of an object of counts; zeros are left out.
std::string counts(const Json& object, const char* key) {
  if (!object.is_object() || !object.contains(key) || !object[key].is_object()) return {};
  std::string text;
  for (const auto& [name, value] : object[key].items()) {
    if (!value.is_number() || value == 0) continue;
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", value.dump(), name);
  }
  return text;
}

// The traffic of a port; empty for one that was never used.
std::string traffic(const Json& port) {
  const Json counters = port.is_object() ? port.value("counters", Json::object()) : Json::object();
  const std::uint64_t sent = number_of(counters, "sent_messages");
  const std::uint64_t received = number_of(counters, "received_messages");
  if (sent == 0 && received == 0) return {};
  return fmt::format("\n            sent {} ({}), received {} ({})", sent,
                     bytes_text(number_of(counters, "sent_bytes")), received,
                     bytes_text(number_of(counters, "received_bytes")));
}

// The other end of its cable; empty for a port on the ideal network.
std::string cable(const Json& port) {
  const Json peer = port.is_object() ? port.value("peer", Json()) : Json();
  return peer.is_object() ? fmt::format("\n            cable to {}", peer_name(peer))
                          : std::string();
}

// Long names are cut; `softib status --json` has them.
std::string cut(const std::string& text, std::size_t width) {
  return text.size() <= width ? text : text.substr(0, width - 3) + "...";
}

// Padded, and in the colour of its meaning.
std::string port_state(const Json& port) {
  const std::string state = text_of(port, "state");
  const Paint paint = state == "active" ? Paint::Good
                      : state == "down" ? Paint::Bad
                                        : Paint::Warning;
  return painted(paint, fmt::format("{:<7}", state));
}

// "  127.77.0.1, fd00::1", as many as fit.
std::string addresses(const Json& node) {
  constexpr std::size_t kWidth = 50;
  std::string text;
  for (const Json& address : list_of(node, "addresses")) {
    text += (text.empty() ? "  " : ", ") + text_of(address, "ip");
  }
  return cut(text, kWidth);
}

std::string node_lines(const Json& node) {
  std::string text =
      painted(Paint::Heading, "node " + text_of(node, "name")) + addresses(node) + "\n";
  for (const Json& hca : list_of(node, "hcas")) {
    const std::string objects = counts(hca, "objects");
    const std::string row =
        fmt::format("  {:<10} GUID {}  {}", text_of(hca, "name"), text_of(hca, "node_guid"),
                    objects.empty() ? "unused" : objects);
    text += wrap_words(row, page_columns(), 18) + "\n";
    for (const Json& port : list_of(hca, "ports")) {
      const bool is_ethernet = text_of(port, "link_layer") == "ethernet";
      const std::string kind =
          is_ethernet ? "Ethernet " : fmt::format("LID {:<5}", text_of(port, "lid"));
      text +=
          fmt::format("    port {}  {} {} GUID {}{}{}\n", text_of(port, "number"), port_state(port),
                      kind, text_of(port, "guid"), cable(port), traffic(port));
    }
  }
  return text;
}

// Returns whether it exists and has no other property to show.
bool is_quiet(const Json& node) {
  for (const Json& hca : list_of(node, "hcas")) {
    if (!counts(hca, "objects").empty()) return false;
    for (const Json& port : list_of(hca, "ports")) {
      if (text_of(port, "state") != "active" || !traffic(port).empty()) return false;
    }
  }
  return true;
}

// All nodes of a small fabric; of a large one those that are used or not as they should be, and how
// many others there are.
std::string nodes_lines(const Json& nodes) {
  constexpr std::size_t kAllShown = 32;
  std::string text;
  std::size_t quiet = 0;
  for (const Json& node : nodes) {
    if (nodes.size() > kAllShown && is_quiet(node)) {
      ++quiet;
    } else {
      text += node_lines(node);
    }
  }
  if (quiet == 0) return text;
  const std::string rest =
      fmt::format("{}{} nodes, unused, with active ports (`softib status --json` lists all)", quiet,
                  quiet == nodes.size() ? "" : " other");
  return text + wrap_words(rest, page_columns(), 2) + "\n";
}

std::string client_lines(const Json& clients) {
  const std::string head =
      fmt::format("{:>8}  {:<12} {:<20} {}", "PID", "NODE", "PROGRAM", "OBJECTS");
  std::string text = "\n" + painted(Paint::Heading, head) + "\n";
  for (const Json& client : clients) {
    const bool ending = client.is_object() && client.value("ending", Json(false)) == true;
    const std::string row =
        fmt::format("{:>8}  {:<12} {:<20} {}{}", text_of(client, "pid"),
                    cut(text_of(client, "node"), 12), cut(text_of(client, "program"), 20),
                    counts(client, "objects"), ending ? " (ended; being cleaned up)" : "");
    text += wrap_words(row, page_columns(), 44) + "\n";
  }
  return text;
}

// The processes with objects, and the programs without an HCA: those that only listen or have not
// begun.
Json users_of(const Json& state) {
  Json users = list_of(state, "clients");
  for (const Json& program : list_of(state, "programs")) {
    if (program.is_object() && program.value("has_hca", Json(true)) == false)
      users.push_back(program);
  }
  return users;
}

std::string traffic_lines(const Json& traffic) {
  std::string text =
      "\n" + painted(Paint::Heading, "sent by queue pairs that are connected") + "\n";
  for (const Json& pair : traffic) {
    text += fmt::format("  {:<16} -> {:<16} {:>10} in {}, {}\n", cut(text_of(pair, "from"), 16),
                        cut(text_of(pair, "to"), 16), bytes_text(number_of(pair, "bytes")),
                        counted(number_of(pair, "messages"), "message"),
                        counted(number_of(pair, "queue_pairs"), "QP"));
  }
  return text;
}

// The cause in words, for a user whose program hangs.
std::string blocked_lines(const Json& blocked) {
  std::string text = "\n" + painted(Paint::Warning, "queue pairs that wait") + "\n";
  for (const Json& qp : blocked) {
    const std::string cause = text_of(qp, "cause");
    const std::optional<verbs::control::Cause> known = find_cause(cause);
    const std::string line =
        fmt::format("  {} QP {} of pid {} on {}, peer QP {}: {}", text_of(qp, "type"),
                    text_of(qp, "qpn"), text_of(qp, "pid"), text_of(qp, "node"),
                    text_of(qp, "peer_qpn"), known ? explain(*known).meaning : cause);
    text += wrap_words(line, page_columns(), 4) + "\n";
  }
  return text;
}

// Programs in the middle of a work request for which others wait.
std::string poster_lines(const Json& posters) {
  std::string text =
      "\n" +
      painted(Paint::Warning, "waited for, inside a work request (stopped? then let it go on)") +
      "\n";
  for (const Json& poster : posters) {
    const std::string line =
        fmt::format("  pid {} ({}) on {}, QP {}: {} waiting for {} ms", text_of(poster, "pid"),
                    text_of(poster, "program"), text_of(poster, "node"), text_of(poster, "qpn"),
                    text_of(poster, "requests_waiting"), text_of(poster, "waited_ms"));
    text += wrap_words(line, page_columns(), 4) + "\n";
  }
  return text;
}

std::string memory_line(const Json& state) {
  const Json memory = state.value("memory", Json());
  if (!memory.is_object()) return {};
  return fmt::format("device memory: {} used of {}, {} resident\n",
                     bytes_text(number_of(memory, "used")), bytes_text(number_of(memory, "limit")),
                     bytes_text(number_of(memory, "resident")));
}

std::string headline(const std::string& fabric, const Json& state) {
  std::string life;
  if (state.contains("kept"))
    life = is_kept(state) ? ", stays until `softib down`" : ", goes when idle";
  const std::uint64_t seconds = number_of(state, "uptime_ms") / 1000;
  const std::string line =
      fmt::format("fabric {}, up for {}:{:02}:{:02} (softibd, pid {}{})", fabric, seconds / 3600,
                  seconds / 60 % 60, seconds % 60, text_of(state, "pid"), life);
  return wrap_words(line, page_columns(), 2) + "\n";
}

}  // namespace

std::string counted(std::uint64_t count, const char* what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

std::string bytes_text(std::uint64_t bytes) {
  constexpr std::array kUnits = {"B", "KiB", "MiB", "GiB", "TiB"};
  auto value = static_cast<double>(bytes);
  std::size_t unit = 0;
  while (value >= 1024 && unit + 1 < kUnits.size()) {
    value /= 1024;
    ++unit;
  }
  return unit == 0 ? fmt::format("{} B", bytes) : fmt::format("{:.1f} {}", value, kUnits[unit]);
}

std::string peer_name(const Json& peer) {
  if (peer.contains("switch")) {
    return fmt::format("port {} of {}", text_of(peer, "port"), text_of(peer, "switch"));
  }
  return fmt::format("{}/{}/{}", text_of(peer, "node"), text_of(peer, "hca"),
                     text_of(peer, "port"));
}

std::string status_page(const std::string& fabric, const Json& state) {
  std::string text = headline(fabric, state);
  text += nodes_lines(list_of(state, "nodes"));
  const Json clients = users_of(state);
  text += clients.empty() ? "\nno programs\n" : client_lines(clients);
  const Json& traffic = list_of(state, "traffic");
  if (!traffic.empty()) text += traffic_lines(traffic);
  if (const std::string ids = connections_summary(list_of(state, "rdma_cm")); !ids.empty()) {
    text += "\n" +
            wrap_words("connections: " + ids + " (`softib connections`)", page_columns(), 13) +
            "\n";
  }
  const std::string objects = counts(state, "objects");
  const std::string all = "objects: " + (objects.empty() ? "none" : objects);
  text += "\n" + wrap_words(all, page_columns(), 9) + "\n";
  text += memory_line(state);
  const Json& blocked = list_of(state, "blocked");
  if (!blocked.empty()) text += blocked_lines(blocked);
  const Json& posters = list_of(state, "posters_waited_for");
  if (!posters.empty()) text += poster_lines(posters);
  return text;
}

}  // namespace ib::softib
