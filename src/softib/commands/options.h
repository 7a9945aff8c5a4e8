// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A command of the command line and its options. CLI11 parses them; only options.cpp, usage.* and
// main.cpp include it, since it takes longer to compile than a command.
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <optional>
#include <string>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace ib::softib {

// An option of a command; lives as long as the application.
class Option {
 public:
  explicit Option(CLI::Option* option) : option_(option) {}
  // The help shows it behind the name: "N|NAME [0]".
  Option placeholder(const std::string& text);
  Option required();
  Option whole_number(std::uint64_t least, std::uint64_t most);
  Option one_of(std::initializer_list<const char*> words);
  Option environment(const char* variable);  // the default, if it is set

 private:
  CLI::Option* option_;
};

// The variables that options write to must live as long as the application; the callback may own
// them. `names` is as CLI11 has it: "-n,--node"; without dashes the option is positional.
class Command {
 public:
  Command(CLI::App& parent, const char* name, const char* text);

  Command subcommand(const char* name, const char* text);
  void require_subcommand();  // exactly one
  Option option(const char* names, std::string& value, const char* text);
  Option option(const char* names, std::optional<std::string>& value, const char* text);
  Option option(const char* names, std::vector<std::string>& value, const char* text);
  Option option(const char* names, std::uint32_t& value, const char* text);
  Option option(const char* names, std::optional<std::uint32_t>& value, const char* text);
  Option option(const char* names, std::uint64_t& value, const char* text);
  void flag(const char* names, bool& value, const char* text);
  // A flag that may have a value: "--verify{on}" is "on" without one.
  Option flag(const char* names, std::string& value, const char* text);
  void footer(const std::string& text);
  void callback(std::function<void()> action);
  // The first word that is no option, and all after it, are left over for remaining().
  void leave_rest();
  std::vector<std::string> remaining() const;
  // Why the first of those is none of its options.
  std::string complaint_about(const std::string& word) const;

 private:
  CLI::App* app_;
};

}  // namespace ib::softib
