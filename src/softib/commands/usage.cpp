// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "softib/commands/usage.h"

#include "setup/cli_error.h"
#include "softib/terminal/columns.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <memory>
#include <sstream>

namespace ib::softib {
namespace {

// Levenshtein; a swap of neighbours counts one.
std::size_t distance(const std::string& a, const std::string& b) {
  std::vector<std::vector<std::size_t>> d(a.size() + 1, std::vector<std::size_t>(b.size() + 1));
  for (std::size_t i = 0; i <= a.size(); ++i) d[i][0] = i;
  for (std::size_t j = 0; j <= b.size(); ++j) d[0][j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t changed = d[i - 1][j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      d[i][j] = std::min({d[i - 1][j] + 1, d[i][j - 1] + 1, changed});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        d[i][j] = std::min(d[i][j], d[i - 2][j - 2] + 1);
      }
    }
  }
  return d[a.size()][b.size()];
}

class NarrowFormatter : public CLI::Formatter {
 public:
  std::string make_option(const CLI::Option* option, bool positional) const override {
    return row(without_default(make_option_name(option, positional)) + value_of(option),
               make_option_desc(option));
  }
  std::string make_subcommand(const CLI::App* command) const override {
    return row(command->get_display_name(), command->get_description());
  }

 private:
  // "--verify{on}" is CLI11's word for a flag that may have a value: "--verify[=faults]".
  static std::string without_default(const std::string& name) {
    return name.substr(0, name.find('{'));
  }
  std::string value_of(const CLI::Option* option) const {
    const std::string value = make_option_opts(option);
    return value.starts_with(" [=") ? value.substr(1) : value;
  }
  std::string row(const std::string& name, const std::string& description) const {
    std::ostringstream out;
    CLI::detail::format_help(out, name, wrap_words(description, kColumns - get_column_width(), 0),
                             get_column_width());
    return out.str();
  }
};

std::vector<std::string> names_of_commands(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands({})) names.push_back(command->get_name());
  return names;
}

const CLI::App* command_named(const CLI::App& app, const std::string& name) {
  for (const CLI::App* command : app.get_subcommands({})) {
    if (command->get_name() == name) return command;
  }
  return nullptr;
}

std::string listed(const std::vector<std::string>& words) {
  std::string text;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (i > 0) text += i + 1 == words.size() ? " or " : ", ";
    text += words[i];
  }
  return text;
}

// The command that the words name, and its full name: "softib hca add".
const CLI::App& command_of(const CLI::App& app, const std::vector<std::string>& words,
                           std::string& called) {
  const CLI::App* command = &app;
  called = "softib";
  for (const std::string& word : words) {
    const CLI::App* next = command_named(*command, word);
    if (next == nullptr) break;
    command = next;
    called += ' ' + word;
  }
  return *command;
}

std::vector<std::string> names_of_options(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::Option* option : command.get_options({})) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  return names;
}

// The lines of a footer that show an action: "  softib hca add".
std::string examples_of(const std::string& footer, const std::string& called) {
  std::istringstream lines(footer);
  std::string examples;
  std::size_t count = 0;
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("  " + called)) continue;
    examples += '\n' + line;
    ++count;
  }
  return count == 0 ? "" : (count == 1 ? "Example:" : "Examples:") + examples;
}

}  // namespace

std::string unexpected(const CLI::App& command, const std::string& called,
                       const std::string& word) {
  if (!word.starts_with('-')) return fmt::format("{} takes no \"{}\"", called, word);
  std::string text = fmt::format("{} has no option {}", called, word);
  const std::string name = word.substr(0, word.find('='));
  const std::string meant = nearest(name, names_of_options(command));
  if (!meant.empty()) text += fmt::format("; did you mean {}?", meant);
  return text;
}

std::string nearest(const std::string& word, const std::vector<std::string>& candidates) {
  std::string best;
  std::size_t least = std::max<std::size_t>(1, word.size() / 3) + 1;
  for (const std::string& candidate : candidates) {
    std::size_t away = distance(word, candidate);
    // "stat", "--fab": the beginning of one word.
    if (word.size() >= 3 && candidate.starts_with(word)) away = std::min<std::size_t>(away, 1);
    // "nodez" is "nodes" rather than "node".
    const bool is_as_long = candidate.size() == word.size() && best.size() != word.size();
    if (away < least || (away == least && !best.empty() && is_as_long)) {
      least = away;
      best = candidate;
    }
  }
  return best;
}

