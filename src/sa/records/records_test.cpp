// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The attributes byte for byte, and the components that masks select.
#include "base/buffers.h"
#include "sa/records/components.h"
#include "sa/records/header.h"
#include "sa/records/inform_info.h"
#include "sa/records/mc_member_record.h"
#include "sa/records/multi_path_record.h"
#include "sa/records/node_record.h"
#include "sa/records/notice.h"
#include "sa/records/path_record.h"
#include "sa/records/service_record.h"
#include "sa/records/subnet_records.h"
#include "sa/records/table_records.h"
#include "sa/test/sample_records_test.h"
#include "verbs/gid.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <string_view>

namespace ib::sa {
namespace {

// Bytes as hexadecimal digits, in groups that spaces separate.
template <std::size_t N>
std::string hex(const std::array<std::byte, N>& bytes, std::size_t first, std::size_t count) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  for (std::size_t i = first; i < first + count; ++i) {
    const auto value = std::to_integer<unsigned>(bytes[i]);
    text += kDigits[value >> 4];
    text += kDigits[value & 15];
  }
  return text;
}

TEST(FieldTest, ReadsAndWritesWhatStandsInTheMiddleOfBytes) {
  std::array<std::byte, 4> bytes{std::byte{0xff}, std::byte{0xff}, std::byte{0xff},
                                 std::byte{0xff}};
  put(bytes, {0, 4, 20}, 0x12345);
  EXPECT_EQ(hex(bytes, 0, 4), "f12345ff");
  EXPECT_EQ(get(bytes, {0, 4, 20}), 0x12345u);
  EXPECT_EQ(get(bytes, {0, 3, 3}), 0b100u);
  put(bytes, {1, 1, 7}, ~std::uint64_t{0});
  EXPECT_EQ(hex(bytes, 0, 4), "f17f45ff");
}

TEST(RecordsTest, APathRecordHasItsFieldsWhereTheSpecificationPutsThem) {
  PathRecord path = sample_path();
  const auto bytes = encode(path);
  EXPECT_EQ(hex(bytes, 0, 8), "0102030405060708");
  EXPECT_EQ(hex(bytes, 8, 16), "fe800000000000000000000000000022");
  EXPECT_EQ(hex(bytes, 24, 16), "fe800000000000000000000000000011");
  EXPECT_EQ(hex(bytes, 40, 4), "12345678");
  EXPECT_EQ(hex(bytes, 44, 4), "0abcde40");  // raw traffic, flow label, hop limit
  EXPECT_EQ(hex(bytes, 48, 4), "99aa8001");  // traffic class, reversible and number, P_Key
  EXPECT_EQ(hex(bytes, 52, 2), "fed7");      // QoS class, SL
  EXPECT_EQ(hex(bytes, 54, 4), "8550d203");  // MTU, rate, life time, preference
  EXPECT_EQ(hex(bytes, 58, 6), "000000000000");
  EXPECT_EQ(decode<PathRecord>(bytes), path);
  path.raw_traffic = true;
  EXPECT_EQ(hex(encode(path), 44, 1), "8a");
}

TEST(RecordsTest, AnMcMemberRecordHasItsFieldsWhereTheSpecificationPutsThem) {
  const McMemberRecord record = sample_member();
  const auto bytes = encode(record);
  EXPECT_EQ(hex(bytes, 32, 8), "0b1b0c1cc0018477");
  EXPECT_EQ(hex(bytes, 40, 4), "ffff8353");
  EXPECT_EQ(hex(bytes, 44, 8), "a54321fe25800000");
  EXPECT_EQ(decode<McMemberRecord>(bytes), record);
}

TEST(RecordsTest, AServiceRecordHasItsFieldsWhereTheSpecificationPutsThem) {
  const ServiceRecord record = sample_service();
  const auto bytes = encode(record);
  EXPECT_EQ(hex(bytes, 24, 8), "800200000000003c");
  EXPECT_EQ(hex(bytes, 47, 2), "ee73");
  EXPECT_EQ(hex(bytes, 112, 2), "0081");
  EXPECT_EQ(hex(bytes, 142, 6), "161732333435");
  EXPECT_EQ(hex(bytes, 168, 8), "6465666768697071");
  EXPECT_EQ(decode<ServiceRecord>(bytes), record);
}

TEST(RecordsTest, InformInfoAndNoticeHaveTheirFieldsWhereTheSpecificationPutsThem) {
  InformInfo info = sample_inform_info();
  info.lid_first = 0x0102;
  EXPECT_EQ(hex(encode(info), 16, 20),
            "010203040000010100030042123456120000000"
            "4");
  EXPECT_EQ(decode<InformInfo>(encode(info)), info);

  const verbs::Gid gid = verbs::make_gid(1, 2);
  const Notice notice = gid_notice(trap::kGidInService, gid, 7, verbs::make_gid(3, 4));
  const auto bytes = encode(notice);
  EXPECT_EQ(hex(bytes, 0, 10), "83000004004000070000");
  EXPECT_EQ(hex(bytes, 16, 16), "00000000000000010000000000000002");
  EXPECT_EQ(hex(bytes, 64, 16), "00000000000000030000000000000004");
  EXPECT_EQ(subject_gid(notice), gid);
  EXPECT_EQ(decode<Notice>(bytes), notice);
}

TEST(RecordsTest, RecordsOfNodesHoldTheAttributesOfSmps) {
  NodeRecord node;
  node.lid = 9;
  node.info.node_guid = 0x1122334455667788;
  node.description[0] = 'n';
  EXPECT_EQ(hex(encode(node), 16, 8), "1122334455667788");
  EXPECT_EQ(hex(encode(node), 0, 2), "0009");
  EXPECT_EQ(hex(encode(node), 44, 1), "6e");
  PortInfoRecord port;
  port.lid = 9;
  port.port = 2;
  port.info.lid = 0x0908;
  EXPECT_EQ(hex(encode(port), 0, 3), "000902");
  EXPECT_EQ(hex(encode(port), 20, 2), "0908");
}

TEST(RecordsTest, RecordsOfTablesNameTheirBlockBeforeIt) {
  mad::SmpData data{0xab};
  data[63] = 0xcd;
  EXPECT_EQ(hex(encode(GuidInfoRecord{0x0102, 3, data}), 0, 9), "0102030000000000ab");
  EXPECT_EQ(hex(encode(PkeyTableRecord{0x0102, 0x0304, 5, data}), 0, 9), "0102030405000000ab");
  EXPECT_EQ(hex(encode(SlToVlRecord{0x0102, 3, 4, {0xab, 1}}), 0, 10), "0102030400000000ab01");
  EXPECT_EQ(hex(encode(VlArbitrationRecord{0x0102, 3, 4, data}), 0, 9), "0102030400000000ab");
  EXPECT_EQ(hex(encode(LinearForwardingRecord{0x0102, 0x0304, data}), 0, 9), "0102030400000000ab");
  EXPECT_EQ(hex(encode(LinearForwardingRecord{1, 0, data}), 71, 1), "cd");
  EXPECT_EQ(hex(encode(MulticastForwardingRecord{0x0102, 0xa, 0x1bc, data}), 0, 9),
            "0102a1bc00000000ab");
}

TEST(RecordsTest, RecordsOfTheSubnetHaveTheirFieldsWhereTheSpecificationPutsThem) {
  EXPECT_EQ(hex(encode(LinkRecord{0x0102, 3, 4, 0x0506}), 0, 6), "010203040506");
  EXPECT_EQ(
      hex(encode(SmInfoRecord{0x0102, 0x1112131415161718, 0x2122232425262728, 0x31323334, 14, 3}),
          0, 25),
      "01020000111213141516171821222324252627283132333"
      "4e3");
  SwitchInfoRecord record;
  record.lid = 0x0102;
  record.info.linear_cap = 0x0304;
  record.info.multicast_top = 0x0506;
  EXPECT_EQ(hex(encode(record), 0, 6), "010200000304");
  EXPECT_EQ(hex(encode(record), 22, 2), "0506");
}

TEST(RecordsTest, AMultiPathRecordHasItsFieldsWhereTheSpecificationPutsThem) {
  const MultiPathRecord record = sample_multi_path();
  const auto bytes = encode(record);
  EXPECT_EQ(hex(bytes, 0, 8), "0abcde4099aa8001");
  EXPECT_EQ(hex(bytes, 8, 5), "fed78550d2");
  EXPECT_EQ(hex(bytes, 13, 11), "0140020102030405060708");
  EXPECT_EQ(hex(bytes, 24, 16), "fe800000000000000000000000000011");
  EXPECT_EQ(hex(bytes, 56, 16), "fe800000000000000000000000000033");
  EXPECT_EQ(decode<MultiPathRecord>(bytes), record);
}

// Each bit of an attribute belongs to one field at most: what is decoded and encoded again has the
// same bits, except reserved ones.
template <class Record>
void check_round_trips(unsigned seed) {
  std::mt19937 random(seed);
  for (int round = 0; round < 200; ++round) {
    std::array<std::byte, Record::kSize> bytes;
    for (std::byte& b : bytes) b = static_cast<std::byte>(random());
    const auto once = encode(decode<Record>(bytes));
    EXPECT_EQ(encode(decode<Record>(once)), once);
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      EXPECT_EQ(once[i] & ~bytes[i], std::byte{0}) << "byte " << i << ", seed " << seed;
    }
  }
}
TEST(RecordsTest, AnyBytesSurviveARoundTripButForReservedBits) {
  check_round_trips<PathRecord>(1);
  check_round_trips<McMemberRecord>(2);
  check_round_trips<ServiceRecord>(3);
  check_round_trips<InformInfo>(4);
  check_round_trips<InformInfoRecord>(5);
  check_round_trips<Notice>(6);
  check_round_trips<NodeRecord>(7);
  check_round_trips<PortInfoRecord>(8);
  check_round_trips<MultiPathRecord>(9);
  check_round_trips<GuidInfoRecord>(10);
  check_round_trips<PkeyTableRecord>(11);
  check_round_trips<SlToVlRecord>(12);
  check_round_trips<VlArbitrationRecord>(13);
  check_round_trips<LinearForwardingRecord>(14);
  check_round_trips<MulticastForwardingRecord>(15);
  check_round_trips<LinkRecord>(16);
  check_round_trips<SwitchInfoRecord>(17);
  check_round_trips<SmInfoRecord>(18);
}

