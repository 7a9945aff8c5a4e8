// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The fabric of a softibd: virtual hosts (nodes), their HCAs, ports and link parameters.
//
// Plain data with one owner (softibd's dispatch level). Until a subnet manager exists every port
// comes up Active with a LID of its own; GUIDs follow from the position, so a fabric of the same
// shape has the same GUIDs on every start.
#pragma once

#include "base/result.h"
#include "verbs/types.h"

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

namespace ib::fabric {

inline constexpr std::uint64_t kSubnetPrefix =
    0xfe80000000000000ull;  // [IBA1 4.1.1] default GID prefix

// An extra P_Key of a port, with a child device of this name.
struct Partition {
  std::uint16_t pkey = 0;
  std::string name;
};

struct Port {
  std::uint32_t number = 1;  // 1-based, as in verbs
  std::uint64_t guid = 0;
  std::uint16_t lid = 0;
  std::uint16_t sm_lid = 1;
  verbs::PortState state = verbs::PortState::Active;
  std::uint8_t physical_state = 5;  // 5 LinkUp, 3 Disabled, 2 Polling [IBA1 14.2.5.6]
  std::uint8_t width = 2;           // 4X
  std::uint8_t speed = 32;          // EDR, 25 Gb/s a lane
  // P_Key table; 0: no entry. Entries keep their place, since queue pairs name them by index.
  std::vector<std::uint16_t> pkeys{0xffff};
  std::uint32_t capability_mask = 0;
  std::vector<Partition> partitions;  // those that have a device of their own
  verbs::Gid gid() const;             // subnet prefix + port GUID
};

struct Hca {
  std::string name;              // softib0; unique per node
  std::uint32_t index = 0;       // in the whole fabric
  std::uint32_t first_port = 0;  // index of port 1 in the fabric's port table
  std::uint64_t node_guid = 0;
  std::vector<Port> ports;
  bool present = true;  // false: taken out; its place stays
  bool asleep = false;
};

struct Node {
  std::string name;
  std::deque<Hca> hcas;  // others point to them: none moves, none goes
};

struct Shape {
  std::vector<std::string> nodes{"node0"};
  std::uint32_t hcas_per_node = 1;
  std::uint32_t ports_per_hca = 1;
};
inline constexpr std::uint32_t kMaxNodes = 256;
inline constexpr std::uint32_t kMaxHcasPerNode = 16;
inline constexpr std::uint32_t kMaxPortsPerHca = 2;

class Fabric {
 public:
  // Returns LimitExceeded or InvalidParameter if the shape is empty, too big or names a node twice.
  static Result<Fabric> create(const Shape& shape);

  const std::vector<Node>& nodes() const { return nodes_; }
  std::vector<Node>& nodes() { return nodes_; }
  // One more HCA of a node, as the others are, not present yet. Returns LimitExceeded if it has as
  // many as it can have.
  Result<Hca*> add_hca(Node& node);
  std::uint32_t hca_count() const { return hca_count_; }
  // Returns the node; the first one for an empty name, nullptr if there is none of that name.
  const Node* find_node(std::string_view name) const;
  Hca* find_hca(std::uint32_t index);
  const Hca* find_hca(std::uint32_t index) const;
  const Hca* find_hca_by_guid(const Node& node, std::uint64_t guid) const;
  std::uint32_t port_count() const { return port_count_; }

 private:
  Hca& append_hca(Node& node, std::uint32_t ports);

  std::vector<Node> nodes_;
  std::uint32_t port_count_ = 0;
  std::uint32_t hca_count_ = 0;
  std::uint32_t ports_per_hca_ = 1;
};

}  // namespace ib::fabric
