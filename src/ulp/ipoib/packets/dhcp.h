// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// DHCP for IPv4 between its Ethernet form and that of InfiniBand [RFC 4390]: hardware type 32 with
// an empty hardware address, answers by broadcast, and a client identifier.
//
// A program on the kernel's interface is a client or server of Ethernet and sees only that. Of a
// client: its MAC address goes away, and the client identifier, if it has none or one of its MAC,
// becomes one of the port's GUID [RFC 4361]; in answers to it (by the transaction ID) both come
// back. Of a server: the client's hardware address is the MAC that stands for the sender. Messages
// between servers and relays (port 67 on both ends) stay as they are.
#pragma once

#include "base/result.h"
#include "ulp/ipoib/packets/headers.h"
#include "ulp/ipoib/packets/identity.h"

#include <array>
#include <cstddef>
#include <cstdint>

namespace ib::ipoib {

class Dhcp {
 public:
  enum class Role : std::uint8_t { None, FromClient, FromServer };
  static Role role(ConstBytes packet, const IpPacket& ip);

  // Both write the packet to `out` and return its length. Malformed: too short, or the options do
  // not fit.
  Result<std::size_t> to_fabric(ConstBytes packet, const IpPacket& ip, const Identity& own,
                                Bytes out);
  // `sender` is the MAC of the sending neighbour. IoError: the checksum is wrong.
  Result<std::size_t> to_ethernet(ConstBytes packet, const IpPacket& ip, const Identity& own,
                                  const MacAddress& sender, Bytes out) const;

 private:
  struct Exchange {
    std::uint32_t transaction = 0;
    bool is_used = false;
    bool had_mac_identifier = false;
  };
  const Exchange* find(std::uint32_t transaction) const;
  void remember(std::uint32_t transaction, bool had_mac_identifier);

  std::array<Exchange, 8> exchanges_{};  // the last ones of the kernel's clients
  std::size_t next_ = 0;
};

}  // namespace ib::ipoib