TEST(ComponentsTest, TheBitsOfMasksAreThoseOfTheTables) {
  const auto field_of = [](std::uint16_t attribute, std::uint64_t bit) {
    return components_of(attribute)[static_cast<std::size_t>(std::countr_zero(bit))].field.byte;
  };
  EXPECT_EQ(field_of(attribute::kPathRecord, path_component::kPkey), path_field::kPkey.byte);
  EXPECT_EQ(field_of(attribute::kPathRecord, path_component::kLife), path_field::kLife.byte);
  EXPECT_EQ(field_of(attribute::kMcMemberRecord, mc_component::kJoinState),
            mc_field::kJoinState.byte);
  EXPECT_EQ(field_of(attribute::kServiceRecord, service_component::kName),
            service_field::kName.byte);
  EXPECT_EQ(field_of(attribute::kPortInfoRecord, port_info_component::kState), 36);
  EXPECT_EQ(field_of(attribute::kPortInfoRecord, port_info_component::kCapabilityMask2), 64);
  EXPECT_EQ(field_of(attribute::kNodeRecord, node_component::kPortGuid), 24);
  EXPECT_EQ(field_of(attribute::kMulticastForwardingRecord, multicast_component::kBlock), 2);
  EXPECT_EQ(field_of(attribute::kPkeyTableRecord, pkey_component::kPort), 4);
  EXPECT_EQ(field_of(attribute::kSlToVlRecord, sl_to_vl_component::kOut), 3);
  EXPECT_EQ(field_of(attribute::kVlArbitrationRecord, arbitration_component::kBlock), 3);
  EXPECT_EQ(field_of(attribute::kSmInfoRecord, sm_info_component::kState), 24);
  EXPECT_EQ(field_of(attribute::kSwitchInfoRecord, switch_info_component::kLinearTop), 10);
  EXPECT_EQ(components_of(attribute::kSwitchInfoRecord)[20].field.byte, 22);
  EXPECT_EQ(components_of(attribute::kGuidInfoRecord)[11].field.byte, 64);
}

