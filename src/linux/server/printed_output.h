// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The output of softibd and its drivers to stdout and stderr: a failed assertion, a driver's
// printf(). It goes to the log by a pipe, since the log is bounded and has lines. The handler of a
// fatal signal writes what is in the pipe then.
//
// Process-wide, as stdout and stderr are.
#pragma once

#include "linux/server/event_loop.h"

#include <functional>
#include <memory>
#include <string_view>

namespace ib::os {

class PrintedOutput {
 public:
  using OnLine = std::function<void(std::string_view)>;

  // Puts a pipe in the place of stdout and stderr. Whatever is printed while it is full is lost;
  // nobody waits for it. Returns nothing if there is no pipe: they are what they were.
  // `on_line`: on the loop's thread, a line without its end.
  static std::unique_ptr<PrintedOutput> take(EventLoop& loop, OnLine on_line);

  PrintedOutput(const PrintedOutput&) = delete;
  PrintedOutput& operator=(const PrintedOutput&) = delete;
  virtual ~PrintedOutput() = default;  // passes on what has come so far

 protected:
  PrintedOutput() = default;
};

// The pipe, for the handler of signals; -1: there is none.
int printed_output_pipe();

}  // namespace ib::os
