// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The rule of the control matrix: a table of properties, and one function per kind of file.
#include "drivers/test/control_matrix_rule_test.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string_view>

namespace ib::drivers::test {
namespace {

// Properties of an operation; an operation that is not in the table has none.
enum Property : unsigned {
  kTakes = 1u << 0,         // uses up an object, a slot or device memory
  kLimited = 1u << 1,       // the same, of objects with a fixed number
  kAsksSystem = 1u << 2,    // softibd makes a system call for it
  kGivesBack = 1u << 3,     // destroys: works when the HCA is gone, and is never undone
  kPosters = 1u << 4,       // ends when no poster can still hold the old state
  kNeedsHca = 1u << 5,      // names an HCA
  kTree = 1u << 6,          // changes the device tree, in steps of the executor
  kInUse = 1u << 7,         // requests the removal of a device in use
  kEvent = 1u << 8,         // parked until there is an event
  kNoFile = 1u << 9,        // its process has closed its file before, so it cannot be closed again
  kAwake = 1u << 10,        // refused at once while an HCA sleeps
  kFallsAsleep = 1u << 11,  // refused, by the power manager, for a device that sleeps already
  kConnects = 1u << 12,     // belongs to a connection, not to the process that it attached
  kBelowHca = 1u << 13,     // removes a child of the HCA: after a change of power that came first
};

struct Row {
  std::string_view name;
  unsigned properties;
};

constexpr Row kHcaRows[] = {
    {"Close", kGivesBack | kPosters},
    {"AllocPd", kTakes},
    {"DeallocPd", kGivesBack},
    {"RegMr", kTakes},
    {"ReregMr", kPosters},
    {"RegPhysical", kTakes | kAsksSystem},
    {"RegPhysical (device memory)", kTakes | kAsksSystem},
    {"ReregPhysical", kTakes | kAsksSystem | kPosters},
    {"DeregMr", kGivesBack | kPosters},
    {"AllocMw", kTakes},
    {"DeallocMw", kGivesBack | kPosters},
    {"AllocDm", kTakes | kAsksSystem},
    {"FreeDm", kGivesBack},
    {"CreateAh", kTakes},
    {"DestroyAh", kGivesBack},
    {"CreateCq", kTakes | kAsksSystem},
    {"ResizeCq", kTakes | kAsksSystem | kPosters},
    {"DestroyCq", kGivesBack | kPosters},
    {"OpenXrcd", kTakes},
    {"CloseXrcd", kGivesBack},
    {"CreateSrq", kTakes | kAsksSystem},
    // Its completion queue gets several producers, which posters must have seen.
    {"CreateSrq (XRC)", kTakes | kAsksSystem | kPosters},
    {"DestroySrq", kGivesBack | kPosters},
    {"CreateQp", kTakes | kAsksSystem},
    {"CreateQp (GSI)", kTakes | kAsksSystem | kPosters},
    {"CreateQp (shared CQ)", kTakes | kAsksSystem | kPosters},
    {"ModifyQp (Error)", kPosters},
    {"ModifyQp (Reset)", kPosters},
    {"DestroyQp", kGivesBack | kPosters},
    {"AttachMcast", kTakes},
    {"DetachMcast", kGivesBack | kPosters},
};

constexpr Row kRootRows[] = {
    {"connect (Create)", kConnects},
    {"disconnect (Close)", kConnects},
    {"Status", kAsksSystem},
    {"Resources", kAsksSystem},
    {"TraceRead", kAsksSystem},
    {"ViewOpen", kAsksSystem},
    {"ViewList", kAsksSystem},
    {"SetPort", kNeedsHca},
    {"Devices", kAsksSystem},
    {"ListNames", kAsksSystem},
    {"ChangeHca (Add)", kTree | kLimited | kAwake},
    {"ChangeHca (Remove)", kTree | kNeedsHca | kNoFile},
    {"ChangeHca (Remove, in use)", kTree | kNeedsHca | kInUse},
    {"ChangeHca (Eject)", kTree | kNeedsHca},
    {"ChangePartition (add)", kTree | kNeedsHca | kLimited},
    {"ChangePartition (remove)", kTree | kNeedsHca | kBelowHca},
    {"SetPower (Sleep)", kTree | kPosters | kFallsAsleep},
    {"SetPower (Hibernate)", kTree | kPosters | kFallsAsleep},
    {"SetPower (Working)", kTree},
    {"SetPower (Shutdown)", kTree | kPosters},
    {"ChangeDriver (unload)", kTree | kNoFile | kAwake},
    {"ChangeDriver (unload, in use)", kTree | kInUse | kAwake},
    {"ChangeDriver (load)", kTree | kNoFile | kAwake},
    {"Attach", kConnects | kTakes | kAsksSystem},
    {"WaitEvent (none yet)", kEvent},
    {"WaitEvent (over another connection)", kEvent},
    {"CreateChannel", kTakes},
    {"GetChannel", kAsksSystem},
    {"CreateBacking", kTakes | kAsksSystem},
    {"GetBacking", kAsksSystem},
    {"SetAddresses", 0},
    {"SetIpInterface", 0},
};

template <std::size_t N>
unsigned properties_of(const Row (&rows)[N], std::string_view name) {
  const auto* row = std::find_if(std::begin(rows), std::end(rows),
                                 [name](const Row& r) { return r.name == name; });
  return row != std::end(rows) ? row->properties : 0;
}

bool has_input(const Op& op) {
  MatrixWorld w;
  return op.prepare(w)->has_input();
}
bool has_output(const Op& op) {
  MatrixWorld w;
  return op.prepare(w)->has_output();
}

std::string hca_cell(const Op& op, Condition condition) {
  const unsigned is = properties_of(kHcaRows, op.name);
  const bool gives_back = (is & kGivesBack) != 0;
  const bool posters = (is & kPosters) != 0;
  // The process itself closes and opens, not a request through the file.
  const bool close = op.code == Code::Close;
  const bool open = op.code == Code::Open;
  switch (condition) {
    case Condition::Plain:
    case Condition::CancelledBefore:
    case Condition::CancelledAfter: return "Ok";
    case Condition::WrongInput: return has_input(op) ? "InvalidParameter" : "-";
    case Condition::SmallOutput: return has_output(op) ? "InvalidParameter" : "-";
    case Condition::NothingLeft: return (is & kTakes) != 0 ? "InsufficientResources" : "Ok";
    case Condition::SystemRefuses: return (is & kAsksSystem) != 0 ? "IoError" : "Ok";
    case Condition::Removed:
    case Condition::AsleepRemovedBefore: return gives_back ? "Ok" : "DeviceRemoved";
    case Condition::Closing: return close || open ? "Ok" : "Disconnected";
    case Condition::Ending:
    case Condition::Ended: return close ? "Ok" : open ? "InvalidState" : "Disconnected";
    case Condition::Posters: return posters ? "waits, Ok" : "Ok";
    // The new state is already visible to posters, so the request goes on.
    case Condition::CancelledWhile:
    case Condition::RemovedWhile:
    case Condition::SleepWhile: return posters ? "waits, Ok" : "-";
    case Condition::ClosedWhile:
    case Condition::EndedWhile:
      return !posters ? "-" : gives_back ? "waits, Ok" : "waits, Cancelled";
    case Condition::ClosedThen:
    case Condition::EndedThen: return !posters ? "-" : gives_back ? "later Ok" : "later Cancelled";
    case Condition::Asleep: return close ? "Ok" : "waits, Ok";
    case Condition::AsleepCancelledBefore: return close ? "Ok" : "Cancelled";
    case Condition::AsleepCancelled:
    case Condition::AsleepEnded: return close ? "-" : "Cancelled";
    case Condition::AsleepRemoved:
      return close ? "-" : gives_back ? "later Ok" : "later DeviceRemoved";
  }
  return "?";
}

// A request to file 0 that needs an HCA while it sleeps.
std::string asleep_cell(unsigned is, const std::string& usual) {
  if ((is & kAwake) != 0) return "InvalidState";
  if ((is & kFallsAsleep) != 0) return "later InvalidState";
  return (is & kEvent) != 0 ? "Ok" : usual;  // the change of power is an event
}

// A parked request, or one that changes the device tree: `happened` comes while it is under way.
std::string under_way_cell(unsigned is, Condition happened, const std::string& usual) {
  const bool closed = happened == Condition::ClosedWhile || happened == Condition::ClosedThen;
  const bool ended = happened == Condition::EndedWhile || happened == Condition::EndedThen;
  if ((is & (kTree | kEvent)) == 0 || (closed && (is & kNoFile) != 0)) return "-";
  if ((is & kEvent) != 0) {
    if (closed) return "waits, Ok";  // the events are those of the process
    if (ended) return "Disconnected";
    return happened == Condition::CancelledWhile ? "Cancelled" : "later Ok";
  }
  const bool posters_left = happened == Condition::ClosedThen || happened == Condition::EndedThen;
  if ((is & kPosters) != 0) return posters_left ? "later Ok" : "waits, Ok";
  if (happened == Condition::SleepWhile && (is & kBelowHca) != 0) return "waits, Ok";
  return usual;
}

std::string root_cell(const Op& op, Condition condition) {
  const unsigned is = properties_of(kRootRows, op.name);
  const bool event = (is & kEvent) != 0;
  const std::string usual = (is & kInUse) != 0  ? "later DeviceBusy"
                            : (is & kTree) != 0 ? "later Ok"
                            : event             ? "waits, Ok"
                                                : "Ok";
  switch (condition) {
    case Condition::Plain:
    case Condition::CancelledAfter: return usual;
    case Condition::CancelledBefore: return event ? "Cancelled" : usual;
    case Condition::WrongInput: return has_input(op) ? "InvalidParameter" : "-";
    case Condition::SmallOutput: return has_output(op) ? "InvalidParameter" : "-";
    case Condition::NothingLeft:
      if ((is & kLimited) != 0) return "LimitExceeded";
      if ((is & kTakes) != 0) return "InsufficientResources";
      return event ? "Ok" : usual;  // the HCAs that used up the limit are events
    case Condition::SystemRefuses: return (is & kAsksSystem) != 0 ? "IoError" : usual;
    case Condition::Removed:
      if ((is & kNeedsHca) != 0) return "NotFound";
      return event ? "Ok" : usual;
    case Condition::Closing:
      if ((is & kNoFile) != 0) return "-";
      return (is & kPosters) != 0 ? "waits, Ok" : usual;
    case Condition::Ending:
    case Condition::Ended: return (is & kConnects) != 0 ? "Ok" : "Disconnected";
    case Condition::Posters: return (is & kPosters) != 0 ? "waits, Ok" : usual;
    case Condition::CancelledWhile:
    case Condition::RemovedWhile:
    case Condition::SleepWhile:
    case Condition::ClosedWhile:
    case Condition::EndedWhile:
    case Condition::ClosedThen:
    case Condition::EndedThen: return under_way_cell(is, condition, usual);
    case Condition::Asleep:
    case Condition::AsleepCancelledBefore: return asleep_cell(is, usual);
    case Condition::AsleepRemovedBefore:
      return (is & kNeedsHca) != 0 ? "NotFound" : asleep_cell(is, usual);
    case Condition::AsleepCancelled:
    case Condition::AsleepRemoved:
    case Condition::AsleepEnded:
      return (is & kTree) == 0 || (is & kAwake) != 0 ? "-" : asleep_cell(is, usual);
  }
  return "?";
}

bool is_hca_operation(std::string_view name) {
  const auto operations = hca_operations();
  return std::any_of(operations.begin(), operations.end(),
                     [name](const Op& op) { return op.name == name; });
}

}  // namespace

std::string expected_cell(const Op& op, Condition condition) {
  return is_hca_operation(op.name) ? hca_cell(op, condition) : root_cell(op, condition);
}

TEST(ControlMatrixRule, NamesOperationsThatThereAre) {
  const auto is_one = [](std::span<const Op> operations, std::string_view name) {
    return std::any_of(operations.begin(), operations.end(),
                       [name](const Op& op) { return op.name == name; });
  };
  for (const Row& row : kHcaRows) EXPECT_TRUE(is_one(hca_operations(), row.name)) << row.name;
  for (const Row& row : kRootRows) EXPECT_TRUE(is_one(root_operations(), row.name)) << row.name;
}

}  // namespace ib::drivers::test
