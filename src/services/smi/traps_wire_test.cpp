// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// tshark reads each trap that softib's agents send, and finds its number and fields. Not 259:
// tshark 4.0 takes two of its fields of 16 bits for IPv6 addresses, and calls every one malformed.
#include "fabric/management/subnet_test.h"
#include "mad/test/erf_capture_test.h"
#include "services/smi/traps.h"

#include <fmt/format.h>

#include <array>
#include <utility>

namespace ib::services {
namespace {

using Fields = std::vector<std::pair<std::string, std::string>>;

struct Sent {
  std::uint16_t number;
  Fields fields;
};

class TrapWire : public testing::Test {
 protected:
  void send(std::uint16_t number, const sa::Notice& notice, Fields fields) {
    const mad::Mad mad = trap_smp(notice, 0x4300 + sent_.size());
    capture_.add(mad, {7, 1, 0, 0, 0, 0});
    sent_.push_back({number, std::move(fields)});
  }
  // The trap of a violation, as the port `at` tells of it.
  void send(std::uint16_t number, const fabric::KeyViolation& violation, const fabric::Port& at) {
    const auto hex = [](unsigned value, int digits) {
      return fmt::format("{:#0{}x}", value, digits + 2);
    };
    send(number, bad_key_notice(t_.graph(), violation, at),
         {{"key", hex(violation.key, 8)},
          {"lidaddr1", hex(violation.from->lid, 4)},
          {"lidaddr2", hex(violation.to->lid, 4)},
          {"qp1", hex(violation.source_qp, 6)},
          {"qp2", hex(violation.target_qp, 6)}});
  }

  fabric::test::Subnet t_{"star:2"};
  mad::ErfCapture capture_;
  std::vector<Sent> sent_;
};

TEST_F(TrapWire, EachHasItsNumberAndFields) {
  mad::Smp smp = fabric::test::Subnet::by_lid(mad::method::kSet, mad::smp_attribute::kPortInfo, 2);
  smp.m_key = 0x1112131415161718;
  send(128, link_state_notice(7), {{"lidaddr", "0x0007"}});
  for (const std::uint16_t number : std::array<std::uint16_t, 3>{129, 130, 131}) {
    send(number, link_error_notice(number, true, 7, 3),
         {{"lidaddr", "0x0007"}, {"portno", "0x03"}});
  }
  send(256, bad_m_key_notice(7, 5, smp),
       {{"lidaddr", "0x0005"},
        {"method", "0x02"},
        {"attributeid", "0x0015"},
        {"mkey", "0x1112131415161718"}});
  fabric::KeyViolation violation;
  violation.from = &t_.port_of_node(0);
  violation.to = &t_.port_of_node(1);
  violation.is_pkey = true;
  violation.key = 0x8123;
  violation.source_qp = 0x123456;
  violation.target_qp = 0x654321;
  send(257, violation, *violation.to);
  violation.is_pkey = false;
  violation.key = 0x1234567;
  send(258, violation, *violation.to);

  std::vector<std::string> columns = {"_ws.col.Info", "infiniband.notice.trapnumberdeviceid"};
  std::vector<std::vector<std::size_t>> places;
  for (const Sent& each : sent_) {
    auto& of_row = places.emplace_back();
    for (const auto& [field, text] : each.fields) {
      const std::string name = "infiniband.trap." + field;
      const auto known = std::ranges::find(columns, name);
      of_row.push_back(static_cast<std::size_t>(known - columns.begin()));
      if (known == columns.end()) columns.push_back(name);
    }
  }
  const auto rows = capture_.dissect("traps", columns);
  if (!rows) GTEST_SKIP() << "tshark is not installed";
  for (std::size_t i = 0; i < rows->size(); ++i) {
    const auto& row = (*rows)[i];
    EXPECT_EQ(row.back(), "") << "a complaint about trap " << sent_[i].number;
    EXPECT_EQ(row[0], "UD Send Only QP=0x000000 SubnTrap(Notice)");
    EXPECT_EQ(row[1], fmt::format("{:#06x}", sent_[i].number));
    for (std::size_t k = 0; k < places[i].size(); ++k) {
      EXPECT_EQ(row[places[i][k]], sent_[i].fields[k].second)
          << sent_[i].fields[k].first << " of trap " << sent_[i].number;
    }
  }
}

}  // namespace
}  // namespace ib::services
