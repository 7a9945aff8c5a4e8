// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copies a packet of neighbour discovery option by option, with other link-layer addresses.
#include "ulp/ipoib/neighbour_discovery.h"

#include "ulp/ipoib/packets/checksum.h"

#include <algorithm>

namespace ib::ipoib {
namespace {

enum Type : std::uint8_t {
  kRouterSolicitation = 133,
  kRouterAdvertisement = 134,
  kNeighbourSolicitation = 135,
  kNeighbourAdvertisement = 136,
  kRedirect = 137,
};
constexpr std::uint8_t kSourceOption = 1;
constexpr std::uint8_t kTargetOption = 2;

struct EthernetOption {
  std::uint8_t type = 0;
  std::uint8_t units = 1;
  std::array<std::uint8_t, 6> address{};
};
struct InfinibandOption {
  std::uint8_t type = 0;
  std::uint8_t units = 3;
  Be16 reserved;
  HardwareAddressBytes address;
};
static_assert(sizeof(EthernetOption) == 8 && sizeof(InfinibandOption) == 24);

constexpr std::size_t kTargetAt = 8;  // of solicitations, advertisements and redirects

// Length of the part before the options, with the ICMPv6 header. 0: no neighbour discovery.
std::size_t fixed_length(std::uint8_t type) {
  switch (type) {
    case kRouterSolicitation: return 8;
    case kRouterAdvertisement: return 16;
    case kNeighbourSolicitation:
    case kNeighbourAdvertisement: return 24;
    case kRedirect: return 40;
    default: return 0;
  }
}

std::uint8_t type_of(ConstBytes packet, const IpPacket& ip) {
  return ip.length > ip.payload ? std::to_integer<std::uint8_t>(packet[ip.payload])
                                : std::uint8_t{0};
}

// `convert` gets an option of type From and returns one of type To.
template <class From, class To, class Convert>
Result<std::size_t> copy_options(ConstBytes options, Bytes out, Convert&& convert) {
  std::size_t at = 0;
  std::size_t written = 0;
  while (at < options.size()) {
    if (options.size() - at < 2) return Status::Malformed;
    const auto type = std::to_integer<std::uint8_t>(options[at]);
    const std::size_t length = std::to_integer<std::size_t>(options[at + 1]) * 8;
    if (length == 0 || length > options.size() - at) return Status::Malformed;
    const bool changes = type == kSourceOption || type == kTargetOption;
    const std::size_t new_length = changes ? sizeof(To) : length;
    if (new_length > out.size() - written) return Status::Malformed;
    if (changes) {
      if (length != sizeof(From)) return Status::Malformed;
      Result<To> option = convert(get<From>(options, at));
      if (!option) return option.error();
      put(out, written, *option);
    } else {
      std::copy_n(options.begin() + static_cast<std::ptrdiff_t>(at), length,
                  out.begin() + static_cast<std::ptrdiff_t>(written));
    }
    at += length;
    written += new_length;
  }
  return written;
}

template <class From, class To, class Convert>
Result<std::size_t> copy_packet(ConstBytes packet, const IpPacket& ip, Bytes out,
                                Convert&& convert) {
  const std::size_t fixed = fixed_length(type_of(packet, ip));
  const std::size_t options = ip.payload + fixed;
  if (fixed == 0 || options > ip.length || options > out.size()) return Status::Malformed;
  std::copy_n(packet.begin(), options, out.begin());
  IB_TRY(length, (copy_options<From, To>(packet.subspan(options, ip.length - options),
                                         out.subspan(options), convert)));
  auto header = get<Ipv6Header>(out);
  header.payload_length = static_cast<std::uint16_t>(options + length - sizeof header);
  put(out, 0, header);
  const std::size_t field = ip.payload + offsetof(IcmpHeader, checksum);
  put(out, field, Be16());
  const IpPacket whole{true, kIcmpv6, ip.payload, options + length, false};
  put(out, field, Be16(transport_checksum(out.first(whole.length), whole)));
  return whole.length;
}

// The address that is claimed together with the link-layer address of an option.
ClaimedAddress claimed_with(std::uint8_t option, ConstBytes packet, const IpPacket& ip) {
  Ipv6Address address;
  if (option == kSourceOption) {
    address.bytes = get<Ipv6Header>(packet).source;
  } else if (ip.length >= ip.payload + kTargetAt + sizeof address.bytes) {
    address.bytes = get<std::array<std::uint8_t, 16>>(packet, ip.payload + kTargetAt);
  }
  if (address.is_unspecified() || address.is_multicast()) return {};
  return address;
}

}  // namespace

bool is_neighbour_discovery(ConstBytes packet, const IpPacket& ip) {
  return ip.is_v6 && ip.protocol == kIcmpv6 && fixed_length(type_of(packet, ip)) != 0;
}

std::optional<Ipv6Address> solicited_target(ConstBytes packet, const IpPacket& ip) {
  if (!ip.is_v6 || ip.protocol != kIcmpv6 || type_of(packet, ip) != kNeighbourSolicitation ||
      ip.length < ip.payload + fixed_length(kNeighbourSolicitation)) {
    return std::nullopt;
  }
  return Ipv6Address{get<std::array<std::uint8_t, 16>>(packet, ip.payload + kTargetAt)};
}

Ipv6Address solicited_node_group(const Ipv6Address& target) {
  Ipv6Address group;
  group.bytes = {0xff, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0xff};
  std::copy(target.bytes.begin() + 13, target.bytes.end(), group.bytes.begin() + 13);
  return group;
}

Result<std::size_t> discovery_to_fabric(ConstBytes packet, const IpPacket& ip, const Identity& own,
                                        const Neighbours& neighbours, Bytes out) {
  const bool is_redirect = type_of(packet, ip) == kRedirect;
  const auto convert = [&](const EthernetOption& option) -> Result<InfinibandOption> {
    const MacAddress mac{option.address};
    if (mac == own.mac) return InfinibandOption{option.type, 3, {}, to_bytes(own.address)};
    // Only a redirect speaks of others.
    if (!is_redirect) return Status::AccessDenied;
    const Neighbour* const neighbour = neighbours.peek(mac);
    if (neighbour == nullptr) return Status::NotFound;
    return InfinibandOption{option.type, 3, {}, to_bytes(neighbour->address)};
  };
  return copy_packet<EthernetOption, InfinibandOption>(packet, ip, out, convert);
}

Result<ReceivedDiscovery> discovery_to_ethernet(ConstBytes packet, const IpPacket& ip,
                                                const Identity& own, Neighbours& neighbours,
                                                Instant now, Bytes out) {
  constexpr std::uint8_t kOnLink = 255;  // not forwarded by a router
  if (get<Ipv6Header>(packet).hop_limit != kOnLink) return Status::Malformed;
  // The new checksum would make a wrong packet a right one.
  if (transport_checksum(packet, ip) != 0) return Status::IoError;
  ReceivedDiscovery result;
  const auto convert = [&](const InfinibandOption& option) -> Result<EthernetOption> {
    const HardwareAddress address = from_bytes(option.address);
    if (address.is_same_end(own.address)) return EthernetOption{option.type, 1, own.mac.bytes};
    if (!is_valid_unicast(address)) return Status::Malformed;
    const LearntNeighbour learnt = neighbours.learn(address, claimed_with(option.type, packet, ip),
                                                    NeighbourRow::Source::NeighbourDiscovery, now);
    if (learnt.gone) result.gone = learnt.gone;
    return EthernetOption{option.type, 1, learnt.mac.bytes};
  };
  IB_TRY(length, (copy_packet<InfinibandOption, EthernetOption>(packet, ip, out, convert)));
  result.length = length;
  return result;
}

}  // namespace ib::ipoib
