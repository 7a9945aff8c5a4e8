// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// For control_matrix_test.cpp: the conditions that a control request may meet, and one run of one
// operation in one form under one of them.
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
  // Sent while a poster executes a work request;
  Posters,
  Closing,  // and the end of its file waits for that
  Ending,   // and the end of its process waits for that
  // A poster executes a work request, and while the request waits for it:
  CancelledWhile,
  RemovedWhile,
  SleepWhile,
  ClosedWhile,
  EndedWhile,
  // The same after the poster has left, but before softibd has noticed.
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

// Runs in a world of its own, and checks what must hold for every request under every condition.
Outcome run_case(const Op& op, Condition condition, Form form);

}  // namespace ib::drivers::test
