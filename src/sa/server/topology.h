// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Topology: the subnet as the subnet administrator reads it. Its owner implements it over the
// fabric, or over the tables of a subnet manager, and reports changes to the server (server.h).
#pragma once

#include "sa/records/node_record.h"
#include "verbs/types.h"

#include <cstdint>
#include <optional>
#include <span>

namespace ib::sa {

// A port that can be addressed: a channel adapter's, or port 0 of a switch. Spans are valid until
// the topology changes.
struct EndPort {
  std::uint32_t index = 0;           // in the topology; stays the port's
  std::span<const verbs::Gid> gids;  // at least one, of which the first has the port's GUID
  std::uint16_t lid = 0;
  std::uint8_t lmc = 0;  // it has 2^lmc LIDs
  std::span<const std::uint16_t> pkeys;
  std::uint8_t mtu = 0;   // verbs::Mtu
  std::uint8_t rate = 0;  // sa/records/selector.h
};

// The parameters of packets from one port to another.
struct Route {
  std::uint8_t sl = 0;
  std::uint8_t mtu = 0;   // the smallest of the links'
  std::uint8_t rate = 0;  // the slowest of the links'
  std::uint8_t life = 0;  // PacketLifeTime
  bool reversible = true;
};

class Topology {
 public:
  virtual ~Topology() = default;

  // Ports have the indexes below this number.
  virtual std::uint32_t port_count() const = 0;
  // Returns nothing for a port that is not in service: down, without a LID, not of this subnet.
  virtual std::optional<EndPort> port(std::uint32_t index) const = 0;
  virtual std::optional<EndPort> find_lid(std::uint16_t lid) const = 0;
  virtual std::optional<EndPort> find_gid(const verbs::Gid& gid) const = 0;
  // Returns nothing if packets do not get there.
  virtual std::optional<Route> route(const EndPort& from, const EndPort& to) const = 0;

  // Of a port in service.
  virtual NodeRecord node_record(const EndPort& port) const = 0;
  virtual PortInfoRecord port_info_record(const EndPort& port) const = 0;

  // The port of the subnet manager, which issues notices; nothing: it is not in service.
  virtual std::optional<EndPort> manager_port() const = 0;
};

}  // namespace ib::sa
