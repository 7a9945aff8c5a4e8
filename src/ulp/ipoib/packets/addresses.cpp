// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Conversions between hardware addresses, MGIDs and MAC addresses.
#include "ulp/ipoib/packets/addresses.h"

#include "ulp/ipoib/packets/hash.h"

#include <algorithm>
#include <cstring>

namespace ib::ipoib {
namespace {

constexpr std::uint16_t kIpv4Signature = 0x401b;
constexpr std::uint16_t kIpv6Signature = 0x601b;

template <class Bytes>
std::uint64_t mix(const Bytes& bytes) {
  std::uint64_t hash = 0;
  std::uint64_t word = 0;
  for (std::size_t at = 0; at < bytes.size(); at += sizeof word) {
    word = 0;
    std::memcpy(&word, bytes.data() + at, std::min(sizeof word, bytes.size() - at));
    hash = scramble(hash ^ word);
  }
  return hash;
}

}  // namespace

HardwareAddress from_bytes(const HardwareAddressBytes& bytes) {
  return {Qpn{std::uint32_t{bytes.qpn}}, Gid{bytes.gid}, bytes.flags};
}

HardwareAddressBytes to_bytes(const HardwareAddress& address) {
  return {address.flags, static_cast<std::uint32_t>(address.qpn), address.gid.bytes};
}

bool is_valid_unicast(const HardwareAddress& address) {
  return address.qpn > Qpn{1} && address.qpn < kMulticastQpn && !address.gid.is_multicast() &&
         address.gid != Gid{};
}

GroupMapping::GroupMapping(std::uint8_t scope, Pkey pkey)
    : scope_(scope & 0xf),
      pkey_{static_cast<std::uint16_t>(static_cast<std::uint16_t>(pkey) | kFullMember)} {}

// ff1s, signature, P_Key, then zeros.
Gid GroupMapping::start(std::uint16_t signature) const {
  const auto pkey = static_cast<std::uint16_t>(pkey_);
  Gid gid;
  gid.bytes[0] = 0xff;
  gid.bytes[1] = static_cast<std::uint8_t>(0x10 | scope_);
  gid.bytes[2] = static_cast<std::uint8_t>(signature >> 8);
  gid.bytes[3] = static_cast<std::uint8_t>(signature);
  gid.bytes[4] = static_cast<std::uint8_t>(pkey >> 8);
  gid.bytes[5] = static_cast<std::uint8_t>(pkey);
  return gid;
}

Gid GroupMapping::broadcast() const {
  Gid gid = start(kIpv4Signature);
  std::fill(gid.bytes.begin() + 12, gid.bytes.end(), std::uint8_t{0xff});
  return gid;
}

Gid GroupMapping::of(const Ipv4Address& group) const {
  Gid gid = start(kIpv4Signature);
  std::copy(group.bytes.begin(), group.bytes.end(), gid.bytes.begin() + 12);
  gid.bytes[12] &= 0x0f;
  return gid;
}

Gid GroupMapping::of(const Ipv6Address& group) const {
  Gid gid = start(kIpv6Signature);
  std::copy(group.bytes.begin() + 6, group.bytes.end(), gid.bytes.begin() + 6);
  return gid;
}

HardwareAddress GroupMapping::broadcast_address() const {
  return {kMulticastQpn, broadcast(), 0};
}

bool GroupMapping::is_ours(const Gid& mgid) const {
  const auto same_start = [&](std::uint16_t signature) {
    const Gid expected = start(signature);
    return std::equal(mgid.bytes.begin(), mgid.bytes.begin() + 6, expected.bytes.begin());
  };
  return same_start(kIpv4Signature) || same_start(kIpv6Signature);
}

MacAddress mac_of(const Ipv4Address& group) {
  const auto& ip = group.bytes;
  return {{0x01, 0x00, 0x5e, static_cast<std::uint8_t>(ip[1] & 0x7f), ip[2], ip[3]}};
}

MacAddress mac_of(const Ipv6Address& group) {
  const auto& ip = group.bytes;
  return {{0x33, 0x33, ip[12], ip[13], ip[14], ip[15]}};
}

MacAddress derive_mac(std::span<const std::uint8_t> identity, std::uint32_t attempt) {
  std::uint64_t hash = scramble(mix(identity) + attempt);
  MacAddress mac;
  for (auto& byte : mac.bytes) {
    byte = static_cast<std::uint8_t>(hash);
    hash >>= 8;
  }
  // Unicast, locally administered; never in the block of kUnknownMac.
  mac.bytes[0] = static_cast<std::uint8_t>((mac.bytes[0] & 0xf0) | 0x0a);
  return mac;
}

}  // namespace ib::ipoib

std::size_t std::hash<ib::ipoib::Gid>::operator()(const ib::ipoib::Gid& gid) const noexcept {
  return static_cast<std::size_t>(ib::ipoib::mix(gid.bytes));
}

std::size_t std::hash<ib::ipoib::MacAddress>::operator()(
    const ib::ipoib::MacAddress& mac) const noexcept {
  return static_cast<std::size_t>(ib::ipoib::mix(mac.bytes));
}
