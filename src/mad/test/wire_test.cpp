// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// tshark reads what the engines of this layer emit.
#include "base/buffers.h"
#include "mad/class_port_info.h"
#include "mad/header.h"
#include "mad/rmpp.h"
#include "mad/smp.h"
#include "mad/test/erf_capture_test.h"
#include "verbs/gid.h"

#include <fmt/format.h>
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

// The RMPP header, in hexadecimal [IBA1 13.6.2].
std::string rmpp_bytes(const Mad& mad) {
  std::string text;
  for (std::size_t i = kRmppOffset; i < kRmppDataOffset; ++i) {
    text += fmt::format("{:02x}", std::to_integer<unsigned>(mad[i]));
  }
  return text;
}

// All packets of a transfer whose answer may be long, of one that is stopped, and aborted.
TEST(WireTest, EachKindOfRmppPacketIsWhatTheTablesSayAndTsharkReads) {
  ErfCapture capture;
  std::vector<std::string> bytes;
  const auto add = [&](const Mad& mad) {
    capture.add(mad);
    bytes.push_back(rmpp_bytes(mad));
  };
  Rmpp sender({});
  Rmpp receiver({});
  const Instant now{std::chrono::seconds(1)};
  std::vector<std::byte> message(56 + 250);
  MadHeader header;
  header = {1, mgmt_class::kSubnAdm, 2, method::kGetTableResp, 0, 0, 0x1234, 0x35, 0, 0};
  std::memcpy(message.data(), &header, sizeof header);
  const auto id = sender.send({1, 2, 1, {}}, message, true, now);
  ASSERT_TRUE(id);
  bool progress = true;
  while (progress) {
    progress = false;
    for (Rmpp* end : {&sender, &receiver}) {
      while (auto output = end->poll(now)) {
        progress = true;
        if (output->kind != Rmpp::Output::Kind::Packet) continue;
        add(output->packet);
        Rmpp& other = end == &sender ? receiver : sender;
        (void)other.on_packet({1, 2, 1, {}}, output->packet, true, now);
      }
    }
  }
  Rmpp full({.max_receptions = 0});
  const auto stopped = sender.send({1, 2, 1, {}}, message, false, now);
  const auto first = sender.poll(now);
  ASSERT_TRUE(stopped && first);
  (void)full.on_packet({1, 2, 1, {}}, first->packet, true, now);
  add(full.poll(now)->packet);
  sender.cancel(*stopped);
  add(sender.poll(now)->packet);
  // Version, type, response time (5 bits, 31: none) and flags (3), status; segment; length or end
  // of the window.
  EXPECT_EQ(bytes, (std::vector<std::string>{"0101fb000000000100000122",     // DATA, first
                                             "0102f9000000000100000011",     // ACK
                                             "0101fd000000000200000046",     // DATA, last
                                             "0102f9000000000200000012",     // ACK
                                             "0102f9000000000000000010",     // the answer may begin
                                             "0103f9010000000000000000",     // STOP, no room
                                             "0104f97f0000000000000000"}));  // ABORT
  const auto rows =
      capture.dissect("rmpp", {"infiniband.rmpp.rmpptype", "infiniband.rmpp.rmppflags",
                               "infiniband.rmpp.rmppstatus", "infiniband.rmpp.segmentnumber",
                               "infiniband.rmpp.payloadlength", "infiniband.rmpp.newwindowlast"});
  if (!rows) GTEST_SKIP() << "tshark is not installed";
  // The fourth bit of its flags is the lowest of the response time.
  EXPECT_EQ(*rows, (Rows{{"0x01", "0x0b", "0x00", "0x00000001", "0x00000122", "", ""},
                         {"0x02", "0x09", "0x00", "0x00000001", "", "0x00000011", ""},
                         {"0x01", "0x0d", "0x00", "0x00000002", "0x00000046", "", ""},
                         {"0x02", "0x09", "0x00", "0x00000002", "", "0x00000012", ""},
                         {"0x02", "0x09", "0x00", "0x00000000", "", "0x00000010", ""},
                         {"0x03", "0x09", "0x01", "", "", "", ""},
                         {"0x04", "0x09", "0x7f", "", "", "", ""}}));
}

}  // namespace
}  // namespace ib::mad
