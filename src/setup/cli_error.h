// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// How the commands of `softib` fail: one exception type that carries the text for the user and the
// exit code. It never leaves this layer; main() prints it. Exit codes are part of the interface:
// docs/cli.md and `softib --help` list them.
#pragma once

#include <stdexcept>
#include <string>

namespace ib::softib {

enum class Exit : int {
  Ok = 0,
  Failed = 1,           // anything without a code of its own
  Usage = 2,            // the command line is wrong
  NotFound = 3,         // no such node, HCA, port or error name
  AlreadyUp = 4,        // the fabric is up, or up with another shape
  NotUp = 5,            // the fabric is not up
  Permission = 6,       // the runtime directory or the socket may not be used
  Daemon = 7,           // softibd did not start, died or does not answer
  Resources = 8,        // memory, descriptors or address space do not suffice
  Installation = 9,     // softibd or a library is missing
  Busy = 10,            // in use, or vetoed; nothing was changed
  NotExecutable = 126,  // `softib run`: CMD is there but cannot be run
  NoCommand = 127,      // `softib run`: CMD was not found
};

class CliError : public std::runtime_error {
 public:
  CliError(Exit code, const std::string& text) : std::runtime_error(text), code_(code) {}
  Exit code() const { return code_; }

 private:
  Exit code_;
};

}  // namespace ib::softib
