// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A request with components gets those of all records that have them.
#include "sa/records/header.h"
#include "sa/records/node_record.h"
#include "sa/records/table_records.h"
#include "sa/test/switch_fixture_test.h"

#include <cstdlib>
#include <random>

namespace ib::sa {
namespace {

class RecordsRandomTest : public SwitchTest {
 protected:
  RecordsRandomTest() {
    const char* given = std::getenv("SA_SEED");
    seed_ = given != nullptr ? static_cast<unsigned>(std::atoi(given)) : std::random_device{}();
    random_.seed(seed_);
    subnet.ports[3].multicast[1u << 28 | 2] = {0, 1};
    subnet.ports[3].linear_top = 130;
    for (std::size_t i = 0; i < 4; ++i) subnet.ports[i].lmc = 0;
  }
  unsigned roll(unsigned sides) { return static_cast<unsigned>(random_() % sides); }

  // `ignored`: bits that this attribute compares by a rule of its own.
  template <class Record>
  void check(std::uint16_t attribute, std::uint64_t ignored = 0) {
    constexpr std::size_t kStride = stride_of(Record::kSize);
    const Answer everything = table(attribute, 0, Record{}, kSmKey);
    ASSERT_GT(everything.count, 0u) << attribute;
    const std::span<const std::byte> bytes(everything.bytes);
    const auto fields = components_of(attribute);
    for (int round = 0; round < 100; ++round) {
      // Fields of two records: often some match, and sometimes none does.
      const auto one = bytes.subspan(roll(static_cast<unsigned>(everything.count)) * kStride);
      const auto other = bytes.subspan(roll(static_cast<unsigned>(everything.count)) * kStride);
      std::vector<std::byte> wanted(kDataSize);
      std::copy_n(one.begin(), Record::kSize, wanted.begin());
      std::uint64_t mask = 0;
      for (std::size_t bit = 0; bit < fields.size(); ++bit) {
        const bool is_compared =
            fields[bit].compare == Compare::Equal && fields[bit].field.width != 0;
        if (!is_compared || (ignored >> bit & 1) != 0 || roll(2) == 0) continue;
        mask |= std::uint64_t{1} << bit;
        if (roll(4) == 0) copy_components(attribute, std::uint64_t{1} << bit, other, wanted);
      }
      std::vector<std::byte> expected;
      for (std::size_t i = 0; i < everything.count; ++i) {
        const auto record = bytes.subspan(i * kStride, kStride);
        if (has(attribute, mask, wanted, record)) {
          expected.insert(expected.end(), record.begin(), record.end());
        }
      }
      const Answer answer = table(attribute, mask, decode_some<Record>(wanted), kSmKey);
      EXPECT_EQ(answer.status, sa_status::kOk);
      EXPECT_EQ(answer.bytes, expected)
          << "attribute " << attribute << ", mask " << mask << ", SA_SEED=" << seed_;
      const Answer single =
          ask(0, method::kGet, attribute, mask, decode_some<Record>(wanted), kSmKey);
      EXPECT_EQ(single.status, expected.empty()             ? sa_status::kNoRecords
                               : expected.size() == kStride ? sa_status::kOk
                                                            : sa_status::kTooManyRecords);
    }
  }

 private:
  static bool has(std::uint16_t attribute, std::uint64_t mask, std::span<const std::byte> wanted,
                  std::span<const std::byte> record) {
    const auto fields = components_of(attribute);
    for (std::size_t bit = 0; bit < fields.size(); ++bit) {
      if ((mask >> bit & 1) != 0 && !equal(wanted, record, fields[bit].field)) return false;
    }
    return true;
  }

  unsigned seed_ = 0;
  std::mt19937 random_;
};

TEST_F(RecordsRandomTest, ComponentsChooseThoseRecordsThatHaveThem) {
  check<NodeRecord>(attribute::kNodeRecord);
  check<PortInfoRecord>(attribute::kPortInfoRecord);
  check<GuidInfoRecord>(attribute::kGuidInfoRecord);
  // Of an adapter's tables the ports are not compared.
  check<PkeyTableRecord>(attribute::kPkeyTableRecord, pkey_component::kPort);
  check<SlToVlRecord>(attribute::kSlToVlRecord, sl_to_vl_component::kIn | sl_to_vl_component::kOut);
  check<VlArbitrationRecord>(attribute::kVlArbitrationRecord, arbitration_component::kPort);
  check<LinkRecord>(attribute::kLinkRecord);
  check<SwitchInfoRecord>(attribute::kSwitchInfoRecord);
  check<LinearForwardingRecord>(attribute::kLinearForwardingRecord);
  check<MulticastForwardingRecord>(attribute::kMulticastForwardingRecord);
  check<SmInfoRecord>(attribute::kSmInfoRecord);
}

}  // namespace
}  // namespace ib::sa
