// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Every control operation, as an ioctl and as a direct call, at dispatch level, under every
// condition that it may meet. Each request is completed once, with a status that verbs/control.h
// lists, the same in both forms, and with the outcome that control_matrix_rule_test.cpp derives.
// docs/control_matrix.md is written from that rule, never from a run, and is checked here.
#include "drivers/test/control_matrix_case_test.h"
#include "drivers/test/control_matrix_document_test.h"
#include "drivers/test/control_matrix_rule_test.h"
#include "drivers/test/generated_part_test.h"
#include "drivers/trace/code_name.h"
#include "io/wait.h"
#include "verbs/control_sm.h"
#include "verbs/control_streams.h"
#include "verbs/control_topology.h"
#include "verbs/services/open_service.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <ostream>
#include <set>

namespace ib::drivers::test {

void PrintTo(const Op* op, std::ostream* out) {
  *out << op->name;
}

namespace {

struct Column {
  Condition condition;
  const char* title;
};
constexpr Column kSent[] = {
    {Condition::Plain, "nothing special"},
    {Condition::CancelledBefore, "cancelled before"},
    {Condition::CancelledAfter, "cancelled after"},
    {Condition::WrongInput, "wrong input size"},
    {Condition::SmallOutput, "output too small"},
    {Condition::NothingLeft, "nothing left"},
    {Condition::SystemRefuses, "system refuses"},
    {Condition::Removed, "HCA removed"},
    {Condition::Closing, "file is being closed"},
    {Condition::Ending, "process is ending"},
    {Condition::Ended, "process has ended"},
};
constexpr Column kPending[] = {
    {Condition::Posters, "posters"},
    {Condition::CancelledWhile, "posters, cancelled"},
    {Condition::RemovedWhile, "posters, HCA removed"},
    {Condition::SleepWhile, "posters, HCA sleeps"},
    {Condition::ClosedWhile, "posters, file closed"},
    {Condition::EndedWhile, "posters, process ends"},
    {Condition::ClosedThen, "posters leave, file closed"},
    {Condition::EndedThen, "posters leave, process ends"},
    {Condition::Asleep, "asleep"},
    {Condition::AsleepCancelledBefore, "asleep, cancelled before"},
    {Condition::AsleepRemovedBefore, "asleep, HCA removed before"},
    {Condition::AsleepCancelled, "asleep, cancelled"},
    {Condition::AsleepRemoved, "asleep, HCA removed"},
    {Condition::AsleepEnded, "asleep, process ends"},
};

struct Table {
  const char* title;
  std::span<const Op> (*operations)();
  std::span<const Column> columns;
};
const Table kTables[] = {
    {"On the file of an HCA: when it is sent", hca_operations, kSent},
    {"On the file of an HCA: while it waits", hca_operations, kPending},
    {"On file 0: when it is sent", root_operations, kSent},
    {"On file 0: while it waits", root_operations, kPending},
};

bool is_in(const Op& op, std::span<const Op> operations) {
  return &op >= operations.data() && &op < operations.data() + operations.size();
}

// Runs the operation under one condition in both forms.
void run_and_compare(const Op& op, const Column& column) {
  static const DocumentedErrors documented;
  SCOPED_TRACE(fmt::format("{}: {}", op.name, column.title));
  const Outcome ioctl = run_case(op, column.condition, Form::Ioctl);
  const Outcome direct = run_case(op, column.condition, Form::Direct);
  EXPECT_EQ(ioctl.cell, expected_cell(op, column.condition))
      << "the rule (control_matrix_rule_test.cpp) demands another outcome";
  EXPECT_EQ(ioctl.cell, direct.cell);
  EXPECT_EQ(ioctl.information, direct.information);
  EXPECT_EQ(ioctl.output, direct.output);
  const std::string status = status_name(ioctl.status);
  EXPECT_TRUE(ioctl.cell == "-" || ioctl.status == Status::Ok ||
              documented.has(code_name(static_cast<std::uint32_t>(op.code)), status))
      << status << " is not among the errors that verbs/control.h names for this code";
}

// Returns the number of cells and the number of runs.
std::string summary() {
  std::size_t cells = 0;
  std::size_t run = 0;
  for (const Table& table : kTables) {
    for (const Op& op : table.operations()) {
      cells += table.columns.size();
      run += static_cast<std::size_t>(std::count_if(
          table.columns.begin(), table.columns.end(),
          [&op](const Column& column) { return expected_cell(op, column.condition) != "-"; }));
    }
  }
  return fmt::format("Of {} cells {} are run, each in both forms; the other {} cannot be (`-`).",
                     cells, run, cells - run);
}

std::vector<std::string> expected_document() {
  std::vector<std::string> lines{"", summary()};
  for (const Table& table : kTables) {
    append_table(lines, std::string("## ") + table.title, table.operations(), table.columns,
                 expected_cell);
  }
  lines.push_back("");
  return lines;
}

class ControlMatrix : public testing::TestWithParam<const Op*> {};

TEST_P(ControlMatrix, OutcomesAreThoseOfTheRule) {
  const Op& op = *GetParam();
  for (const Table& table : kTables) {
    if (!is_in(op, table.operations())) continue;
    for (const Column& column : table.columns) run_and_compare(op, column);
  }
}

std::vector<const Op*> every_operation() {
  std::vector<const Op*> all;
  for (const auto operations : {hca_operations(), root_operations()}) {
    for (const Op& op : operations) all.push_back(&op);
  }
  return all;
}

std::string test_name(const testing::TestParamInfo<const Op*>& info) {
  std::string name;
  for (const char c : std::string_view(info.param->name)) {
    if (std::isalnum(static_cast<unsigned char>(c)) != 0) name += c;
  }
  return name;
}

INSTANTIATE_TEST_SUITE_P(Every, ControlMatrix, testing::ValuesIn(every_operation()), test_name);

TEST(ControlMatrixDocument, SaysTheSameAsTheRule) {
  expect_matrix(expected_document());
}

// Returns whether a driver behind this file answers the code, with any status for an empty buffer.
bool is_known(Process& p, io::FileObject& file, std::uint32_t code) {
  const auto request = p.start(file, Code{code}, Nothing{});
  const bool known = request->irp.reason.find(" has no request ") == std::string::npos;
  request->irp.cancel();  // WaitEvent
  EXPECT_TRUE(request->done);
  return known;
}

TEST(ControlMatrixOperations, AreAllThatTheDriversAnswer) {
  // Codes that softibd answers itself, and codes that are no DeviceControl.
  static constexpr Code kOthers[] = {
      Code::Ping,   Code::Shutdown,    Code::Keep,
      Code::Open,   Code::Close,       Code::OpenRdmaCm,
      Code::RdmaCm, Code::OpenMailbox, static_cast<Code>(verbs::control::SmCode::Sm)};
  constexpr std::uint32_t kMoreThanThereAre = 256;
  MatrixWorld w;
  for (std::uint32_t code = 0; code < kMoreThanThereAre; ++code) {
    SCOPED_TRACE(code_name(code));
    const auto in_table = [code](std::span<const Op> operations) {
      return std::any_of(operations.begin(), operations.end(), [code](const Op& op) {
        return static_cast<std::uint32_t>(op.code) == code;
      });
    };
    const bool is_other =
        verbs::control::is_stream(code) ||   // of the stream service
        verbs::control::is_service(code) ||  // of the files of services
        std::find(std::begin(kOthers), std::end(kOthers), Code{code}) != std::end(kOthers);
    const bool is_code = std::string_view(code_name(code)) != "an unknown request";
    // Of tools that look at the subnet: no HCA is in it.
    const bool is_subnet = verbs::control::is_topology(code);
    EXPECT_EQ(is_code,
              is_other || is_subnet || in_table(hca_operations()) || in_table(root_operations()));
    EXPECT_EQ(is_known(w.p, w.p.file(), code), !is_other && in_table(hca_operations()));
    EXPECT_EQ(is_known(w.p, w.p.zero(), code),
              is_subnet || (!is_other && in_table(root_operations())));
  }
}

// Between two steps of a removal Open finds an HCA that may be going; at no other time.
TEST(ControlMatrixOpen, IsRefusedWhileItIsAskedWhetherTheHcaMayGo) {
  MatrixWorld w;
  io::DeviceObject& device = w.p.file().device();
  w.close_file_of_p();
  io::FileObject late(device, 2, w.p.zero().client(), &w.p.zero());
  const auto removal = w.ask(Code::ChangeHca, w.hca_in(HcaAction::Remove));
  std::set<Status> seen;
  while (!removal->done) {
    const auto open = w.p.start(late, Code::Open, Nothing{}, io::Major::Create);
    EXPECT_TRUE(open->done);
    seen.insert(open->irp.status);
    if (open->irp.status == Status::Ok) {
      const auto close = w.p.start(late, Code::Close, Nothing{}, io::Major::Close);
      EXPECT_EQ(w.p.finish<Nothing>(*close).status, Status::Ok);
    }
    ASSERT_TRUE(w.executor.step(w.executor.now()));
  }
  EXPECT_TRUE(seen.contains(Status::DeviceBusy));
  EXPECT_EQ(removal->irp.status, Status::DeviceBusy) << "a file is open, if only in part";
}

// Not even for a request that is complete by then.
TEST(ControlMatrixDeathTest, NobodyWaitsForARequestAtDispatchLevel) {
  MatrixWorld w;
  const Nothing in;
  control::CaAttr out;
  EXPECT_DEATH(
      {
        const LevelGuard dispatch(Level::Dispatch);
        io::Irp irp;
        io::IrpWait wait;
        io::IrpRef request = wait.start(irp);
        request->file = &w.p.file();
        io::call_direct(w.p.file().device(), Code::QueryCa, in, out, std::move(request));
        (void)wait.wait();
      },
      "IrpWait.*dispatch level");
}

}  // namespace
}  // namespace ib::drivers::test
