// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// tshark reads the messages without a complaint, and reads what was put in. Its dissector has no
// fields of MRA, LAP, APR, SIDR_REQ and SIDR_REP: for those it judges the frame.
#include "cm/test/link_world_test.h"
#include "cm/test/sample_messages_test.h"
#include "mad/class_port_info.h"
#include "mad/test/erf_capture_test.h"

#include <fmt/format.h>

#include <cstring>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace ib::cm::test {
namespace {

using Columns = std::vector<std::pair<std::string, std::string>>;

// Each column is a field of tshark's and its expected text.
void expect_dissected(const std::string& name, const mad::Mad& mad, const Columns& columns) {
  mad::ErfCapture capture;
  capture.add(mad);
  std::vector<std::string> fields{"infiniband.mad.attributeid", "infiniband.mad.transactionid"};
  for (const auto& [field, value] : columns) fields.push_back("infiniband.cm." + field);
  const auto rows = capture.dissect(name, fields);
  if (!rows) GTEST_SKIP() << "tshark is not installed";
  ASSERT_EQ(rows->size(), 1u);
  const std::vector<std::string>& row = rows->front();
  ASSERT_EQ(row.size(), columns.size() + 3);
  EXPECT_EQ(row[1], "0x0102030405060708");
  EXPECT_EQ(row.back(), "");  // no complaint
  for (std::size_t i = 0; i < columns.size(); ++i) {
    EXPECT_EQ(row[i + 2], columns[i].second) << columns[i].first;
  }
}

std::string hex(std::span<const std::uint8_t> bytes) {
  std::string text;
  for (const std::uint8_t byte : bytes) {
    constexpr std::string_view kDigits = "0123456789abcdef";
    text += {kDigits[byte >> 4], kDigits[byte & 15]};
  }
  return text;
}

// Flow labels and rates are left out: tshark 4.0 takes the first 12 bits for a flow label of 20,
// and the rate from the label's bits.
TEST(CmWire, TsharkReadsAReq) {
  const Req req = sample_req();
  expect_dissected("req", encode(req),
                   {{"req", "0x11112222"},
                    {"req.serviceid", "0x1000ce0012345678"},
                    {"req.localcaguid", "0x0253460000010000"},
                    {"req.localqkey", "0x88776655"},
                    {"req.localqpn", "0xfedcba"},
                    {"req.responderres", "0x21"},
                    {"req.localeecn", "0x000000"},
                    {"req.initdepth", "0x43"},
                    {"req.remoteeecn", "0x000000"},
                    {"req.remoteresptout", "0x1b"},
                    {"req.transpsvctype", "0x01"},
                    {"req.e2eflowctrl", "0x01"},
                    {"req.startpsn", "0xabcdef"},
                    {"req.localresptout", "0x15"},
                    {"req.retrcount", "0x06"},
                    {"req.pkey", "0x8001"},
                    {"req.pppmtu", "0x04"},
                    {"req.rdcexist", "0x01"},
                    {"req.rnrretrcount", "0x05"},
                    {"req.maxcmretr", "0x0e"},
                    {"req.srq", "0x01"},
                    {"req.prim_locallid", "4097"},
                    {"req.prim_remotelid", "8193"},
                    {"req.prim_localgid", "fe80::253:46ff:fe00:1"},
                    {"req.prim_remotegid", "fe80::253:46ff:fe00:2"},
                    {"req.prim_tfcclass", "0x71"},
                    {"req.prim_hoplim", "0x40"},
                    {"req.prim_sl", "0x0b"},
                    {"req.prim_subnetlocal", "0x01"},
                    {"req.prim_localacktout", "0x13"},
                    {"req.alt_locallid", "4101"},
                    {"req.alt_remotelid", "8197"},
                    {"req.alt_localgid", hex(sample_gid(5))},
                    {"req.alt_remotegid", hex(sample_gid(6))},
                    {"req.alt_tfcclass", "0x71"},
                    {"req.alt_hoplim", "0x40"},
                    {"req.alt_sl", "0x0b"},
                    {"req.alt_subnetlocal", "0x01"},
                    {"req.alt_localacktout", "0x13"},
                    {"req.private", hex(req.private_data.view())}});
}

TEST(CmWire, TsharkReadsAnIpService) {
  Req req = sample_req();
  req.service_id = kService;
  expect_dissected("ip_req", encode(req),
                   {{"req.serviceid.protocol", "0x06"}, {"req.serviceid.dport", "0x1d2f"}});
}

TEST(CmWire, TsharkReadsARep) {
  const Rep rep = sample_rep();
  expect_dissected("rep", encode(rep),
                   {{"rep", "0x33334444"},
                    {"rep.remotecommid", "0x11112222"},
                    {"rep.localqkey", "0x88776655"},
                    {"rep.localqpn", "0xfedcba"},
                    {"rep.localeecn", "0x123456"},
                    {"rep.startpsn", "0xabcdef"},
                    {"rep.respres", "0x21"},
                    {"rep.initdepth", "0x43"},
                    {"rep.tgtackdelay", "0x15"},
                    {"rep.failoveracc", "0x02"},
                    {"rep.e2eflowctrl", "0x01"},
                    {"rep.rnrretrcount", "0x05"},
                    {"rep.srq", "0x01"},
                    {"rep.localcaguid", "0x0253460000010000"},
                    {"rep.private", hex(rep.private_data.view())}});
}

TEST(CmWire, TsharkReadsTheOtherMessagesOfAConnection) {
  const Columns ids{{"localcommid", "0x33334444"}, {"remotecommid", "0x11112222"}};
  const auto with_ids = [&](const std::string& prefix, Columns columns) {
    for (const auto& [field, value] : ids) columns.push_back({prefix + field, value});
    return columns;
  };
  expect_dissected("rtu", encode(sample_rtu()),
                   with_ids("rtu.", {{"rtu.private", hex(sample_rtu().private_data.view())}}));
  expect_dissected("rej", encode(sample_rej()),
                   with_ids("rej.", {{"rej.msgrej", "0x01"},
                                     {"rej.rejinfolen", "0x48"},
                                     {"rej.reason", "0x001c"},
                                     {"rej.ari", hex(sample_rej().info.view())},
                                     {"rej.private", hex(sample_rej().private_data.view())}}));
  expect_dissected("dreq", encode(sample_dreq()),
                   with_ids("dreq.", {{"req.remoteqpneecn", "0xfedcba"},
                                      {"dreq.private", hex(sample_dreq().private_data.view())}}));
  expect_dissected("drep", encode(sample_drep()),
                   with_ids("drsp.", {{"drsp.private", hex(sample_drep().private_data.view())}}));
}

TEST(CmWire, TsharkHasNoComplaintAboutTheRest) {
  expect_dissected("mra", encode(sample_mra()), {});
  expect_dissected("lap", encode(sample_lap()), {});
  expect_dissected("apr", encode(sample_apr()), {});
  expect_dissected("sidr_req", encode(sample_sidr_req()), {});
  expect_dissected("sidr_rep", encode(sample_sidr_rep()), {});
}

// A message of each attribute of the class; nothing for other numbers. A new attribute needs its
// sample: the compiler demands a case for it.
std::optional<mad::Mad> sample_of(Attribute attribute) {
  switch (attribute) {
    case Attribute::ClassPortInfo: {  // the engine's answer
      Engine engine(Config{});
      mad::Mad get{};
      mad::MadHeader header{};
      header.base_version = mad::kBaseVersion;
      header.mgmt_class = kCmClass;
      header.class_version = kCmClassVersion;
      header.method = mad::method::kGet;
      header.attribute = mad::kClassPortInfo;
      std::memcpy(get.data(), &header, sizeof header);
      engine.receive(get, {}, Instant{});
      const auto answer = engine.poll_mad();
      return answer ? std::optional(answer->mad) : std::nullopt;
    }
    case Attribute::Req: return encode(sample_req());
    case Attribute::Mra: return encode(sample_mra());
    case Attribute::Rej: return encode(sample_rej());
    case Attribute::Rep: return encode(sample_rep());
    case Attribute::Rtu: return encode(sample_rtu());
    case Attribute::Dreq: return encode(sample_dreq());
    case Attribute::Drep: return encode(sample_drep());
    case Attribute::SidrReq: return encode(sample_sidr_req());
    case Attribute::SidrRep: return encode(sample_sidr_rep());
    case Attribute::Lap: return encode(sample_lap());
    case Attribute::Apr: return encode(sample_apr());
  }
  return std::nullopt;
}

// Each attribute, and each number with which one side refuses the other.
TEST(CmWire, TsharkHasNoComplaintAboutAnyAttributeReasonOrStatus) {
  mad::ErfCapture capture;
  std::vector<std::string> expected;
  const auto add = [&](const mad::Mad& mad, const std::string& reason) {
    capture.add(mad);
    expected.push_back(reason);
  };
  std::size_t attributes = 0;
  for (unsigned number = 0; number < 0x10000; ++number) {
    const auto mad = sample_of(static_cast<Attribute>(number));
    if (!mad) continue;
    ++attributes;
    EXPECT_EQ(header_of(*mad).attribute, number);
    add(*mad, static_cast<Attribute>(number) == Attribute::Rej ? "0x001c" : "");
  }
  EXPECT_EQ(attributes, 12u);
  for (const NumberedText& reason : reject_reasons()) {
    for (const std::size_t info : {std::size_t{0}, std::size_t{8}, kAdditionalInfoBytes}) {
      Rej rej = sample_rej();
      rej.reason = static_cast<std::uint16_t>(reason.number);
      rej.info = counted<kAdditionalInfoBytes>(1, info);
      add(encode(rej), fmt::format("{:#06x}", reason.number));
    }
  }
  for (const NumberedText& status : path_statuses()) {
    Apr apr = sample_apr();
    apr.status = static_cast<std::uint8_t>(status.number);
    add(encode(apr), "");
  }
  for (const NumberedText& status : sidr_statuses()) {
    SidrRep rep = sample_sidr_rep();
    rep.status = static_cast<std::uint8_t>(status.number);
    add(encode(rep), "");
  }
  const auto rows = capture.dissect("numbers", {"infiniband.cm.rej.reason"});
  if (!rows) GTEST_SKIP() << "tshark is not installed";
  ASSERT_EQ(rows->size(), expected.size());
  for (std::size_t i = 0; i < rows->size(); ++i) {
    EXPECT_EQ((*rows)[i].front(), expected[i]) << i;
    EXPECT_EQ((*rows)[i].back(), "") << i;
  }
}

// Everything that two engines say to each other, by LID and by GID.
TEST(CmWire, TsharkHasNoComplaintAboutAWholeLife) {
  mad::ErfCapture capture;
  for (const bool by_gid : {false, true}) {
    World world;
    Node &a = world[0], &z = world[1];
    ASSERT_TRUE(z.engine.listen({.service_id = kService}).has_value());
    auto request = request_between(0, 1, 0x11);
    if (by_gid) request.primary = roce_path_between(0, 1);
    const ConnectionId active = *a.engine.connect(request, world.now);
    world.deliver();
    const ConnectionId passive = z.take<RequestReceived>().id;
    EXPECT_EQ(z.engine.delay(passive, 10, {}, world.now), Status::Ok);
    EXPECT_EQ(z.engine.accept(passive, reply_with(0x22), world.now), Status::Ok);
    world.deliver();
    EXPECT_EQ(a.engine.establish(active, {}, world.now), Status::Ok);
    Path other = request.primary;
    other.sgid = gid_of(7);
    EXPECT_EQ(a.engine.load_alternate_path(active, other, {}, world.now), Status::Ok);
    world.deliver();
    EXPECT_EQ(z.engine.answer_alternate_path(passive, {}, world.now), Status::Ok);
    SidrRequest sidr;
    sidr.service_id = kService + 1;
    sidr.path = request.primary;
    ASSERT_TRUE(a.engine.resolve_sidr(sidr, world.now).has_value());
    request.qpn = 0x12;
    request.service_id += 1;
    ASSERT_TRUE(a.engine.connect(request, world.now).has_value());
    world.deliver();
    a.engine.destroy(active, world.now);
    world.deliver();
    z.engine.destroy(passive, world.now);
    EXPECT_TRUE(world.settle());
    for (const World::Flight& flight : world.sent) {
      mad::ErfCapture::Address address;
      address.slid = lid_of(flight.from);
      address.dlid = lid_of(flight.to);
      if (flight.address.is_global) {
        address.gids = {flight.address.remote_gid, flight.address.local_gid};
      }
      capture.add(flight.mad, address);
    }
  }
  const auto rows = capture.dissect("life", {"infiniband.mad.attributeid"});
  if (!rows) GTEST_SKIP() << "tshark is not installed";
  std::set<std::string> attributes;
  for (const auto& row : *rows) {
    attributes.insert(row.at(0));
    EXPECT_EQ(row.back(), "");
  }
  EXPECT_EQ(attributes.size(), 11u);
}

}  // namespace
}  // namespace ib::cm::test
