// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Rewrites DHCP messages; the new packet is built from the old one field by field.
#include "ulp/ipoib/packets/dhcp.h"

#include "ulp/ipoib/packets/checksum.h"

#include <algorithm>

namespace ib::ipoib {
namespace {

constexpr std::uint16_t kServerPort = 67;
constexpr std::uint16_t kClientPort = 68;
constexpr std::uint8_t kBootRequest = 1;
constexpr std::uint8_t kBootReply = 2;
constexpr std::uint8_t kEthernet = 1;
constexpr std::uint8_t kInfiniband = 32;
constexpr std::uint16_t kBroadcastFlag = 0x8000;
constexpr std::uint32_t kCookie = 0x63825363;

constexpr std::byte kPad{0};
constexpr std::byte kClientIdentifier{61};
constexpr std::byte kEnd{255};

struct BootHeader {
  std::uint8_t operation = 0;
  std::uint8_t hardware_type = 0;
  std::uint8_t hardware_length = 0;
  std::uint8_t hops = 0;
  Be32 transaction;
  Be16 seconds;
  Be16 flags;
  std::array<std::uint8_t, 16> addresses{};
  std::array<std::uint8_t, 16> client_hardware{};
  std::array<std::uint8_t, 192> names{};  // server, boot file
  Be32 cookie;
};
static_assert(sizeof(BootHeader) == 240 && offsetof(BootHeader, client_hardware) == 28);

// The client identifier of a node: type 255, IAID, DUID of a link-layer address.
struct IdentifierOption {
  std::uint8_t code = 61;
  std::uint8_t length = 17;
  std::uint8_t type = 255;
  Be32 association;
  Be16 duid_type = std::uint16_t{3};
  Be16 hardware_type = std::uint16_t{kInfiniband};
  Be64 guid;
};
struct MacIdentifierOption {
  std::uint8_t code = 61;
  std::uint8_t length = 7;
  std::uint8_t type = kEthernet;
  std::array<std::uint8_t, 6> mac{};
};
static_assert(sizeof(IdentifierOption) == 19 && sizeof(MacIdentifierOption) == 9);

IdentifierOption identifier_of(const Identity& own) {
  IdentifierOption option;
  option.association = static_cast<std::uint16_t>(own.pkey);
  option.guid = own.port_guid;
  return option;
}

template <class Option>
bool is_same(ConstBytes bytes, const Option& option) {
  const auto wanted = std::as_bytes(std::span(&option, 1));
  return bytes.size() == wanted.size() && std::equal(bytes.begin(), bytes.end(), wanted.begin());
}

struct OptionPlace {
  std::size_t begin = 0;
  std::size_t length = 0;  // 0: there is none
};
struct Options {
  OptionPlace identifier;
  std::size_t end = 0;  // offset of the end option, or of the end
};

Result<Options> scan(ConstBytes options) {
  Options result;
  std::size_t at = 0;
  while (at < options.size() && options[at] != kEnd) {
    if (options[at] == kPad) {
      ++at;
      continue;
    }
    if (options.size() - at < 2) return Status::Malformed;
    const std::size_t length = 2 + std::to_integer<std::size_t>(options[at + 1]);
    if (length > options.size() - at) return Status::Malformed;
    if (options[at] == kClientIdentifier) result.identifier = {at, length};
    at += length;
  }
  result.end = at;
  return result;
}

// Writes lengths and checksums of a packet whose DHCP message has been written to `out`.
std::size_t finish(Bytes out, const IpPacket& ip, std::size_t message) {
  const std::size_t udp_length = sizeof(UdpHeader) + message;
  auto header = get<Ipv4Header>(out);
  header.total_length = static_cast<std::uint16_t>(ip.payload + udp_length);
  header = with_checksum(header, out.subspan(sizeof header, ip.payload - sizeof header));
  put(out, 0, header);
  auto udp = get<UdpHeader>(out, ip.payload);
  udp.length = static_cast<std::uint16_t>(udp_length);
  udp.checksum = 0;
  put(out, ip.payload, udp);
  const std::uint16_t sum = ChecksumSum()
                                .add_pseudo(header, kUdp, udp_length)
                                .add(out.subspan(ip.payload, udp_length))
                                .complement();
  udp.checksum = sum != 0 ? sum : std::uint16_t{0xffff};
  put(out, ip.payload, udp);
  return ip.payload + udp_length;
}

// The message in the UDP datagram; empty if lengths are wrong.
ConstBytes message_of(ConstBytes packet, const IpPacket& ip) {
  const auto udp = get<UdpHeader>(packet, ip.payload);
  const std::size_t length = udp.length;
  if (length < sizeof udp + sizeof(BootHeader) || length > ip.length - ip.payload) return {};
  return packet.subspan(ip.payload + sizeof udp, length - sizeof udp);
}

std::size_t copied(Bytes out, std::size_t at, ConstBytes from) {
  std::copy(from.begin(), from.end(), out.begin() + static_cast<std::ptrdiff_t>(at));
  return at + from.size();
}

void set_hardware(BootHeader& boot, std::uint8_t type, const std::optional<MacAddress>& mac) {
  boot.hardware_type = type;
  boot.hardware_length = mac ? std::uint8_t{6} : std::uint8_t{0};
  boot.client_hardware = {};
  if (mac) std::copy(mac->bytes.begin(), mac->bytes.end(), boot.client_hardware.begin());
}

}  // namespace

Dhcp::Role Dhcp::role(ConstBytes packet, const IpPacket& ip) {
  if (ip.is_v6 || ip.protocol != kUdp || ip.is_fragment ||
      ip.length < ip.payload + sizeof(UdpHeader) + sizeof(BootHeader)) {
    return Role::None;
  }
  const auto udp = get<UdpHeader>(packet, ip.payload);
  const auto boot = get<BootHeader>(packet, ip.payload + sizeof udp);
  if (boot.cookie != kCookie) return Role::None;
  if (udp.source == kClientPort && udp.destination == kServerPort) {
    return boot.operation == kBootRequest ? Role::FromClient : Role::None;
  }
  if (udp.source == kServerPort && udp.destination == kClientPort) {
    return boot.operation == kBootReply ? Role::FromServer : Role::None;
  }
  return Role::None;
}

Result<std::size_t> Dhcp::to_fabric(ConstBytes packet, const IpPacket& ip, const Identity& own,
                                    Bytes out) {
  const ConstBytes message = message_of(packet, ip);
  if (message.empty()) return Status::Malformed;
  const std::size_t start = ip.payload + sizeof(UdpHeader);
  if (start + message.size() + sizeof(IdentifierOption) + 1 > out.size()) return Status::Malformed;
  auto boot = get<BootHeader>(message);
  const ConstBytes options = message.subspan(sizeof boot);
  IB_TRY(places, scan(options));
  const bool is_client = boot.operation == kBootRequest;
  set_hardware(boot, kInfiniband, std::nullopt);
  if (is_client) boot.flags = static_cast<std::uint16_t>(boot.flags | kBroadcastFlag);

  std::size_t at = copied(out, 0, packet.first(start));
  put(out, at, boot);
  at += sizeof boot;
  const OptionPlace place = places.identifier;
  const ConstBytes identifier = options.subspan(place.begin, place.length);
  const bool is_mac = is_same(identifier, MacIdentifierOption{61, 7, kEthernet, own.mac.bytes});
  if (is_client && (identifier.empty() || is_mac)) {
    at = copied(out, at, options.first(place.begin));
    const std::size_t behind = place.begin + place.length;
    at = copied(out, at, options.subspan(behind, places.end - behind));
    put(out, at, identifier_of(own));
    at += sizeof(IdentifierOption);
    out[at++] = kEnd;
  } else {
    at = copied(out, at, options);
  }
  if (is_client) remember(boot.transaction, is_mac);
  // Old servers want the length that the message had.
  while (at < start + message.size()) out[at++] = kPad;
  return finish(out, ip, at - start);
}

Result<std::size_t> Dhcp::to_ethernet(ConstBytes packet, const IpPacket& ip, const Identity& own,
                                      const MacAddress& sender, Bytes out) const {
  const ConstBytes message = message_of(packet, ip);
  if (message.empty() || ip.length > out.size()) return Status::Malformed;
  const std::size_t udp_length = sizeof(UdpHeader) + message.size();
  if (get<UdpHeader>(packet, ip.payload).checksum != 0 &&
      ChecksumSum()
              .add_pseudo(get<Ipv4Header>(packet), kUdp, udp_length)
              .add(packet.subspan(ip.payload, udp_length))
              .complement() != 0) {
    return Status::IoError;
  }
  auto boot = get<BootHeader>(message);
  const std::size_t start = ip.payload + sizeof(UdpHeader);
  copied(out, 0, packet.first(start + message.size()));
  const Exchange* const exchange = boot.operation == kBootReply ? find(boot.transaction) : nullptr;
  if (boot.operation == kBootRequest) {
    set_hardware(boot, kEthernet, sender);
  } else {
    // An answer to another node must look like one to the clients here.
    set_hardware(boot, kEthernet, exchange != nullptr ? own.mac : MacAddress{});
  }
  put(out, start, boot);

  const Bytes options = out.subspan(start + sizeof boot, message.size() - sizeof boot);
  IB_TRY(places, scan(options));
  const Bytes identifier = options.subspan(places.identifier.begin, places.identifier.length);
  if (exchange != nullptr && is_same(identifier, identifier_of(own))) {
    std::fill(identifier.begin(), identifier.end(), kPad);
    if (exchange->had_mac_identifier) {
      put(identifier, 0, MacIdentifierOption{61, 7, kEthernet, own.mac.bytes});
    }
  }
  return finish(out, ip, message.size());
}

const Dhcp::Exchange* Dhcp::find(std::uint32_t transaction) const {
  for (const Exchange& exchange : exchanges_) {
    if (exchange.is_used && exchange.transaction == transaction) return &exchange;
  }
  return nullptr;
}

void Dhcp::remember(std::uint32_t transaction, bool had_mac_identifier) {
  for (Exchange& exchange : exchanges_) {
    if (exchange.is_used && exchange.transaction == transaction) {
      exchange.had_mac_identifier = had_mac_identifier;
      return;
    }
  }
  exchanges_[next_] = {transaction, true, had_mac_identifier};
  next_ = (next_ + 1) % exchanges_.size();
}

}  // namespace ib::ipoib
