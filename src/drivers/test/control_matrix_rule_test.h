// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// For control_matrix_test.cpp: the outcome that each control request must have under each
// condition, derived from the properties of the operation. Nothing here comes from a run.
#pragma once

#include "drivers/test/control_matrix_case_test.h"

#include <string>

namespace ib::drivers::test {

// The cell of docs/control_matrix.md (Outcome::cell). "-": the condition cannot arise.
std::string expected_cell(const Op& op, Condition condition);

}  // namespace ib::drivers::test
