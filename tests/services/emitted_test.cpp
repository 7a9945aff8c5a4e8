// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Each kind of MAD that softib sends from queue pairs 1 (emitted_rows.h) is sent, no other is, and
// tshark reads all of them without a complaint.
#include "emitted_mads.h"
#include "emitted_scenarios.h"
#include "mad/test/erf_capture_test.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace ib::services::test {
namespace {

// The fields that tshark shows for a MAD: the RMPP header only of subnet administration, type 0 if
// there is none.
std::vector<std::string> expected_fields(const mad::Mad& mad) {
  const mad::MadHeader header = cm::header_of(mad);
  const bool is_shown = header.mgmt_class == sa::kMgmtClass;
  const mad::RmppHeader rmpp = mad::rmpp_header_of(mad);
  return {fmt::format("{:#04x}", header.mgmt_class),
          fmt::format("{:#04x}", header.method),
          fmt::format("{:#06x}", std::uint16_t{header.attribute}),
          fmt::format("{:#06x}", std::uint16_t{header.status}),
          is_shown ? fmt::format("{:#04x}", rmpp.type) : "",
          is_shown ? fmt::format("{:#04x}", rmpp.status) : "",
          ""};
}

// tshark dissects each packet of a table as if a record began in it, and finds no string where the
// record's string would be.
bool is_in_a_record(const mad::Mad& mad, const std::string& complaint) {
  const Part part = part_of(mad);
  return (part == Part::Middle || part == Part::Last) && complaint == "Trailing stray characters";
}

TEST(EmittedMadsTest, EachKindIsSentAndReadByTshark) {
  std::vector<mad::Mad> log;
  run_services(log);
  run_refusals(log);
  run_transfers(log);
  EmittedMads emitted;
  mad::ErfCapture capture;
  for (const mad::Mad& mad : log) {
    emitted.add(mad);
    capture.add(mad);
  }
  emitted.expect_no_other_kinds();
  emitted.expect_all_rows();
  const auto rows =
      capture.dissect("emitted", {"infiniband.mad.mgmtclass", "infiniband.mad.method",
                                  "infiniband.mad.attributeid", "infiniband.mad.status",
                                  "infiniband.rmpp.rmpptype", "infiniband.rmpp.rmppstatus"});
  if (!rows) GTEST_SKIP() << "tshark is not installed";
  ASSERT_EQ(rows->size(), log.size());
  for (std::size_t i = 0; i < log.size(); ++i) {
    std::vector<std::string> fields = (*rows)[i];
    if (is_in_a_record(log[i], fields.back())) fields.back().clear();
    EXPECT_EQ(fields, expected_fields(log[i])) << text_of(kind_of(log[i]));
  }
}

}  // namespace
}  // namespace ib::services::test
