// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// EmittedMads: the kinds of MADs that left queue pairs 1 in a test. A kind without a row in the
// table (emitted_rows.h) fails the test.
#pragma once

#include "emitted_rows.h"
#include "mad/rmpp_header.h"

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <vector>

namespace ib::services::test {

inline Part part_of(const mad::Mad& mad) {
  if (!mad::is_rmpp(mad)) return Part::Whole;
  const mad::RmppHeader rmpp = mad::rmpp_header_of(mad);
  const bool is_first = rmpp.has(mad::rmpp_flag::kFirst), is_last = rmpp.has(mad::rmpp_flag::kLast);
  switch (static_cast<mad::RmppType>(rmpp.type)) {
    case mad::RmppType::Data:
      if (is_first) return is_last ? Part::Only : Part::First;
      return is_last ? Part::Last : Part::Middle;
    case mad::RmppType::Ack: return Part::Ack;
    case mad::RmppType::Stop: return Part::Stop;
    case mad::RmppType::Abort: return Part::Abort;
    case mad::RmppType::None: break;
  }
  return Part::Illegal;
}

// An ACK copies the MAD status of the packet that it acknowledges: it is no part of its kind.
inline MadKind kind_of(const mad::Mad& mad) {
  const mad::MadHeader header = cm::header_of(mad);
  MadKind kind{header.mgmt_class, header.method, header.attribute, part_of(mad), header.status};
  if (kind.part == Part::Ack) kind.status = 0;
  if (kind.part == Part::Stop || kind.part == Part::Abort) {
    kind.status = mad::rmpp_header_of(mad).status;
  }
  return kind;
}

class EmittedMads {
 public:
  void add(const mad::Mad& mad) {
    const MadKind kind = kind_of(mad);
    if (!own_classes_.contains(kind.mgmt_class)) kinds_.insert(kind);
    if (log_ != nullptr) log_->push_back(mad);
  }
  // Agents of the test use this class of vendors: its MADs are not softib's.
  void leave_out(std::uint8_t mgmt_class) { own_classes_.insert(mgmt_class); }
  // Appends each MAD that follows to `log`.
  void log_to(std::vector<mad::Mad>& log) { log_ = &log; }
  void expect_no_other_kinds() const {
    for (const MadKind& kind : kinds_) {
      if (!has_row(kind)) ADD_FAILURE() << text_of(kind) << " was sent, and is not in the table";
    }
  }
  void expect_all_rows() const {
    for (const MadRow& row : emitted_rows()) {
      const bool is_sent =
          std::ranges::any_of(kinds_, [&](const auto& each) { return row.has(each); });
      EXPECT_TRUE(is_sent) << text_of(row) << " was not sent";
    }
  }
  std::size_t size() const { return kinds_.size(); }

 private:
  static bool has_row(const MadKind& kind) {
    return std::ranges::any_of(emitted_rows(), [&](const MadRow& row) { return row.has(kind); });
  }

  std::set<MadKind> kinds_;
  std::set<std::uint8_t> own_classes_;
  std::vector<mad::Mad>* log_ = nullptr;
};

}  // namespace ib::services::test
