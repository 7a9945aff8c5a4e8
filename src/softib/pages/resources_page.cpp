// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The tables and the hints: what each hint looks at is beside its sentence.
#include "softib/pages/resources_page.h"

#include "softib/pages/explanation.h"
#include "softib/pages/status_page.h"
#include "softib/terminal/color.h"
#include "softib/terminal/columns.h"
#include "softib/terminal/terminal.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdlib>

namespace ib::softib {
namespace {

constexpr std::size_t kIndent = 10;       // of the second and later lines of a row
constexpr std::size_t kRegionsShown = 8;  // of a program, unless all are wanted

bool is_shown(const Json& program, const ResourcesShown& shown) {
  if (!shown.node.empty() && text_of(program, "node") != shown.node) return false;
  const std::string name = text_of(program, "program");
  if (!shown.program.empty() && shown.program != name && shown.program != text_of(program, "pid")) {
    return false;
  }
  const bool own = program.value("is_softibd", Json(false)) == true;
  return !own || shown.all || !shown.program.empty();
}

std::string row(const char* kind, const std::string& text) {
  return fmt::format("  {:<8}", kind) + wrap_words(text, page_columns(), kIndent, kIndent) + "\n";
}

// "peer 0x12 of ib_send_lat (pid 812, node1)"; of a queue pair that is not connected: empty.
std::string peer_of(const Json& qp) {
  if (!qp.contains("peer_qpn")) return {};
  const std::string qpn = text_of(qp, "peer_qpn");
  if (!qp.contains("peer")) return fmt::format("peer {}, which is not there", qpn);
  const Json& peer = qp["peer"];
  return fmt::format("peer {} of {} (pid {}, {})", qpn, text_of(peer, "program"),
                     text_of(peer, "pid"), text_of(peer, "node"));
}

std::string receives_of(const Json& qp) {
  if (qp.contains("srq")) return fmt::format(", receives of SRQ {}", text_of(qp, "srq"));
  if (!qp.contains("receives_posted")) return {};
  return fmt::format(", {} of {} receives posted", text_of(qp, "receives_posted"),
                     text_of(qp, "max_recv_wr"));
}

// "; waits (NoReceive): The peer had no receive posted."
std::string cause_of(const Json& qp, const char* key, const char* verb) {
  if (!qp.contains(key)) return {};
  const std::optional<verbs::control::Cause> cause = find_cause(text_of(qp, key));
  if (!cause) return fmt::format("; {} ({})", verb, text_of(qp, key));
  return fmt::format("; {} ({}): {}", verb, explain(*cause).name, explain(*cause).meaning);
}

std::string qp_row(const Json& qp) {
  const std::string peer = peer_of(qp);
  std::string text = fmt::format(
      "{} {} {} on {} port {}{}{}; sent {}, received {}", text_of(qp, "qpn"), text_of(qp, "type"),
      text_of(qp, "state"), text_of(qp, "hca"), text_of(qp, "port"), peer.empty() ? "" : ", ", peer,
      text_of(qp, "sent_messages"), text_of(qp, "received_messages"));
  text += receives_of(qp);
  text += fmt::format("; CQs {}, {}", text_of(qp, "send_cq"), text_of(qp, "recv_cq"));
  return row("QP", text + cause_of(qp, "waits", "waits") + cause_of(qp, "error", "broken"));
}

std::string arming_of(const Json& cq) {
  const std::string armed = text_of(cq, "armed");
  if (armed == "any") return "armed";
  if (armed == "solicited") return "armed for solicited completions";
  return cq.value("was_armed", Json(false)) == true ? "not armed now" : "never armed";
}

std::string cq_row(const Json& cq) {
  std::string text =
      fmt::format("{} on {}, {} of {} unpolled, {} ever", text_of(cq, "cq"), text_of(cq, "hca"),
                  text_of(cq, "unpolled"), text_of(cq, "entries"), text_of(cq, "completions"));
  if (cq.contains("channel")) {
    text += fmt::format("; channel {}, {}", text_of(cq, "channel"), arming_of(cq));
  }
  return row("CQ", text);
}

std::string srq_row(const Json& srq) {
  std::string text =
      fmt::format("{} on {}, {}, {} of {} receives posted, {} queue pairs", text_of(srq, "srq"),
                  text_of(srq, "hca"), text_of(srq, "type"), text_of(srq, "receives_posted"),
                  text_of(srq, "max_wr"), text_of(srq, "queue_pairs"));
  if (number_of(srq, "limit") != 0) text += fmt::format("; limit {}", text_of(srq, "limit"));
  return row("SRQ", text);
}

// "0x7f0000001000 to 0x7f0000002fff, 8.0 KiB": of peers' addresses, which start at its iova.
std::string range_of(const Json& key) {
  const std::uint64_t length = number_of(key, "length");
  const std::uint64_t first = std::strtoull(text_of(key, "iova").c_str(), nullptr, 16);
  if (length == 0) return fmt::format("{:#x}, empty", first);
  return fmt::format("{:#x} to {:#x}, {}", first, first + length - 1, bytes_text(length));
}

std::string mr_row(const Json& mr) {
  return row("MR",
             fmt::format("key {} on {}, PD {}, {}, {}", text_of(mr, "key"), text_of(mr, "hca"),
                         text_of(mr, "pd"), range_of(mr), text_of(mr, "access")));
}

std::string mw_row(const Json& mw) {
  const bool bound = mw.value("bound", Json(false)) == true;
  return row("MW", fmt::format("key {} on {}, PD {}, {}", text_of(mw, "key"), text_of(mw, "hca"),
                               text_of(mw, "pd"),
                               bound ? range_of(mw) + ", " + text_of(mw, "access") : "not bound"));
}

std::string channel_row(const Json& channel) {
  return row("channel",
             fmt::format("{}, {} not read, {}", text_of(channel, "channel"),
                         counted(number_of(channel, "unread_events"), "event"),
                         counted(number_of(channel, "completion_queues"), "completion queue")));
}

std::string rows_of(const Json& program, const char* kind, std::string (*row_of)(const Json&)) {
  std::string text;
  for (const Json& one : list_of(program, kind)) text += row_of(one);
  return text;
}

std::string regions_of(const Json& program, bool all) {
  const Json& regions = list_of(program, "mr");
  const std::size_t shown = all ? regions.size() : std::min(regions.size(), kRegionsShown);
  std::string text;
  for (std::size_t i = 0; i < shown; ++i) text += mr_row(regions[i]);
  if (shown == regions.size()) return text;
  return text + row("", fmt::format("and {} more (--all)", regions.size() - shown));
}

std::string program_lines(const Json& program, bool all) {
  const std::string head = fmt::format("{} (pid {}) on {}", text_of(program, "program"),
                                       text_of(program, "pid"), text_of(program, "node"));
  std::string text = painted(Paint::Heading, head) + "\n";
  text += rows_of(program, "qp", qp_row) + rows_of(program, "cq", cq_row) +
          rows_of(program, "srq", srq_row) + regions_of(program, all) +
          rows_of(program, "mw", mw_row) + rows_of(program, "channels", channel_row);
  for (const Json& hint : list_of(program, "hints")) {
    text += "  " + painted(Paint::Warning, "hint:") + "   " +
            wrap_words(hint.get<std::string>(), page_columns(), kIndent, kIndent) + "\n";
  }
  return text;
}

}  // namespace

Json chosen_programs(const Json& answer, const ResourcesShown& shown) {
  Json programs = Json::array();
  for (const Json& program : list_of(answer, "programs")) {
    if (!program.is_object() || !is_shown(program, shown)) continue;
    Json chosen = program;
    chosen["hints"] = hints_of(program);
    programs.push_back(std::move(chosen));
  }
  return programs;
}

std::string resources_page(const std::string& fabric, const Json& programs,
                           const ResourcesShown& shown) {
  if (programs.empty()) {
    const std::string which = shown.program.empty() ? "no program" : "no \"" + shown.program + "\"";
    const std::string none = fmt::format("{} has an HCA of fabric \"{}\" open{}", which, fabric,
                                         shown.node.empty() ? "" : " on " + shown.node);
    return wrap_words(none, page_columns(), 2) + "\n";
  }
  std::string text;
  for (const Json& program : programs) {
    text += (text.empty() ? "" : "\n") + program_lines(program, shown.all);
  }
  return text;
}

}  // namespace ib::softib
