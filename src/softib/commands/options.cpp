// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "softib/commands/options.h"

#include "softib/commands/usage.h"

#include <CLI/CLI.hpp>

#include <utility>

namespace ib::softib {

Option Option::placeholder(const std::string& text) {
  option_->option_text(text);
  return *this;
}

Option Option::required() {
  option_->required();
  return *this;
}

Option Option::whole_number(std::uint64_t least, std::uint64_t most) {
  option_->check(softib::whole_number(least, most));
  return *this;
}

Option Option::one_of(std::initializer_list<const char*> words) {
  option_->check(CLI::IsMember(std::vector<std::string>(words.begin(), words.end())));
  return *this;
}

Option Option::environment(const char* variable) {
  option_->envname(variable);
  return *this;
}

Command::Command(CLI::App& parent, const char* name, const char* text)
    : app_(parent.add_subcommand(name, text)) {}

Command Command::subcommand(const char* name, const char* text) {
  return {*app_, name, text};
}

void Command::require_subcommand() {
  app_->require_subcommand(1);
}

Option Command::option(const char* names, std::string& value, const char* text) {
  return Option(app_->add_option(names, value, text));
}

Option Command::option(const char* names, std::optional<std::string>& value, const char* text) {
  return Option(app_->add_option(names, value, text));
}

Option Command::option(const char* names, std::vector<std::string>& value, const char* text) {
  return Option(app_->add_option(names, value, text));
}

Option Command::option(const char* names, std::uint32_t& value, const char* text) {
  return Option(app_->add_option(names, value, text));
}

Option Command::option(const char* names, std::optional<std::uint32_t>& value, const char* text) {
  return Option(app_->add_option(names, value, text));
}

Option Command::option(const char* names, std::uint64_t& value, const char* text) {
  return Option(app_->add_option(names, value, text));
}

void Command::flag(const char* names, bool& value, const char* text) {
  app_->add_flag(names, value, text);
}

Option Command::flag(const char* names, std::string& value, const char* text) {
  return Option(app_->add_flag(names, value, text));
}

void Command::footer(const std::string& text) {
  app_->footer(text);
}

void Command::callback(std::function<void()> action) {
  app_->callback(std::move(action));
}

void Command::leave_rest() {
  app_->prefix_command();
}

std::vector<std::string> Command::remaining() const {
  return app_->remaining();
}

std::string Command::complaint_about(const std::string& word) const {
  return unexpected(*app_, "softib " + app_->get_name(), word);
}

}  // namespace ib::softib
