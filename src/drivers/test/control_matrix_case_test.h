// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// For control_matrix_test.cpp: what may happen to a control request, and one run of one operation
// in one form under one of these conditions.
#pragma once

#include "drivers/test/control_matrix_ops_test.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace ib::drivers::test {

enum class Condition {
  Plain,
  CancelledBefore,  // after start(), before it is sent
  CancelledAfter,
  WrongInput,
  SmallOutput,
  NothingLeft,    // limits, tables, device memory
  SystemRefuses,  // softibd's own calls fail
  Removed,        // sent after its HCA was pulled out
  Ended,          // sent after the end of its process
  // Sent while a poster executes a work request,
  Posters,
  Closing,  // and the end of its file
  Ending,   // or process waits for that
  // Posters, and while it waits for them:
  CancelledWhile,
  RemovedWhile,
  SleepWhile,
  ClosedWhile,
  EndedWhile,
  // The same when they have left, but softibd has not seen it yet.
  ClosedThen,
  EndedThen,
  // Sent while its HCA sleeps.
  Asleep,
  AsleepCancelledBefore,
  AsleepRemovedBefore,
  AsleepCancelled,
  AsleepRemoved,
  AsleepEnded,
};

struct Outcome {
  std::string cell;  // of the table: "Ok", "waits, Ok", "-" (the condition cannot arise)
  Status status = Status::Pending;
  std::uint64_t information = 0;
  std::vector<std::byte> output;
};

const char* status_name(Status status);  // "DeviceBusy"

// A world of its own; expects what holds for every request, whatever happens to it.
Outcome run_case(const Op& op, Condition condition, Form form);

}  // namespace ib::drivers::test
