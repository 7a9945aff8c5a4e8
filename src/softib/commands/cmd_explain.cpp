// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// softib explain: errors in words. With a name: its meaning. Without: the last errors of the
// fabric, from its trace, or from its log if it is down.
#include "setup/runtime_dir.h"
#include "softib/commands/command.h"
#include "softib/pages/explanation.h"
#include "softib/pages/fabric_state.h"
#include "softib/pages/trace_lines.h"
#include "softib/terminal/columns.h"

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

void show(const std::vector<std::string>& lines) {
  std::vector<std::string> cards;
  const auto add = [&cards](const std::string& card) {
    const bool is_new = std::find(cards.begin(), cards.end(), card) == cards.end();
    if (!card.empty() && is_new) cards.push_back(card);
  };
  for (const std::string& line : lines) {
    print(line + "\n");
    for (const std::string& word : names_in(line)) add(explain_word(word));
    add(explain_stream(line));
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
      if (!line.is_step) lines.push_back(shown(line, kColumns));
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
  std::string text = explain_word(word);
  if (text.empty()) text = explain_line(word);
  if (text.empty()) {
    throw CliError(Exit::NotFound,
                   fmt::format("\"{}\" has no status, cause, event, reason, errno or refusal "
                               "in it; `softib explain --all` lists them",
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
      .option(
          "what", options->words,
          "a completion status (number, name or text), a cause or a refusal; an event, reason or "
          "errno; a whole line that a program has printed; nothing: the last errors")
      .placeholder("[EVENT|STATUS|REASON|LINE]");
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
      "  softib explain ETIMEDOUT\n"
      "  softib explain \"Failed status 12: wr_id 0 syndrom 0x10\"");
  command.callback([options] { explain_command(*options); });
}

}  // namespace ib::softib
