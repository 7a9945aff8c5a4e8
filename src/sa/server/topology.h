// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Topology: the subnet as the subnet administrator reads it. Its owner implements it over the
// fabric, or over the tables of a subnet manager, and reports changes to the server (server.h).
#pragma once

#include "mad/agent.h"
#include "sa/records/subnet_records.h"
#include "verbs/types.h"

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace ib::sa {

// A port that can be addressed: a channel adapter's, or port 0 of a switch. Spans are valid until
// the topology changes.
struct EndPort {
  std::uint32_t index = 0;           // in the topology; stays the port's
  std::span<const verbs::Gid> gids;  // at least one, of which the first has the port's GUID
  std::uint16_t lid = 0;
  std::uint8_t lmc = 0;  // it has 2^lmc LIDs
  std::span<const std::uint16_t> pkeys;
  std::uint8_t mtu = 0;     // verbs::Mtu
  std::uint8_t rate = 0;    // sa/records/selector.h
  std::uint8_t number = 1;  // in its node; 0: of a switch, whose other ports it stands for
  std::uint8_t others = 0;  // how many these are

  bool is_switch() const { return number == 0; }
  bool has_lid(std::uint16_t wanted) const { return wanted >= lid && wanted - lid < 1 << lmc; }
};

// A port of a node, of a switch also one that has no addresses.
struct NodePort {
  EndPort end;  // through which it is addressed: itself, or port 0 of its switch
  std::uint8_t number = 0;
  std::span<const std::uint16_t> pkeys;  // empty: it lets all pass
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
  // Of packets from a LID of one port to a LID of another. Returns nothing if they do not get
  // there.
  virtual std::optional<Route> route(const EndPort& from, std::uint16_t slid, const EndPort& to,
                                     std::uint16_t dlid) const = 0;

  // A port of the node of `end`, in service or not; nothing: the node has none of this number, or
  // it is another one that can be addressed.
  virtual std::optional<NodePort> node_port(const EndPort& end, std::uint8_t number) const = 0;
  // The port at the other end of its link; nothing: no link that is up, or to no port in service.
  virtual std::optional<NodePort> peer(const NodePort& port) const = 0;
  // An attribute of subnet management, as the agent of the port's node gives it to an SMP that
  // comes by this port [IBA1 14.2.5]; nothing: the agent has none of this modifier.
  virtual std::optional<mad::SmpData> attribute(const NodePort& port, std::uint16_t attribute,
                                                std::uint32_t modifier) const = 0;

  // The port of the subnet manager, which issues notices; nothing: it is not in service.
  virtual std::optional<EndPort> manager_port() const = 0;
  // The subnet managers of the subnet.
  virtual std::vector<SmInfoRecord> managers() const = 0;
};

}  // namespace ib::sa
