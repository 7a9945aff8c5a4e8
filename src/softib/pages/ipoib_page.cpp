// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The tables of an interface; what does not fit into a row, and troubles, are in a line below it.
#include "softib/pages/ipoib_page.h"

#include "base/result.h"
#include "softib/pages/status_page.h"
#include "softib/terminal/color.h"
#include "softib/terminal/columns.h"
#include "softib/terminal/terminal.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

namespace ib::softib {
namespace {

constexpr std::size_t kRowsShown = 8;  // of a table, unless all are wanted
constexpr std::size_t kIndent = 4;     // of tables; of the lines below their rows twice as much

using Cells = std::vector<std::string>;

struct Row {
  Cells cells;
  std::string below;
  std::string trouble;
};

std::string line_below(const std::string& text) {
  if (text.empty()) return {};
  return std::string(2 * kIndent, ' ') +
         wrap_words(text, page_columns(), 2 * kIndent, 2 * kIndent) + "\n";
}

std::string trouble_below(const std::string& text) {
  if (text.empty()) return {};
  const std::size_t taken = 2 * kIndent + std::string_view("trouble: ").size();
  return std::string(2 * kIndent, ' ') + painted(Paint::Warning, "trouble:") + " " +
         wrap_words(text, page_columns(), 2 * kIndent, taken) + "\n";
}

// Columns are as wide as the widest of their cells.
class Table {
 public:
  explicit Table(Cells head) : head_(std::move(head)) {}
  void add(Row row) { rows_.push_back(std::move(row)); }

  // Empty without rows.
  std::string text(bool all) const {
    if (rows_.empty()) return {};
    const std::size_t shown = all ? rows_.size() : std::min(rows_.size(), kRowsShown);
    const std::vector<std::size_t> widths = widths_of(shown);
    std::string text = painted(Paint::Heading, line(head_, widths)) + "\n";
    for (std::size_t i = 0; i < shown; ++i) {
      text += line(rows_[i].cells, widths) + "\n" + line_below(rows_[i].below) +
              trouble_below(rows_[i].trouble);
    }
    if (shown == rows_.size()) return text;
    return text + std::string(kIndent, ' ') +
           fmt::format("and {} more (--all)\n", rows_.size() - shown);
  }

 private:
  std::vector<std::size_t> widths_of(std::size_t shown) const {
    std::vector<std::size_t> widths;
    for (const std::string& cell : head_) widths.push_back(cell.size());
    for (std::size_t i = 0; i < shown; ++i) {
      for (std::size_t n = 0; n < widths.size(); ++n)
        widths[n] = std::max(widths[n], rows_[i].cells[n].size());
    }
    return widths;
  }
  static std::string line(const Cells& cells, const std::vector<std::size_t>& widths) {
    std::string text(kIndent, ' ');
    for (std::size_t n = 0; n < cells.size(); ++n) {
      const bool is_last = n + 1 == cells.size();
      text += is_last ? cells[n] : fmt::format("{:<{}}  ", cells[n], widths[n]);
    }
    return text;
  }