TEST(ComponentsTest, OnlySelectedComponentsAreCompared) {
  const PathRecord path = sample_path();
  PathRecord other = path;
  other.dlid = 1;
  other.sl = 1;
  const auto is_match = [&](std::uint64_t mask) {
    return matches(attribute::kPathRecord, mask, encode(other), encode(path));
  };
  EXPECT_TRUE(is_match(0));
  EXPECT_TRUE(is_match(path_component::kSlid | path_component::kQosClass));
  EXPECT_FALSE(is_match(path_component::kDlid));
  EXPECT_FALSE(is_match(path_component::kSlid | path_component::kSl));
  EXPECT_TRUE(is_match(std::uint64_t{1} << 60));  // a bit without a component
}

TEST(ComponentsTest, SelectorsCompareBySize) {
  PathRecord path;
  path.rate = 3;  // 10 Gb/s
  PathRecord wanted;
  wanted.rate = 5;  // 5 Gb/s
  const auto is_match = [&](Selector selector) {
    wanted.rate_selector = selector;
    return matches(attribute::kPathRecord, path_component::kRate | path_component::kRateSelector,
                   encode(wanted), encode(path));
  };
  EXPECT_TRUE(is_match(Selector::Greater));
  EXPECT_FALSE(is_match(Selector::Less));
  EXPECT_FALSE(is_match(Selector::Exactly));
  EXPECT_TRUE(is_match(Selector::Best));
  // A value without its selector is an exact one.
  wanted.rate_selector = Selector::Greater;
  EXPECT_FALSE(
      matches(attribute::kPathRecord, path_component::kRate, encode(wanted), encode(path)));
}

