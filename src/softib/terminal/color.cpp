// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "softib/terminal/color.h"

#include "setup/cli_error.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>

namespace ib::softib {
namespace {

struct Colored {
  bool output = false;
  bool error = false;
};

Colored& colored() {
  static Colored streams;
  return streams;
}

const char* code_of(Paint paint) {
  switch (paint) {
    case Paint::Heading: return "1";
    case Paint::Good: return "32";
    case Paint::Warning: return "33";
    case Paint::Bad: return "31";
  }
  return "0";
}

ColorWhen parse_when(const std::string& text) {
  if (text == "auto") return ColorWhen::Auto;
  if (text == "always") return ColorWhen::Always;
  if (text == "never") return ColorWhen::Never;
  throw CliError(Exit::Usage,
                 fmt::format("--color must be auto, always or never, not \"{}\"", text));
}

}  // namespace

bool wants_color(ColorWhen when, bool is_terminal, const char* no_color, const char* term) {
  if (when != ColorWhen::Auto) return when == ColorWhen::Always;
  const bool refused = no_color != nullptr && *no_color != '\0';
  const std::string_view kind = term == nullptr ? "" : term;
  return is_terminal && !refused && !kind.empty() && kind != "dumb";
}

ColorWhen take_color(std::vector<std::string>& words) {
  constexpr std::string_view kOption = "--color";
  ColorWhen when = ColorWhen::Auto;
  for (auto word = words.begin(); word != words.end() && *word != "run";) {
    if (*word == kOption) {
      const auto value = word + 1;
      when = parse_when(value == words.end() ? "" : *value);
      word = words.erase(word, value + 1);
    } else if (word->starts_with("--color=")) {
      when = parse_when(word->substr(kOption.size() + 1));
      word = words.erase(word);
    } else {
      ++word;
    }
  }
  return when;
}

void use_color(ColorWhen when) {
  const char* const no_color = std::getenv("NO_COLOR");
  const char* const term = std::getenv("TERM");
  colored().output = wants_color(when, ::isatty(STDOUT_FILENO) == 1, no_color, term);
  colored().error = wants_color(when, ::isatty(STDERR_FILENO) == 1, no_color, term);
}

std::string painted(Paint paint, std::string_view text, Stream stream) {
  const bool has_color = stream == Stream::Output ? colored().output : colored().error;
  if (!has_color) return std::string(text);
  return fmt::format("\033[{}m{}\033[0m", code_of(paint), text);
}

}  // namespace ib::softib
