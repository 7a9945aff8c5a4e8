// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The environment that makes a program see softib's devices. `softib run` executes a program with
// it, `softib env` prints it.
#pragma once

#include "softib/launch/installation.h"

#include <string>
#include <utility>
#include <vector>

namespace ib::softib {

struct ProgramSettings {
  std::string socket;
  std::string runtime_dir;
  std::string fabric;
  std::string node;
  std::string memory_path;  // empty or "auto": softib chooses
  std::string sockets;      // as parse_socket_switch() takes it; empty: off
  bool verbose = false;
};

using Environment = std::vector<std::pair<std::string, std::string>>;

// This process's.
Environment current_environment();

// `base` with softib's variables. Libraries that the user preloads stay, behind ours; an entry of
// another softib (`softib run` inside `softib run`) is replaced.
Environment compose_environment(const Environment& base, const Installation& installation,
                                const ProgramSettings& settings);

// `base` without what compose_environment adds, so that softibd runs on the real machine.
Environment without_softib(const Environment& base);

// As execve(2) wants it: NAME=value each, and the null-terminated list of pointers into such words.
std::vector<std::string> as_words(const Environment& environment);
std::vector<char*> pointers(std::vector<std::string>& words);

// Lines for sh: export NAME='value'. Only what differs from `base`.
std::string export_lines(const Environment& base, const Environment& wanted);

}  // namespace ib::softib