CLI::Validator whole_number(std::uint64_t least, std::uint64_t most) {
  return CLI::Validator(
      [least, most](std::string& text) -> std::string {
        std::uint64_t value = 0;
        const char* const last = text.data() + text.size();
        const auto [end, error] = std::from_chars(text.data(), last, value);
        if (error == std::errc{} && end == last && value >= least && value <= most) return {};
        return fmt::format("must be a whole number from {} to {}, not \"{}\"", least, most, text);
      },
      "");
}

void use_narrow_help(CLI::App& app) {
  auto formatter = std::make_shared<NarrowFormatter>();
  formatter->column_width(32);
  app.formatter(formatter);
}

void turn_help_around(std::vector<std::string>& words) {
  if (words.empty() || words.front() != "help") return;
  words.erase(words.begin());
  words.emplace_back("--help");
}

void move_fabric_behind_command(const CLI::App& app, std::vector<std::string>& words) {
  std::vector<std::string> moved;
  while (!words.empty()) {
    const std::string& word = words.front();
    const bool has_value = word == "-f" || word == "--fabric";
    if (!has_value && !word.starts_with("--fabric=")) break;
    // In one word, so that it is no option of its own wherever it stands; trace's -f is another.
    const bool is_short = has_value && words.size() >= 2;
    moved.push_back(is_short ? "--fabric=" + words[1] : has_value ? "--fabric" : word);
    words.erase(words.begin(), words.begin() + (is_short ? 2 : 1));
  }
  if (moved.empty()) return;
  // Behind the action, if the command has some; before the program of `softib run`.
  std::ptrdiff_t at = 0;
  const CLI::App* command = &app;
  for (const std::string& word : words) {
    command = command_named(*command, word);
    if (command == nullptr) break;
    ++at;
  }
  words.insert(words.begin() + at, moved.begin(), moved.end());
}

void share_examples(CLI::App& app) {
  for (CLI::App* command : app.get_subcommands({})) {
    for (CLI::App* action : command->get_subcommands({})) {
      const std::string called =
          fmt::format("softib {} {}", command->get_name(), action->get_name());
      action->footer(examples_of(command->get_footer(), called));
    }
  }
}

void check_command(const CLI::App& app, const std::vector<std::string>& words) {
  const CLI::App* command = &app;
  std::string called = "softib";
  for (const std::string& word : words) {
    const std::vector<std::string> known = names_of_commands(*command);
    if (known.empty() || word.starts_with('-')) return;
    const CLI::App* next = command_named(*command, word);
    if (next == nullptr) {
      const std::string meant = nearest(word, known);
      const bool top = command == &app;
      throw CliError(
          Exit::Usage,
          fmt::format("{} \"{}\"{}\n  {}", top ? "there is no command" : called + " cannot", word,
                      meant.empty() ? "" : fmt::format("; did you mean `{} {}`?", called, meant),
                      top ? "`softib help` lists the commands."
                          : fmt::format("It can {}.", listed(known))));
    }
    command = next;
    called += ' ' + word;
  }
}

std::string usage_complaint(const CLI::App& app, const std::vector<std::string>& words,
                            const CLI::ParseError& error) {
  std::string called;
  const CLI::App& command = command_of(app, words, called);
  const std::string said = error.what();
  std::string text;
  if (dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr && said.find(": ") != said.npos) {
    // "The following arguments were not expected: A --B": an option explains its value, too.
    std::istringstream rest(said.substr(said.find(": ") + 2));
    std::string first;
    for (std::string word; rest >> word;) {
      if (first.empty() || (!first.starts_with('-') && word.starts_with('-'))) first = word;
    }
    text = unexpected(command, called, first);
  } else if (dynamic_cast<const CLI::RequiredError*>(&error) != nullptr) {
    const std::vector<std::string> actions = names_of_commands(command);
    text = actions.empty() ? fmt::format("{}: {}", called, said)
                           : fmt::format("{}: say {}", called, listed(actions));
  } else {
    text = fmt::format("{}: {}", called, said);
  }
  return fmt::format("{}\n  `{} --help` tells more.", text, called);
}

}  // namespace ib::softib