  Cells head_;
  std::vector<Row> rows_;
};

bool is_true(const Json& object, const char* key) {
  return object.is_object() && object.value(key, Json(false)) == true;
}

// "the subnet administrator has no path (not found), 3 attempts"; empty: none.
std::string trouble_of(const Json& one) {
  std::string text = text_of(one, "trouble", "");
  if (text.empty()) return text;
  if (one.contains("status")) text += fmt::format(" ({})", text_of(one, "status"));
  const std::uint64_t attempts = number_of(one, "attempts");
  return attempts == 0 ? text : text + ", " + counted(attempts, "attempt");
}

std::string time_text(std::uint64_t ms) {
  const std::uint64_t seconds = ms / 1000;
  return fmt::format("{}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60);
}

std::string address_of_neighbour(const Json& one) {
  return text_of(one, "ipv4", text_of(one, "ipv6"));
}

std::string neighbours(const Json& interface, bool all) {
  Table table({"NEIGHBOUR", "QPN", "LID", "MODE", "UNUSED", "PATH", "FROM"});
  for (const Json& one : list_of(interface, "neighbours")) {
    Row row{
        {address_of_neighbour(one), text_of(one, "qpn"), text_of(one, "lid"), text_of(one, "mode"),
         time_text(number_of(one, "unused_ms")), text_of(one, "path"), text_of(one, "source")},
        text_of(one, "address"),
        {}};
    if (one.contains("ipv4") && one.contains("ipv6")) row.below += " " + text_of(one, "ipv6");
    table.add(std::move(row));
  }
  return table.text(all);
}

std::string waiting_of(const Json& one) {
  return std::to_string(number_of(one, "waiting_packets"));
}

std::string paths(const Json& interface, bool all) {
  Table table({"PATH TO", "LID", "SL", "MTU", "STATE", "WAIT"});
  for (const Json& one : list_of(interface, "paths")) {
    table.add({{text_of(one, "gid"), text_of(one, "lid"), text_of(one, "sl"), text_of(one, "mtu"),
                text_of(one, "state"), waiting_of(one)},
               is_true(one, "is_global") ? "in another subnet, by a router" : "",
               trouble_of(one)});
  }
  return table.text(all);
}

// The kernel sends to groups in which nobody is interested: no trouble.
bool has_no_member(const Json& group) {
  return text_of(group, "membership") == "send_only" &&
         text_of(group, "status", "") == status_text(Status::NotFound);
}

std::string groups(const Json& interface, bool all) {
  Table table({"GROUP", "MLID", "MEMBER", "STATE", "WAIT"});
  for (const Json& one : list_of(interface, "groups")) {
    const bool is_full = text_of(one, "membership") == "full";
    const bool is_empty = has_no_member(one);
    table.add({{text_of(one, "mgid"), text_of(one, "mlid"), is_full ? "full" : "send only",
                is_empty ? "no member" : text_of(one, "state"), waiting_of(one)},
               {},
               is_empty ? "" : trouble_of(one)});
  }
  return table.text(all);
}

// By the address of the neighbour, which the flags of its first byte are no part of.
std::string without_flags(const std::string& address) {
  return address.substr(std::min(address.size(), std::string_view("80:").size()));
}

std::string connections(const Json& interface, bool all) {
  std::map<std::string, const Json*> known;
  for (const Json& one : list_of(interface, "neighbours"))
    known[without_flags(text_of(one, "address"))] = &one;
  Table table({"CONNECTION", "QPN", "CARRIES", "STATE", "MTU", "WAIT"});
  for (const Json& one : list_of(interface, "connections")) {
    const std::string peer = text_of(one, "peer");
    const auto found = known.find(without_flags(peer));
    const bool is_known = found != known.end();
    const std::uint64_t mtu = number_of(one, "mtu");
    table.add({{is_known ? address_of_neighbour(*found->second) : "-",
                is_known ? text_of(*found->second, "qpn") : "-",
                text_of(one, "half") == "active" ? "sends" : "receives", text_of(one, "state"),
                mtu == 0 ? "-" : std::to_string(mtu), waiting_of(one)},
               is_known ? "" : peer,
               {}});
  }
  return table.text(all);
}

std::string counters_of(const Json& interface) {
  const Json counters = interface.value("counters", Json::object());
  std::string text = fmt::format("{} ({}) from the kernel, {} ({}) to it; asked for {}, {}, {}",
                                 counted(number_of(counters, "frames_from_kernel"), "frame"),
                                 bytes_text(number_of(counters, "bytes_from_kernel")),
                                 number_of(counters, "frames_to_kernel"),
                                 bytes_text(number_of(counters, "bytes_to_kernel")),
                                 counted(number_of(counters, "path_queries"), "path"),
                                 counted(number_of(counters, "join_requests"), "membership"),
                                 counted(number_of(counters, "connect_requests"), "connection"));
  std::string drops;
  const Json& dropped = counters.contains("drops") ? counters["drops"] : Json::object();
  for (const auto& [reason, count] : dropped.items()) {
    drops += fmt::format("{}{}: {}", drops.empty() ? "; dropped: " : ", ", reason, count.dump());
  }
  return text + drops;
}

std::string interface_lines(const Json& interface, bool all) {
  const bool carrier = is_true(interface, "carrier");
  const std::string head =
      fmt::format("{:<8} {} port {}, P_Key {}, {}, MTU {}, ", text_of(interface, "name"),
                  text_of(interface, "hca"), text_of(interface, "port"), text_of(interface, "pkey"),
                  text_of(interface, "mode"), text_of(interface, "mtu"));
  std::string text =
      "  " + head +
      painted(carrier ? Paint::Good : Paint::Warning, carrier ? "carrier" : "no carrier") + "\n";
  const std::string indent(kIndent, ' ');
  text += indent + text_of(interface, "address") + "\n";
  text += indent + wrap_words(counters_of(interface), page_columns(), kIndent, kIndent) + "\n";
  text += trouble_below(trouble_of(interface));
  return text + neighbours(interface, all) + paths(interface, all) + groups(interface, all) +
         connections(interface, all);
}

std::string driver_of(const Json& network) {
  if (network.contains("failure")) return "no driver";
  if (!is_true(network, "ready")) return "driver not ready";
  return "driver pid " + text_of(network, "driver_pid");
}

std::string network_lines(const Json& network, bool all) {
  const std::string head = fmt::format(
      "{}: {}, {}, {}, {}", text_of(network, "node"),
      is_true(network, "attached") ? "attached" : "own network", text_of(network, "mode"),
      counted(number_of(network, "programs"), "program"), driver_of(network));
  std::string text = painted(Paint::Heading, wrap_words(head, page_columns(), kIndent)) + "\n" +
                     trouble_below(text_of(network, "failure", ""));
  const Json driver = network.value("driver", Json::object());
  for (const Json& interface : list_of(driver, "interfaces"))
    text += interface_lines(interface, all);
  return text;
}

}  // namespace

std::string ipoib_page(const Json& networks, const IpoibShown& shown) {
  if (networks.empty()) return "no node has a network; softib run --net -- CMD makes one\n";
  std::string text;
  for (const Json& network : networks) text += network_lines(network, shown.all) + "\n";
  if (shown.networks > networks.size()) {
    text += fmt::format("and {} more (--all, or softib ipoib show NODE)\n",
                        counted(shown.networks - networks.size(), "network"));
  }
  return text + "log: " + shown.log + "\n";
}

}  // namespace ib::softib
