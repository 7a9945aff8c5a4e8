// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Texts of the command line: help of 80 columns, errors with the name of the command and the word
// that was probably meant.
#pragma once

#include <CLI/CLI.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace ib::softib {

// Returns the candidate that is most similar to `word`; empty if none is similar.
std::string nearest(const std::string& word, const std::vector<std::string>& candidates);

// The number of an option: "must be a whole number from 0 to 10, not "-1"".
CLI::Validator whole_number(std::uint64_t least, std::uint64_t most);

// Help in lines of at most kColumns.
void use_narrow_help(CLI::App& app);

// `softib help CMD` is `softib CMD --help`.
void turn_help_around(std::vector<std::string>& words);

// `softib --fabric NAME CMD` is `softib CMD --fabric NAME`; of the words before the program of
// `softib run`.
void move_fabric_behind_command(const CLI::App& app, std::vector<std::string>& words);

// Gives each action (`softib hca add`) the examples of its command that are about it.
void share_examples(CLI::App& app);

// "softib run has no option --nodez; did you mean --nodes?"
std::string unexpected(const CLI::App& command, const std::string& called, const std::string& word);

// Throws CliError(Usage) if the command that `words` begin with, or its action, is none.
void check_command(const CLI::App& app, const std::vector<std::string>& words);

// The complaint about a command line that could not be parsed.
std::string usage_complaint(const CLI::App& app, const std::vector<std::string>& words,
                            const CLI::ParseError& error);

}  // namespace ib::softib
