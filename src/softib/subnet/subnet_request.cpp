// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "softib/subnet/subnet_request.h"

#include "fabric/port.h"
#include "softib/commands/command.h"
#include "softib/pages/fabric_state.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <fstream>

namespace ib::softib {
namespace {

namespace control = verbs::control;

control::Code code_of(control::TopologyCode code) {
  return static_cast<control::Code>(code);
}

// A node by name or number, or a LID: "lid:5".
control::PathEnd end_of(ControlClient& client, const std::string& text, const std::string& fabric) {
  constexpr std::string_view kLid = "lid:";
  control::PathEnd end;
  if (!text.starts_with(kLid)) {
    put_text(end.node, ask_node(client, text, fabric));
    return end;
  }
  const char* first = text.data() + kLid.size();
  const char* last = text.data() + text.size();
  const auto [rest, error] = std::from_chars(first, last, end.lid);
  if (error != std::errc{} || rest != last || end.lid == 0 || end.lid > fabric::kLastUnicastLid) {
    throw CliError(Exit::Usage, fmt::format("\"{}\": a LID is a number from 1 to {}", text,
                                            fabric::kLastUnicastLid));
  }
  return end;
}

}  // namespace

std::string ask_topology(ControlClient& client, control::TopologyForm form) {
  control::TopologyIn in;
  in.form = form;
  return client.read_text(code_of(control::TopologyCode::Topology), bytes_of(in), kLimitOfAll);
}

Json ask_topology_json(ControlClient& client) {
  return parse_answer(ask_topology(client, control::TopologyForm::Json));
}

Json parse_answer(const std::string& text) {
  Json json = Json::parse(text, nullptr, false);
  if (json.is_object()) return json;
  throw CliError(Exit::Daemon,
                 "softibd answered with something that is no JSON object\n"
                 "  Is it of the same version as softib?");
}

std::string ask_path(ControlClient& client, const std::string& from, const std::string& to,
                     const std::string& fabric) {
  control::PathIn in;
  in.from = end_of(client, from, fabric);
  in.to = end_of(client, to, fabric);
  return client.read_text(code_of(control::TopologyCode::Path), bytes_of(in));
}

std::string with_node_name(ControlClient& client, const std::string& text,
                           const std::string& fabric) {
  const std::size_t end = std::min(text.find_first_not_of("0123456789"), text.size());
  const bool is_number = end != 0 && (end == text.size() || text[end] == ':' || text[end] == '/');
  if (!is_number) return text;
  return ask_node(client, text.substr(0, end), fabric) + text.substr(end);
}

void write_file(const std::string& path, const std::string& text) {
  if (path == "-") return print(text);
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file << text;
  file.close();
  if (!file) {
    throw CliError(Exit::Failed, fmt::format("cannot write {}: {}", path, std::strerror(errno)));
  }
}

}  // namespace ib::softib
