// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// tshark reads the requests to a subnet management agent and its answers, by LID and by a directed
// route, and names their methods and attributes as they are meant.
#include "mad/agent.h"
#include "mad/directed_route.h"
#include "mad/mgmt_class.h"
#include "mad/smp.h"
#include "mad/test/erf_capture_test.h"
#include "mad/test/one_element_test.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

namespace ib::mad {
namespace {

class SmpWireTest : public testing::TestWithParam<std::uint8_t> {
 protected:
  SmpWireTest() {
    node_.description = "node0 softib0";
    node_.ports = 2;
    node_.system_image_guid = 0x0253460000010000;
    node_.guid = 0x0253460000010001;
    node_.partition_cap = 128;
    node_.vendor_id = 0x025346;
    node_.device_id = 0x0a0b;
    node_.revision = 0x0c;
    port_.number = 2;
    port_.guid = 0x0253460000010002;
    port_.subnet_prefix = 0xfe80000000000000;
    port_.state = verbs::PortState::Active;
    port_.physical_state = 5;
    port_.lid = 0x1234;
    port_.lmc = 3;
    port_.sm_lid = 0x0102;
    port_.sm_sl = 6;
    port_.width = port_.best_width = 2;
    port_.speed = port_.best_speed = 4;
    port_.active_mtu = verbs::Mtu::B2048;
    port_.subnet_timeout = 18;
    port_.gids = 8;
    port_.capability_mask = 0x00010000;
    port_.pkeys = pkeys_;
  }

  static bool is_directed() { return GetParam() == mgmt_class::kSubnDirected; }

  // Writes a request and its answer to the capture.
  void exchange(std::uint8_t method, std::uint16_t attribute, std::uint32_t modifier = 0) {
    Smp smp;
    smp.header = {kBaseVersion, GetParam(), kClassVersion, method, 0, 0, ++tid_,
                  attribute,    0,          modifier};
    smp.m_key = 0x1112131415161718;
    // A route of one hop that has arrived here, between LIDs that are not assigned.
    if (is_directed()) {
      smp.header.class_specific = 0x0201;
      smp.reserved[0] = smp.reserved[1] = smp.reserved[2] = smp.reserved[3] = 0xff;
    }
    const auto request = std::bit_cast<Mad>(smp);
    Mad response{};
    const OneElement element(node_, port_);
    const Handled handled = answer(element, port_.number, request, response);
    if (handled.verdict == Verdict::Set) finish_set(element, port_.number, request, response);
    ASSERT_TRUE(handled.verdict == Verdict::Answered || handled.verdict == Verdict::Set)
        << handled.reason;
    const std::uint16_t peer = is_directed() ? 0xffff : 0x0102;
    const std::uint16_t own = is_directed() ? 0xffff : 0x1234;
    capture_.add(request, {peer, own, 0, 0, 0, 0});
    capture_.add(response, {own, peer, 0, 0, 0, 0});
  }

  // A field that tshark shows for a packet, counted from 0.
  struct Value {
    std::size_t packet;
    std::string field;
    std::string text;
  };
  // All packets without a complaint, and with these values. Returns false if there is no tshark.
  bool expect(const std::vector<Value>& values) {
    std::vector<std::string> fields;  // each once, as tshark wants it
    std::vector<std::size_t> columns;
    for (const Value& value : values) {
      const auto known = std::find(fields.begin(), fields.end(), value.field);
      columns.push_back(static_cast<std::size_t>(known - fields.begin()));
      if (known == fields.end()) fields.push_back(value.field);
    }
    const auto rows = capture_.dissect(is_directed() ? "smp_directed" : "smp_lid", fields);
    if (!rows) return false;
    for (std::size_t i = 0; i < rows->size(); ++i) EXPECT_EQ((*rows)[i].back(), "") << i;
    for (std::size_t i = 0; i < values.size(); ++i) {
      const auto& [packet, field, text] = values[i];
      if (packet >= rows->size()) continue;  // dissect() has complained
      EXPECT_EQ((*rows)[packet].at(columns[i]), text) << field << " of packet " << packet;
    }
    return true;
  }

