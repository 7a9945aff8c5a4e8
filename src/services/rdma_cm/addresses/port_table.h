// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// PortTable: which id of a node has which port of a port space, and who may share one. The rules
// are those of Linux: an address and port belong to one id, unless both allow reuse; a wildcard
// stands for all addresses of its family, and of both families unless the id is "AF only".
//
// Time: a lookup looks at the owners of one port, and at the ids of a node never; an owner that
// ends costs the logarithm of their number.
#pragma once

#include "services/rdma_cm/addresses/ip_cm.h"

#include <cstdint>
#include <functional>
#include <map>
#include <tuple>
#include <vector>

namespace ib::services::rdma_cm {

// Linux treats a loopback address as a wildcard here: an id that is bound to it has no device yet
// and, if it listens, takes requests to every address of its node. libfabric relies on it.
bool takes_any_address(const EndpointAddress& address);

struct PortOwner {
  static constexpr std::uint32_t kDriver = 0xffff'ffff;  // no id: a kernel client (kernel_ports.h)
  std::uint32_t id = 0;
  EndpointAddress address;
  bool reuse = false;    // RDMA_OPTION_ID_REUSEADDR
  bool af_only = false;  // RDMA_OPTION_ID_AFONLY; IPv4 addresses always
  bool listens = false;
};

class PortTable {
 public:
  // The range of automatic ports (net.ipv4.ip_local_port_range).
  struct Range {
    std::uint16_t first = 32768;
    std::uint16_t last = 60999;
  };
  explicit PortTable(Range range, std::function<std::uint32_t()> random)
      : range_(range), random_(std::move(random)) {}

  // Enters an owner; port 0 in its address gets a free one of the range. Error::AddressInUse,
  // NoAddress: a wildcard has the port, or none is free.
  Error bind(std::uint32_t node, PortSpace space, PortOwner& owner);
  // From now on it listens, and shares its port with nobody who has the same address.
  Error listen(std::uint32_t node, PortSpace space, std::uint16_t port, std::uint32_t id);
  void set_reuse(std::uint32_t node, PortSpace space, std::uint16_t port, std::uint32_t id,
                 bool reuse);
  void release(std::uint32_t node, PortSpace space, std::uint16_t port, std::uint32_t id);

  // The listener for a request to this address: that of the address itself before a wildcard of its
  // family, and that before a wildcard of both. Returns nullptr if nobody listens.
  const PortOwner* find_listener(std::uint32_t node, PortSpace space,
                                 const EndpointAddress& address) const;
  // The listeners of a node in a port space, ordered by port; at most `most`.
  std::vector<const PortOwner*> listeners(std::uint32_t node, PortSpace space,
                                          std::size_t most) const;
  // All owners of a port, by id; empty: nobody has it.
  using Owners = std::map<std::uint32_t, PortOwner>;
  const Owners& owners(std::uint32_t node, PortSpace space, std::uint16_t port) const;
  bool is_empty() const { return owners_.empty(); }

 private:
  using Key = std::tuple<std::uint32_t, PortSpace, std::uint16_t>;
  PortOwner* find(std::uint32_t node, PortSpace space, std::uint16_t port, std::uint32_t id);
  static Error check(const Owners& owners, const PortOwner& owner, bool reuse);
  Error bind_any(std::uint32_t node, PortSpace space, PortOwner& owner);
  // Returns 0 if all ports of [first, last] are taken.
  std::uint32_t find_free(std::uint32_t node, PortSpace space, std::uint32_t first,
                          std::uint32_t last) const;

  Range range_;
  std::function<std::uint32_t()> random_;
  std::map<Key, Owners> owners_;
  std::uint16_t last_used_ = 0;
};

}  // namespace ib::services::rdma_cm