TEST(SelectorTest, APathIsUsedWithLessThanItCanDo) {
  EXPECT_EQ(select_mtu(Selector::Exactly, 4, 5), 4);
  EXPECT_EQ(select_mtu(Selector::Exactly, 5, 4), 0);
  EXPECT_EQ(select_mtu(Selector::Greater, 3, 5), 5);
  EXPECT_EQ(select_mtu(Selector::Greater, 5, 5), 0);
  EXPECT_EQ(select_mtu(Selector::Less, 5, 5), 4);
  EXPECT_EQ(select_mtu(Selector::Less, 1, 5), 0);
  EXPECT_EQ(select_rate(Selector::Less, 3, 16), 5);  // below 10 Gb/s: 5
  EXPECT_EQ(select_rate(Selector::Less, 2, 16), 0);  // nothing is below 2.5
  EXPECT_EQ(select_rate(Selector::Exactly, 3, 16), 3);
  EXPECT_EQ(select_rate(Selector::Exactly, 1, 16), 0);  // no rate
  EXPECT_EQ(select_rate(Selector::Best, 0, 16), 16);
  EXPECT_FALSE(select_life(Selector::Less, 10, 10).possible);
  EXPECT_EQ(select_life(Selector::Exactly, 12, 10).life, 12);
  EXPECT_EQ(rate_of(2, 32), 16);  // 4X EDR: 100 Gb/s
  EXPECT_EQ(rate_of(1, 1), 2);    // 1X SDR: 2.5 Gb/s
  EXPECT_EQ(rate_of(3, 32), 0);
}

}  // namespace
}  // namespace ib::sa