  NodeFacts node_;
  PortFacts port_;
  std::array<std::uint16_t, 3> pkeys_{0xffff, 0x0001, 0x8002};
  ErfCapture capture_;
  std::uint64_t tid_ = 0x4200;
};

// A refusal has the name of the method and attribute that it refuses, and its reason in the status.
TEST_P(SmpWireTest, EachAnswerHasItsMethodAttributeAndStatus) {
  struct Case {
    std::uint8_t method;
    std::uint16_t attribute;
    std::uint32_t modifier;
    std::uint16_t status;
    std::string request;  // as tshark names them
    std::string answer;
  };
  constexpr std::uint16_t kSwitchInfo = 0x0012;
  const Case cases[] = {
      {method::kGet, smp_attribute::kNodeDescription, 0, 0, "SubnGet(NodeDescription)",
       "SubnGetResp(NodeDescription)"},
      {method::kGet, smp_attribute::kNodeInfo, 0, 0, "SubnGet(NodeInfo)", "SubnGetResp(NodeInfo)"},
      {method::kGet, smp_attribute::kGuidInfo, 0, 0, "SubnGet(GUIDInfo)", "SubnGetResp(GUIDInfo)"},
      {method::kGet, smp_attribute::kPortInfo, 2, 0, "SubnGet(PortInfo)", "SubnGetResp(PortInfo)"},
      {method::kGet, smp_attribute::kPkeyTable, 0, 0, "SubnGet(P_KeyTable)",
       "SubnGetResp(P_KeyTable)"},
      {method::kGet, kSwitchInfo, 0, mad_status::kAttributeNotSupported, "SubnGet(SwitchInfo)",
       "SubnGetResp(SwitchInfo)"},
      {method::kSet, smp_attribute::kPortInfo, 2, mad_status::kBadField, "SubnSet(PortInfo)",
       "SubnGetResp(PortInfo)"},
      {method::kSet, smp_attribute::kNodeInfo, 0, mad_status::kAttributeNotSupported,
       "SubnSet(NodeInfo)", "SubnGetResp(NodeInfo)"},
      {method::kGet, smp_attribute::kPortInfo, 1, mad_status::kBadField, "SubnGet(PortInfo)",
       "SubnGetResp(PortInfo)"},
  };
  std::vector<Value> values;
  for (const Case& each : cases) {
    ASSERT_NO_FATAL_FAILURE(exchange(each.method, each.attribute, each.modifier));
    const std::size_t request = capture_.packets() - 2;
    for (const std::size_t packet : {request, request + 1}) {
      const bool is_answer = packet != request;
      const unsigned direction = is_answer && is_directed() ? kDirectionBit : 0u;
      const auto add = [&](const std::string& field, const std::string& text) {
        values.push_back({packet, field, text});
      };
      add("_ws.col.Info", "UD Send Only QP=0x000000 " + (is_answer ? each.answer : each.request));
      add("infiniband.mad.mgmtclass", fmt::format("{:#04x}", GetParam()));
      add("infiniband.mad.method", fmt::format("{:#04x}", is_answer ? 0x81u : each.method));
      add("infiniband.mad.attributeid", fmt::format("{:#06x}", each.attribute));
      add("infiniband.mad.attributemodifier", fmt::format("{:#010x}", each.modifier));
      add("infiniband.mad.transactionid", fmt::format("{:#018x}", tid_));
      add("infiniband.mad.status",
          fmt::format("{:#06x}", is_answer ? each.status | direction : 0u));
    }
  }
  if (!expect(values)) GTEST_SKIP() << "tshark is not installed";
}

// tshark has no name for such an attribute: it reads the header alone.
TEST_P(SmpWireTest, AnAttributeThatNobodyDefinesIsRefusedInTheHeader) {
  exchange(method::kGet, 0x7777);
  const std::string status = is_directed() ? "0x800c" : "0x000c";
  const bool is_read = expect({{1, "infiniband.mad.method", "0x81"},
                               {1, "infiniband.mad.attributeid", "0x7777"},
                               {1, "infiniband.mad.status", status}});
  if (!is_read) GTEST_SKIP() << "tshark is not installed";
}

TEST_P(SmpWireTest, TheFieldsOfAnAnswerAreThoseOfItsPort) {
  for (const auto attribute :
       {smp_attribute::kNodeDescription, smp_attribute::kNodeInfo, smp_attribute::kGuidInfo,
        smp_attribute::kPortInfo, smp_attribute::kPkeyTable}) {
    exchange(method::kGet, attribute);
  }
  const auto repeat = [](const std::string& first, const std::string& next, int times) {
    std::string text = first;
    for (int i = 0; i < times; ++i) text += "," + next;
    return text;
  };
  std::vector<Value> values;
  const auto add = [&](std::size_t packet, const std::string& prefix,
                       const std::vector<std::pair<std::string, std::string>>& columns) {
    for (const auto& [field, text] : columns) {
      values.push_back({packet, "infiniband." + prefix + "." + field, text});
    }
  };
  add(1, "nodedescription", {{"nodestring", "node0 softib0"}});
  add(3, "nodeinfo",
      {{"baseversion", "0x01"},
       {"classversion", "0x01"},
       {"nodetype", "0x01"},
       {"numports", "0x02"},
       {"systemimageguid", "0x0253460000010000"},
       {"nodeguid", "0x0253460000010001"},
       {"portguid", "0x0253460000010002"},
       {"partitioncap", "0x0080"},
       {"deviceid", "0x0a0b"},
       {"revision", "0x0000000c"},
       {"localportnum", "0x02"},
       {"vendorid", "0x025346"}});
  // tshark names the entries of a GUIDInfo so.
  add(5, "switchinfo", {{"guid", repeat("0x0253460000010002", "0x0000000000000000", 7)}});
  add(7, "portinfo",
      {{"guid", "0xfe80000000000000"},  // tshark names the GidPrefix so
       {"lid", "0x1234"},
       {"mastersmlid", "0x0102"},
       {"capabilitymask", "0x00010000"},
       {"capabilitymask.communicationmanagementsupported", "0x00000001"},
       {"localportnum", "0x02"},
       {"linkwidthactive", "0x02"},
       {"linkwidthsupported", "0x03"},
       {"linkspeedsupported", "0x07"},
       {"portstate", "0x04"},
       {"portphysicalstate", "0x05"},
       {"linkdowndefaultstate", "0x02"},
       {"lmc", "0x03"},
       {"linkspeedactive", "0x04"},
       {"linkspeedenabled", "0x07"},
       {"neighbormtu", "0x04"},
       {"mastersmsl", "0x06"},
       {"vlcap", "0x01"},
       {"mtucap", "0x05"},
       {"operationalvls", "0x01"},
       {"guidcap", "0x08"},
       {"subnettimeout", "0x12"}});
  add(9, "p_keytable",
      {{"membershiptype", repeat("0x01,0x00,0x01", "0x00", 29)},
       {"p_keybase", repeat("0x7fff,0x0001,0x0002", "0x0000", 29)}});
  for (const std::size_t packet : {1u, 3u, 5u, 7u, 9u}) {
    add(packet, "smplid", {{"mkey", "0x1112131415161718"}});  // in both classes
    if (!is_directed()) continue;
    // The status shows the direction bit: smpdirected.d of tshark 4.0 reads another bit.
    add(packet, "smpdirected",
        {{"smpstatus", "0x8000"},
         {"hoppointer", "0x02"},
         {"hopcount", "0x01"},
         {"drslid", "0xffff"},
         {"drdlid", "0xffff"}});
  }
  if (!expect(values)) GTEST_SKIP() << "tshark is not installed";
}

// The status of the answer to a request without a modifier and without data.
std::uint16_t expected_status(const MadHeader& request) {
  namespace id = smp_attribute;
  if (request.class_version != kClassVersion) return mad_status::kBadVersion;
  if (request.method != method::kGet && request.method != method::kSet) {
    return mad_status::kMethodNotSupported;
  }
  const auto is_one_of = [&](std::initializer_list<std::uint16_t> attributes) {
    return std::ranges::find(attributes, std::uint16_t{request.attribute}) != attributes.end();
  };
  const bool is_set = request.method == method::kSet;
  // Quarters of the arbitration tables are counted from 1; LID 0 is of no port.
  if (is_one_of({id::kVlArbitration})) return mad_status::kBadField;
  if (is_set && is_one_of({id::kPortInfo})) return mad_status::kBadField;
  if (is_one_of({id::kGuidInfo, id::kPkeyTable, id::kSlToVlTable, id::kLedInfo})) {
    return mad_status::kOk;
  }
  const bool is_read = is_one_of({id::kNodeDescription, id::kNodeInfo, id::kPortInfo});
  return !is_set && is_read ? mad_status::kOk : mad_status::kAttributeNotSupported;
}

// A subnet manager answers these, or nobody.
bool has_answer(const MadHeader& request) {
  if (request.class_version != kClassVersion) return true;
  if (request.method == method::kTrapRepress) return false;
  if (request.method == method::kTrap && request.attribute == smp_attribute::kNotice) return false;
  return request.attribute != smp_attribute::kSmInfo;
}

// Each method with each attribute that has a number in the class, one that has none, and another
// version of the class. Every answer is a GetResp with the expected status.
TEST_P(SmpWireTest, NoAnswerIsOfAnotherKindAndTsharkReadsAll) {
  std::vector<MadHeader> answers;
  const auto request = [&](std::uint8_t version, std::uint8_t method, std::uint16_t attribute) {
    Smp smp;
    smp.header = {kBaseVersion, GetParam(), version, method, 0, 0, ++tid_, attribute, 0, 0};
    const OneElement element(node_, port_);
    const auto mad = std::bit_cast<Mad>(smp);
    Mad response{};
    const Verdict verdict = answer(element, port_.number, mad, response).verdict;
    const bool is_answer = verdict == Verdict::Answered || verdict == Verdict::Set;
    ASSERT_EQ(is_answer, has_answer(smp.header));
    if (!is_answer) return;
    if (verdict == Verdict::Set) finish_set(element, port_.number, mad, response);
    const MadHeader header = std::bit_cast<Smp>(response).header;
    const unsigned direction = is_directed() ? kDirectionBit : 0u;
    EXPECT_EQ(header.mgmt_class, GetParam());
    EXPECT_EQ(header.method, method::kGetResp);
    EXPECT_EQ(header.attribute, attribute);
    EXPECT_EQ(header.status, expected_status(smp.header) | direction);
    capture_.add(response, {1, 2, 0, 0, 0, 0});
    answers.push_back(header);
  };
  for (unsigned number = 0; number < method::kResponseBit; ++number) {
    const auto method = static_cast<std::uint8_t>(number);
    for (std::uint16_t attribute = 0; attribute <= 0x40; ++attribute) {
      request(kClassVersion, method, attribute);
    }
    request(kClassVersion, method, 0x7777);
    request(kClassVersion + 1, method, smp_attribute::kNodeInfo);
  }
  const auto rows = capture_.dissect(
      "smp_all", {"infiniband.mad.method", "infiniband.mad.status", "infiniband.mad.attributeid"});
  if (!rows) GTEST_SKIP() << "tshark is not installed";
  for (std::size_t i = 0; i < rows->size(); ++i) {
    const std::vector<std::string> expected = {
        "0x81", fmt::format("{:#06x}", std::uint16_t{answers[i].status}),
        fmt::format("{:#06x}", std::uint16_t{answers[i].attribute}), ""};
    EXPECT_EQ((*rows)[i], expected);
  }
}

class DirectedWireTest : public SmpWireTest {};
INSTANTIATE_TEST_SUITE_P(Over, DirectedWireTest, ::testing::Values(mgmt_class::kSubnDirected),
                         [](const auto&) { return "OneCable"; });

// Over a cable and back.
TEST_P(DirectedWireTest, AnAnswerHasItsRouteInItsFields) {
  constexpr std::uint8_t kOut = 3, kIn = 2;
  Smp smp;
  smp.header = {kBaseVersion,
                GetParam(),
                kClassVersion,
                method::kGet,
                0,
                1,
                ++tid_,
                smp_attribute::kNodeInfo,
                0,
                0};
  std::fill_n(smp.reserved.begin(), 4, std::uint8_t{0xff});
  smp.paths[1] = kOut;
  EXPECT_EQ(take_step(smp, false, 0).step, RouteStep::Send);
  EXPECT_EQ(take_step(smp, false, kIn).step, RouteStep::Deliver);
  Mad response{};
  const OneElement element(node_, port_);
  ASSERT_EQ(answer(element, port_.number, std::bit_cast<Mad>(smp), response).verdict,
            Verdict::Answered);
  smp = std::bit_cast<Smp>(response);
  EXPECT_EQ(take_step(smp, false, 0).step, RouteStep::Send);
  EXPECT_EQ(take_step(smp, false, kOut).step, RouteStep::Deliver);
  capture_.add(std::bit_cast<Mad>(smp), {0xffff, 0xffff, 0, 0, 0, 0});
  std::string initial = "00" + fmt::format("{:02x}", kOut),
              back = "00" + fmt::format("{:02x}", kIn);
  for (std::string* path : {&initial, &back}) path->resize(128, '0');
  const bool is_read = expect({{0, "infiniband.smpdirected.smpstatus", "0x8000"},
                               {0, "infiniband.smpdirected.hoppointer", "0x00"},
                               {0, "infiniband.smpdirected.hopcount", "0x01"},
                               {0, "infiniband.smpdirected.initialpath", initial},
                               {0, "infiniband.smpdirected.returnpath", back}});
  if (!is_read) GTEST_SKIP() << "tshark is not installed";
}

INSTANTIATE_TEST_SUITE_P(Every, SmpWireTest,
                         ::testing::Values(mgmt_class::kSubnLid, mgmt_class::kSubnDirected),
                         [](const auto& tested) {
                           return tested.param == mgmt_class::kSubnLid ? "Lid" : "DirectedRoute";
                         });

// The agent of a port refuses requests of other classes.
TEST(AgentWireTest, ARefusalOfEachOtherClassIsReadByTshark) {
  ErfCapture capture;
  std::vector<std::string> classes;
  for (unsigned number = 0; number < 0x100; ++number) {
    const auto mgmt_class = static_cast<std::uint8_t>(number);
    if (!is_general_class(mgmt_class)) continue;
    Smp smp;
    smp.header = {kBaseVersion, mgmt_class, kClassVersion, method::kGet, 0, 0, number, 1, 0, 0};
    Mad response{};
    ASSERT_EQ(answer(OneElement({}, {}), 1, std::bit_cast<Mad>(smp), response).verdict,
              Verdict::Answered);
    capture.add(response);
    classes.push_back(fmt::format("{:#04x}", number));
  }
  const auto rows = capture.dissect(
      "agent_refusals",
      {"infiniband.mad.mgmtclass", "infiniband.mad.method", "infiniband.mad.status"});
  if (!rows) GTEST_SKIP() << "tshark is not installed";
  for (std::size_t i = 0; i < rows->size(); ++i) {
    const std::vector<std::string> expected = {classes[i], "0x81", "0x0004", ""};
    EXPECT_EQ((*rows)[i], expected);
  }
}

}  // namespace
}  // namespace ib::mad
