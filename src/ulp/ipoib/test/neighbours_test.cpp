// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The table of neighbours against a plain walk over its entries, with random arrivals.
#include "ulp/ipoib/neighbours.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <tuple>

namespace ib::ipoib {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kLimit = 12;

bool claims(const Neighbour& entry, const ClaimedAddress& claimed) {
  if (const auto* ipv4 = std::get_if<Ipv4Address>(&claimed)) return entry.ipv4 == *ipv4;
  if (const auto* ipv6 = std::get_if<Ipv6Address>(&claimed)) return entry.ipv6 == *ipv6;
  return false;
}

class IpoibNeighbourTable : public testing::TestWithParam<std::uint64_t> {
 protected:
  std::uint8_t draw(unsigned below) { return static_cast<std::uint8_t>(random_.number() % below); }

  HardwareAddress any_address() {
    HardwareAddress address;
    address.qpn = Qpn{2u + draw(5)};
    address.gid.bytes = {0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, draw(4)};
    return address;
  }
  ClaimedAddress any_claim() {
    const std::uint8_t last = draw(4);
    switch (draw(3)) {
      case 0: return Ipv4Address{{10, 0, 0, last}};
      case 1: return Ipv6Address{{0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, last}};
      default: return {};
    }
  }
  const Neighbour* former(const HardwareAddress& address, const ClaimedAddress& claimed) const {
    const auto found =
        std::find_if(table_.all().begin(), table_.all().end(), [&](const auto& entry) {
          return entry.address.gid == address.gid && entry.address.qpn != address.qpn &&
                 claims(entry, claimed);
        });
    return found != table_.all().end() ? &*found : nullptr;
  }

  void learn() {
    const HardwareAddress address = any_address();
    const ClaimedAddress claimed = any_claim();
    const Neighbour* const before = former(address, claimed);
    const std::optional<MacAddress> mac =
        before != nullptr ? std::optional(before->mac) : std::nullopt;
    const LearntNeighbour learnt =
        table_.learn(address, claimed, NeighbourRow::Source::Arp, now_ += 1s);
    if (mac) {
      EXPECT_EQ(learnt.mac, *mac);
      ASSERT_TRUE(learnt.gone.has_value());
      EXPECT_EQ(learnt.gone->gid, address.gid);
    }
    const Neighbour* const entry = table_.peek(address);
    ASSERT_NE(entry, nullptr);
    EXPECT_EQ(entry->mac, learnt.mac);
    EXPECT_TRUE(std::holds_alternative<std::monostate>(claimed) || claims(*entry, claimed));
  }

  void check() const {
    std::set<MacAddress> macs;
    std::set<std::tuple<Gid, Ipv4Address>> ipv4;
    std::set<std::tuple<Gid, Ipv6Address>> ipv6;
    EXPECT_LE(table_.all().size(), kLimit);
    for (const Neighbour& entry : table_.all()) {
      EXPECT_EQ(table_.peek(entry.address), &entry);
      EXPECT_EQ(table_.peek(entry.mac), &entry);
      EXPECT_TRUE(macs.insert(entry.mac).second);
      const Gid& gid = entry.address.gid;
      EXPECT_TRUE(!entry.ipv4 || ipv4.insert({gid, *entry.ipv4}).second);
      EXPECT_TRUE(!entry.ipv6 || ipv6.insert({gid, *entry.ipv6}).second);
    }
  }

  Random random_{GetParam()};
  Instant now_{1h};
  Neighbours table_{kLimit, MacAddress{{2, 0, 0, 0, 0, 1}}, GetParam()};
};

TEST_P(IpoibNeighbourTable, ANewEndWithAnAddressOfItsPortTakesThePlaceOfTheFormer) {
  for (unsigned step = 0; step < 2000 && !HasFailure(); ++step) {
    if (draw(10) == 0) {
      static_cast<void>(table_.take_unused(now_ - std::chrono::seconds(draw(20))));
    } else {
      learn();
    }
    check();
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, IpoibNeighbourTable, testing::Values(1, 2, 3, 4));

}  // namespace
}  // namespace ib::ipoib
