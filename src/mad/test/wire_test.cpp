// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// tshark reads what the engines of this layer emit.
#include "base/buffers.h"
#include "mad/header.h"
#include "mad/smp.h"
#include "mad/test/erf_capture_test.h"
#include "verbs/gid.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

namespace ib::mad {
namespace {

using Rows = std::vector<std::vector<std::string>>;

TEST(WireTest, ACaptureHasTheHeadersOfItsMads) {
  Smp smp;
  smp.header = {1, mgmt_class::kSubnLid, 1, method::kGet, 0, 0, 42, smp_attribute::kNodeInfo, 0, 0};
  ErfCapture capture;
  capture.add(bytes_of(smp), {.slid = 5, .dlid = 7, .source_qpn = 0, .dest_qpn = 0, .qkey = 0});
  MadHeader header;
  header = {1, 3, 2, method::kGet, 0, 0, 43, 1, 0, 0};
  capture.add(bytes_of(header),
              {.source_qpn = 0x123456,
               .gids = {{verbs::ipv4_gid(0x0a000001), verbs::ipv4_gid(0x0a000002)}}});
  const auto rows =
      capture.dissect("capture", {"infiniband.lrh.dlid", "infiniband.deth.srcqp",
                                  "infiniband.mad.transactionid", "infiniband.grh.dgid"});
  if (!rows) GTEST_SKIP() << "tshark is not installed";
  EXPECT_EQ(*rows, (Rows{{"7", "0x00000000", "0x000000000000002a", "", ""},
                         {"2", "0x00123456", "0x000000000000002b", "::ffff:10.0.0.2", ""}}));
}

}  // namespace
}  // namespace ib::mad
