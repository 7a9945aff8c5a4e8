// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A connection of a command to softibd (verbs/control.h): requests that need no Attach, each with
// a time limit, so that a daemon that hangs does not hang the command.
#pragma once

#include "base/buffers.h"
#include "base/result.h"
#include "setup/fd.h"
#include "verbs/control.h"

#include <sys/types.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>

namespace ib::softib {

struct ControlAnswer {
  Status status = Status::Ok;
  std::uint64_t information = 0;
  std::string reason;  // the reason in words if status is not Ok
  std::string output;
  Fd file;  // of Status and TraceRead
};

// For answers about all nodes, of which a fabric may have 41,000.
inline constexpr std::chrono::minutes kLimitOfAll{1};

class ControlClient {
 public:
  // Returns nullopt if nobody listens (no socket, or one whose daemon died). Throws CliError if a
  // daemon listens but access or the connection fails.
  static std::optional<ControlClient> connect(const std::string& socket_path);

  // Disconnected if the daemon went away; Timeout if it does not answer.
  ControlAnswer call(verbs::control::Code code, std::span<const std::byte> in = {},
                     std::chrono::milliseconds limit = std::chrono::seconds(10));
  // Throws CliError if the answer is not Ok, or is not a text.
  std::string read_text(verbs::control::Code code, std::span<const std::byte> in = {},
                        std::chrono::milliseconds limit = std::chrono::seconds(10));
  // The output. Throws CliError with the answer's reason unless it is Ok.
  std::string require(verbs::control::Code code, std::span<const std::byte> in,
                      const std::string& what);

  // The pid of softibd when it made the socket. 0: in another process namespace.
  pid_t pid() const { return pid_; }

  // Gives the connection to the program that will replace this one: at a high number, which
  // disturbs no program, open across exec. It keeps the fabric from going idle until that program
  // and all to which it passed the descriptor have ended.
  void hand_over();

 private:
  ControlClient(Fd socket, pid_t pid) : socket_(std::move(socket)), pid_(pid) {}
  ControlAnswer receive(std::uint64_t tag, std::chrono::steady_clock::time_point deadline);

  Fd socket_;
  pid_t pid_ = 0;
  std::uint64_t tag_ = 0;
};

}  // namespace ib::softib
