// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// IpInterfaces: the network interfaces of IP over InfiniBand that nodes have while their networks
// live (docs/design/0034), with their addresses, as the drivers of the nodes report them.
//
// Two nodes may have the same address, and so may two interfaces of a node: nothing but partitions
// and cables keeps networks apart.
#pragma once

#include "base/result.h"
#include "fabric/graph.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace ib::fabric {

struct IpInterface {
  struct Address {
    verbs::Gid ip{};
    std::uint32_t bits = 0;  // of the network; of an IPv4 address 0 to 32
  };
  static constexpr std::size_t kHardwareAddress = 20;

  std::string name;         // "ib0.8001"
  std::uint32_t index = 0;  // the scope of link-local addresses, as programs of the node give it
  std::uint64_t owner = 0;  // the session that has reported it
  const Port* port = nullptr;
  std::uint16_t pkey = 0;  // with the bit of full membership, if the port has that
  bool connected_mode = false;
  std::array<std::uint8_t, kHardwareAddress> hardware_address{};  // flags, QPN, GID [RFC 4391 9.1]
  std::vector<Address> addresses;

  bool has(const verbs::Gid& ip) const;
};

class IpInterfaces {
 public:
  static constexpr std::size_t kMostOfNode = 512;

  // Takes the place of the one of that name. LimitExceeded: the node has too many.
  Status set(std::uint32_t node, IpInterface interface);
  // Of that owner; another one's stays.
  void remove(std::uint32_t node, std::string_view name, std::uint64_t owner);
  void remove_all_of(std::uint64_t owner);

  std::span<const IpInterface> of(std::uint32_t node) const;
  const IpInterface* find(std::uint32_t node, std::string_view name) const;

  struct Holder {
    std::uint32_t node;
    const IpInterface* interface;
  };
  // All that have the address, by nodes. They are good until the next change.
  std::vector<Holder> with_address(const verbs::Gid& ip) const;

 private:
  void enter(std::uint32_t node, const IpInterface& interface);
  void withdraw(std::uint32_t node, const IpInterface& interface);

  std::unordered_map<std::uint32_t, std::vector<IpInterface>> by_node_;
  // A node is there once for each of its interfaces that has the address.
  std::unordered_multimap<verbs::Gid, std::uint32_t, GidHash> nodes_by_address_;
};

}  // namespace ib::fabric
