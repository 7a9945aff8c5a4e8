// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// softib explain: errors in words. With a name: its meaning. Without: the last errors of the
// fabric, from its trace, or from its log if it is down.
#include "setup/runtime_dir.h"
#include "softib/commands/command.h"
#include "softib/pages/explanation.h"
#include "softib/pages/fabric_state.h"
#include "softib/pages/trace_lines.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <sstream>

namespace ib::softib {
namespace {

constexpr std::size_t kShown = 10;

struct ExplainOptions {
  std::string fabric;
  std::vector<std::string> words;
  bool all = false;
};

// Names of statuses and causes in a trace line stand between other words.
std::vector<std::string> names_in(const std::string& line) {
  std::vector<std::string> found;
  std::size_t start = 0;
  while (start < line.size()) {
    const auto is_part = [](char c) {
      return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
    };
    while (start < line.size() && !is_part(line[start])) ++start;
    std::size_t end = start;
    while (end < line.size() && is_part(line[end])) ++end;
    const std::string word = line.substr(start, end - start);
    start = end;
    // "none" and "success" are everyday words; a call has cards for all its refusals.
    const bool name = word.size() > 7 && !word.starts_with("ibv_") &&
                      std::any_of(word.begin() + 1, word.end(),
                                  [](char c) { return (c >= 'A' && c <= 'Z') || c == '_'; });
    if (name && !explain_word(word).empty()) found.push_back(word);
  }
  return found;
}

void show(const std::vector<std::string>& lines) {
  std::vector<std::string> cards;
  for (const std::string& line : lines) {
    print(line + "\n");
    for (const std::string& word : names_in(line)) {
      const std::string card = explain_word(word);
      if (std::find(cards.begin(), cards.end(), card) == cards.end()) cards.push_back(card);
    }
  }
  for (const std::string& card : cards) print("\n" + card);
}

// The fabric is down; its log has the lines of the trace.
void show_log(const std::string& fabric, const CliError& why) {
  const std::string dir = choose_runtime_dir(Surroundings::of_this_process());
  const std::string path = fabric_files(dir, fabric).log;
  std::istringstream log(last_lines(path, kShown));
  std::vector<std::string> lines;
  for (std::string line; std::getline(log, line);) lines.push_back(line);
  if (lines.empty()) throw CliError(why);
  print(fmt::format("fabric \"{}\" is not up; the end of its log {}:\n", fabric, path));
  show(lines);
}

void explain_last(const std::string& fabric) {
  std::vector<std::string> lines;
  try {
    ControlClient client = connect_up(fabric);
    for (const TraceLine& line : read_trace(client, 0)) {
      if (!line.is_step) lines.push_back(shown(line));
    }
  } catch (const CliError& error) {
    if (error.code() != Exit::NotUp) throw;
    show_log(fabric, error);
    return;
  }
  if (lines.empty()) {
    print(fmt::format("nothing went wrong on fabric \"{}\" since it is up\n", fabric));
    return;
  }
  const std::size_t shown = std::min(kShown, lines.size());
  lines.erase(lines.begin(), lines.end() - static_cast<std::ptrdiff_t>(shown));
  show(lines);
}

void explain_command(const ExplainOptions& options) {
  if (options.all) {
    print(known_words());
    return;
  }
  if (options.words.empty()) {
    explain_last(options.fabric);
    return;
  }
  const std::string word = fmt::format("{}", fmt::join(options.words, " "));
  const std::string text = explain_word(word);
  if (text.empty()) {
    throw CliError(Exit::NotFound,
                   fmt::format("\"{}\" is no status, cause, event, reason or refusal; "
                               "`softib explain --all` lists them",
                               word));
  }
  print(text);
}

}  // namespace

void add_explain(CLI::App& app, Context&) {
  Command command(app, "explain", "errors in words, and what to do");
  auto options = std::make_shared<ExplainOptions>();
  add_fabric_option(command, options->fabric);
  command
      .option("what", options->words,
              "a completion status (number or name), a cause or a refusal; an event, reason or "
              "errno of librdmacm; nothing: the last errors")
      .placeholder("[EVENT|STATUS|REASON]");
  command.flag("--all", options->all, "all that can be explained");
  command.footer(
      "Examples:\n"
      "  softib explain\n"
      "  softib explain 12\n"
      "  softib explain IBV_WC_REM_ACCESS_ERR\n"
      "  softib explain vendor_err 14\n"
      "  softib explain ibv_post_send\n"
      "  softib explain RDMA_CM_EVENT_REJECTED, error 8\n"
      "  softib explain reason 28\n"
      "  softib explain ETIMEDOUT");
  command.callback([options] { explain_command(*options); });
}

}  // namespace ib::softib
