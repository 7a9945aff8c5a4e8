// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "softib/pages/connections_page.h"

#include "softib/terminal/color.h"
#include "softib/terminal/columns.h"
#include "softib/terminal/terminal.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <string_view>

namespace ib::softib {
namespace {

// States of ids that are neither a listener nor part of a connection.
constexpr std::array<std::string_view, 7> kUnusual = {"idle",           "bound", "address resolved",
                                                      "route resolved", "over",  "disconnected",
                                                      "its HCA is gone"};

// A group member has no state of its own: its id is bound or resolved.
bool is_usual(const Json& one) {
  const std::string state = text_of(one, "state");
  if (!list_of(one, "groups").empty()) return true;
  return std::find(kUnusual.begin(), kUnusual.end(), state) == kUnusual.end();
}

bool is_shown(const Json& one, ConnectionsShown shown) {
  switch (shown) {
    case ConnectionsShown::Usual: return is_usual(one);
    case ConnectionsShown::Listeners: return text_of(one, "state") == "listening";
    case ConnectionsShown::All: break;
  }
  return true;
}

int rank(const Json& one) {
  const std::string state = text_of(one, "state");
  return state == "listening" ? 0 : state == "established" ? 1 : is_usual(one) ? 2 : 3;
}

std::string age_text(std::uint64_t ms) {
  const std::uint64_t seconds = ms / 1000;
  return fmt::format("{}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60);
}

// "rping (pid 812)", "driver echo".
std::string owner(const Json& one) {
  const std::string program = text_of(one, "program");
  if (one.is_object() && one.value("is_driver", Json(false)) == true) return "driver " + program;
  return fmt::format("{} (pid {})", program, text_of(one, "pid"));
}

std::string end_text(const Json& one) {
  std::string text = text_of(one, "node");
  if (one.contains("hca")) {
    text += fmt::format(" {} port {}", text_of(one, "hca"), text_of(one, "port"));
  }
  if (one.contains("qpn")) {
    text += fmt::format(", {} QP {}", text_of(one, "qp_type"), text_of(one, "qpn"));
  }
  return text;
}

// "" as "*": any, or none yet.
std::string address_of(const Json& one, const char* key) {
  const std::string text = text_of(one, key, "");
  return text.empty() ? "*" : text;
}

std::string local_of(const Json& one) {
  const std::string text = text_of(one, "local", "");
  return text.empty() ? "service " + text_of(one, "service_id") : text;
}

std::string details(const Json& one) {
  std::string text = end_text(one);
  if (one.contains("backlog")) {
    text += fmt::format("; {} of {} requests wait", text_of(one, "backlog_used"),
                        text_of(one, "backlog"));
  }
  const Json& peer = one.contains("other_end") ? one["other_end"] : Json::object();
  if (!peer.empty()) {
    text += fmt::format("; peer: {} on {}", owner(peer), text_of(peer, "node"));
    if (one.contains("peer_qpn")) text += ", QP " + text_of(one, "peer_qpn");
  } else if (one.contains("peer_qpn")) {
    text += "; peer: QP " + text_of(one, "peer_qpn");
  }
  text += "; for " + age_text(number_of(one, "age_ms"));
  const std::string state = text_of(one, "cm_state", "");
  if (!state.empty() && state != text_of(one, "state")) text += "; CM: " + state;
  if (const std::uint64_t events = number_of(one, "events_waiting"); events > 0) {
    text += fmt::format("; {} event{} not taken", events, events == 1 ? "" : "s");
  }
  if (one.contains("bytes_sent")) {
    text += fmt::format("; {} bytes sent, {} received", text_of(one, "bytes_sent"),
                        text_of(one, "bytes_received"));
  }
  for (const Json& group : list_of(one, "groups")) {
    if (group.is_string()) text += "; member of " + group.get<std::string>();
  }
  return text;
}

// A row of the table; where it does not fit, its columns come one behind the other.
std::string in_columns(const std::string& row) {
  if (row.size() <= page_columns()) return row;
  std::string narrow;
  for (const char c : row) {
    if (c != ' ' || !narrow.ends_with(' ')) narrow += c;
  }
  return wrap_words(narrow, page_columns(), 4);
}

std::string rows(const Json& one) {
  const std::string state = text_of(one, "state");
  const Paint paint = state == "established" ? Paint::Good
                      : state == "listening" ? Paint::Heading
                                             : Paint::Warning;
  const std::string addresses =
      fmt::format("{:<12} {:<5} {:<21} {:<21}", state, text_of(one, "port_space"), local_of(one),
                  address_of(one, "peer"));
  const std::string whole = addresses + " " + owner(one);
  // A long name or pid begins the details, so that the columns stay where they are.
  const bool fits = whole.size() <= page_columns();
  const std::string row =
      fits ? whole : in_columns(addresses.substr(0, addresses.find_last_not_of(' ') + 1));
  const std::string rest = fits ? details(one) : owner(one) + "; " + details(one);
  std::string text = painted(paint, row.substr(0, state.size())) + row.substr(state.size()) + "\n";
  text += "    " + wrap_words(rest, page_columns(), 4, 4) + "\n";
  const std::string wait = text_of(one, "waits_for", "");
  if (!wait.empty()) {
    text += "    " + painted(Paint::Warning, "waits for ") +
            wrap_words(wait, page_columns(), 4, 14) + "\n";
  }
  return text;
}

}  // namespace

Json chosen_connections(const Json& all, ConnectionsShown shown) {
  std::vector<Json> chosen;
  for (const Json& one : all) {
    if (one.is_object() && is_shown(one, shown)) chosen.push_back(one);
  }
  std::stable_sort(chosen.begin(), chosen.end(),
                   [](const Json& a, const Json& b) { return rank(a) < rank(b); });
  return chosen.empty() ? Json::array() : Json(chosen);
}

std::string connections_page(const std::string& fabric, const Json& connections) {
  if (connections.empty()) {
    const std::string none = fmt::format("no listeners or connections on fabric \"{}\"", fabric);
    return wrap_words(none, page_columns(), 2) + "\n";
  }
  const std::string head =
      fmt::format("{:<12} {:<5} {:<21} {:<21} {}", "STATE", "SPACE", "LOCAL", "PEER", "PROGRAM");
  std::string text = painted(Paint::Heading, in_columns(head)) + "\n";
  for (const Json& one : connections) text += rows(one);
  return text;
}

std::string connections_summary(const Json& all) {
  std::map<std::pair<int, std::string>, std::size_t> counts;
  for (const Json& one : chosen_connections(all, ConnectionsShown::Usual)) {
    ++counts[{rank(one), text_of(one, "state")}];
  }
  std::string text;
  for (const auto& [key, count] : counts) {
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", count, key.second);
  }
  return text;
}

}  // namespace ib::softib
