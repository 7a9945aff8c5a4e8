// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Parses reports of IGMP and MLD. Filters of sources are not evaluated: a member of some sources is
// a member.
#include "ulp/ipoib/packets/membership_reports.h"

#include <algorithm>

namespace ib::ipoib {
namespace {

constexpr std::uint8_t kIgmpReport1 = 0x12;
constexpr std::uint8_t kIgmpReport2 = 0x16;
constexpr std::uint8_t kIgmpLeave = 0x17;
constexpr std::uint8_t kIgmpReport3 = 0x22;
constexpr std::uint8_t kMldReport1 = 131;
constexpr std::uint8_t kMldDone = 132;
constexpr std::uint8_t kMldReport2 = 143;

// Types of records of version 3 (IGMP) and 2 (MLD).
enum Record : std::uint8_t {
  kIsInclude = 1,
  kIsExclude = 2,
  kToInclude = 3,
  kToExclude = 4,
  kAllowSources = 5,
  kBlockSources = 6,
};

struct RecordHeader {
  std::uint8_t type = 0;
  std::uint8_t auxiliary_words = 0;
  Be16 sources;
};
static_assert(sizeof(RecordHeader) == 4);

template <std::size_t kSize>
Ipv6Address address_at(ConstBytes bytes, std::size_t offset) {
  static_assert(kSize == 4 || kSize == 16);
  Ipv6Address address;
  if constexpr (kSize == 4) address.bytes[10] = address.bytes[11] = 0xff;
  std::memcpy(address.bytes.data() + 16 - kSize, bytes.data() + offset, kSize);
  return address;
}

bool is_group(const Ipv6Address& address) {
  return is_ipv4_mapped(address) ? ipv4_of(address).is_multicast() : address.is_multicast();
}

void add(std::vector<MembershipChange>& changes, const Ipv6Address& group, bool joins) {
  if (is_group(group) && changes.size() < kMostChanges) changes.push_back({group, joins});
}

// Records of group addresses of kSize bytes; their number is at offset 6, they begin at 8.
template <std::size_t kSize>
void parse_records(ConstBytes report, std::vector<MembershipChange>& changes) {
  std::size_t at = 8;
  for (unsigned left = get<Be16>(report, 6); left > 0; --left) {
    if (report.size() < at + sizeof(RecordHeader) + kSize) return;
    const auto record = get<RecordHeader>(report, at);
    const Ipv6Address group = address_at<kSize>(report, at + sizeof record);
    switch (record.type) {
      case kIsExclude:
      case kToExclude: add(changes, group, true); break;
      // No source at all is a leave.
      case kIsInclude:
      case kToInclude: add(changes, group, record.sources != 0); break;
      case kAllowSources: add(changes, group, true); break;
      default: break;
    }
    at += sizeof record + kSize + record.sources * kSize + record.auxiliary_words * std::size_t{4};
  }
}

std::vector<MembershipChange> parse_igmp(ConstBytes report) {
  std::vector<MembershipChange> changes;
  if (report.size() < 8) return changes;
  switch (std::to_integer<std::uint8_t>(report[0])) {
    case kIgmpReport1:
    case kIgmpReport2: add(changes, address_at<4>(report, 4), true); break;
    case kIgmpLeave: add(changes, address_at<4>(report, 4), false); break;
    case kIgmpReport3: parse_records<4>(report, changes); break;
    default: break;
  }
  return changes;
}

std::vector<MembershipChange> parse_mld(ConstBytes report) {
  std::vector<MembershipChange> changes;
  if (report.size() < 8) return changes;
  const auto type = std::to_integer<std::uint8_t>(report[0]);
  if (type == kMldReport2) parse_records<16>(report, changes);
  if ((type == kMldReport1 || type == kMldDone) && report.size() >= 8 + 16) {
    add(changes, address_at<16>(report, 8), type == kMldReport1);
  }
  return changes;
}

// The ICMPv6 message behind one hop-by-hop header; empty if there is none.
ConstBytes icmpv6_of(ConstBytes packet, const IpPacket& ip) {
  ConstBytes rest = packet.subspan(ip.payload, ip.length - ip.payload);
  std::uint8_t protocol = ip.protocol;
  if (protocol == kHopByHop) {
    if (rest.size() < 8) return {};
    protocol = std::to_integer<std::uint8_t>(rest[0]);
    const std::size_t length = (std::to_integer<std::size_t>(rest[1]) + 1) * 8;
    if (length > rest.size()) return {};
    rest = rest.subspan(length);
  }
  return protocol == kIcmpv6 ? rest : ConstBytes{};
}

}  // namespace

bool is_ipv4_mapped(const Ipv6Address& address) {
  constexpr std::array<std::uint8_t, 12> kPrefix = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
  return std::equal(kPrefix.begin(), kPrefix.end(), address.bytes.begin());
}

Ipv4Address ipv4_of(const Ipv6Address& mapped) {
  Ipv4Address address;
  std::copy(mapped.bytes.begin() + 12, mapped.bytes.end(), address.bytes.begin());
  return address;
}

bool may_be_report(ConstBytes packet, const IpPacket& ip) {
  if (!ip.is_v6) return ip.protocol == kIgmp && !ip.is_fragment;
  return ip.protocol == kHopByHop || (ip.protocol == kIcmpv6 && packet.size() > ip.payload);
}

std::vector<MembershipChange> parse_reports(ConstBytes packet, const IpPacket& ip) {
  if (ip.is_v6) return parse_mld(icmpv6_of(packet, ip));
  if (ip.protocol != kIgmp || ip.is_fragment) return {};
  return parse_igmp(packet.subspan(ip.payload, ip.length - ip.payload));
}

}  // namespace ib::ipoib
