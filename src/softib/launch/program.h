// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Finding and executing the program of `softib run`, with the exit codes of a shell.
#pragma once

#include "softib/launch/environment.h"

#include <string>
#include <vector>

namespace ib::softib {

// The file that executing `name` would run, by the rules of execvp().
// Throws CliError(NoCommand | NotExecutable).
std::string find_program(const std::string& name);

// Returns why this program will run without seeing softib's devices; empty if no reason is known.
std::string blind_reason(const std::string& path);

// Returns why the program that this command line starts in the end will not see them; empty if no
// reason is known.
std::string lost_environment(const std::vector<std::string>& words);

// Replaces this process. Throws CliError(NoCommand | NotExecutable) if it cannot.
[[noreturn]] void become_program(const std::vector<std::string>& words,
                                 const Environment& environment);

}  // namespace ib::softib
