// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The fabric of a softibd: virtual hosts (nodes), their HCAs, ports and link parameters.
//
// Plain data with one owner (softibd's dispatch level): an array of nodes, one of HCAs and one of
// ports, which name each other by index and stand still for as long as the fabric lives. Lookups by
// name, index, LID, GUID and GID take the same time in a fabric of any size. Until a subnet manager
// exists every port comes up Active, an InfiniBand port with a LID of its own; GUIDs and addresses
// follow from the position, so a fabric of the same shape has the same ones on every start.
#pragma once

#include "base/result.h"
#include "verbs/gid.h"
#include "verbs/types.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace ib::fabric {

// Default GID prefix [IBA1 4.1.1], which is also that of link-local IPv6 addresses.
inline constexpr std::uint64_t kSubnetPrefix = 0xfe80000000000000ull;
inline constexpr std::uint16_t kLastUnicastLid = 0xbfff;  // [IBA1 4.1.3]

// An extra P_Key of a port, with a child device of this name.
struct Partition {
  std::uint16_t pkey = 0;
  std::string name;
};

// An IP address of a node.
struct Address {
  verbs::Gid ip{};
  std::string interface;   // the network interface that has it; empty: none does
  std::uint32_t port = 0;  // which of the node's Ethernet ports, in order, has it as a GID
  bool operator==(const Address&) const = default;
};

struct GidEntry {
  verbs::Gid gid{};  // zero: the entry is free
  verbs::GidType type = verbs::GidType::InfiniBand;
  std::string interface;  // network interface; empty: none
  bool operator==(const GidEntry&) const = default;
};

// The capability mask of a port [IBA1 14.2.5.6] until somebody changes it.
std::uint32_t default_capabilities(verbs::LinkLayer link_layer);
inline constexpr std::uint8_t kLinkUp = 5;  // physical state [IBA1 14.2.5.6]

// A port of any element: nothing in it is an HCA's alone.
struct Port {
  std::uint32_t element = 0;  // index of the HCA that it is a port of
  std::uint32_t number = 1;   // 1-based, as in verbs
  verbs::LinkLayer link_layer = verbs::LinkLayer::InfiniBand;
  std::uint64_t guid = 0;    // changes by Fabric::set_guid
  std::uint16_t lid = 0;     // changes by Fabric::set_lid; an Ethernet port has none
  std::uint16_t sm_lid = 1;  // 0 for an Ethernet port
  verbs::PortState state = verbs::PortState::Active;
  std::uint8_t physical_state = kLinkUp;  // 3 Disabled, 2 Polling
  std::uint8_t width = 2;                 // 4X
  std::uint8_t speed = 32;                // EDR, 25 Gb/s a lane
  // P_Key table; 0: no entry. Entries keep their place, since queue pairs name them by index.
  std::vector<std::uint16_t> pkeys{0xffff};
  std::uint32_t capability_mask = 0;
  std::vector<Partition> partitions;  // those that have a device of their own
  // GID table, no longer than verbs::limits::kGidTableLength. Entries keep their place, since
  // address vectors name them by index. Entry 0 is of InfiniBand: subnet prefix and port GUID; of
  // Ethernet: the link-local address of the port, after which come the addresses of its node.
  std::vector<GidEntry> gids;
  verbs::Gid gid() const { return gids.empty() ? verbs::Gid{} : gids[0].gid; }
  bool is_ethernet() const { return link_layer == verbs::LinkLayer::Ethernet; }
};

struct Hca {
  std::string name;              // softib0; unique per node
  std::uint32_t index = 0;       // in the whole fabric
  std::uint32_t node = 0;        // index of its node
  std::uint32_t first_port = 0;  // index of port 1 in the fabric's port table
  std::uint64_t node_guid = 0;
  std::span<Port> ports;  // a piece of the fabric's array
  bool present = true;    // false: taken out; its place stays
  bool asleep = false;
};

// The HCAs of a node, in the order in which they came. Others point to them: none moves, none goes.
class HcaList {
 public:
  template <class T>
  class Iterator {
   public:
    using iterator_category = std::forward_iterator_tag;
    using value_type = Hca;
    using difference_type = std::ptrdiff_t;
    using pointer = T*;
    using reference = T&;

    Iterator() = default;
    explicit Iterator(Hca* const* at) : at_(at) {}
    T& operator*() const { return **at_; }
    T* operator->() const { return *at_; }
    Iterator& operator++() {
      ++at_;
      return *this;
    }
    Iterator operator++(int) { return Iterator(at_++); }
    bool operator==(const Iterator&) const = default;

   private:
    Hca* const* at_ = nullptr;
  };

  std::size_t size() const { return hcas_.size(); }
  Hca& operator[](std::size_t i) { return *hcas_[i]; }
  const Hca& operator[](std::size_t i) const { return *hcas_[i]; }
  Iterator<Hca> begin() { return Iterator<Hca>(hcas_.data()); }
  Iterator<Hca> end() { return Iterator<Hca>(hcas_.data() + hcas_.size()); }
  Iterator<const Hca> begin() const { return Iterator<const Hca>(hcas_.data()); }
  Iterator<const Hca> end() const { return Iterator<const Hca>(hcas_.data() + hcas_.size()); }

 private:
  friend class Fabric;
  std::vector<Hca*> hcas_;
};

// Where the addresses of a node come from.
enum class AddressSource : std::uint8_t {
  Default,     // its place in the fabric
  Configured,  // the user, who wants these and no others
  Interfaces,  // the interfaces of the network namespace in which its programs run
};

struct Node {
  std::string name;
  HcaList hcas;
  std::vector<Address> addresses;  // change by Fabric::set_addresses
  AddressSource address_source = AddressSource::Default;
};

// The Ethernet ports of a node in order: Address::port is a place in this list.
std::vector<Port*> ethernet_ports(const Node& node);

// The link layer of the ports of an HCA, where it is not that of all.
struct HcaLink {
  std::string node;  // empty: of each node
  std::uint32_t hca = 0;
  verbs::LinkLayer link_layer = verbs::LinkLayer::InfiniBand;
};

struct Shape {
  std::vector<std::string> nodes{"node0"};
  std::uint32_t hcas_per_node = 1;
  std::uint32_t ports_per_hca = 1;
  verbs::LinkLayer link_layer = verbs::LinkLayer::InfiniBand;
  std::vector<HcaLink> links{};  // the last that fits an HCA counts
};
inline constexpr std::uint32_t kMaxNodes = 32768;
inline constexpr std::uint32_t kMaxHcasPerNode = 16;
inline constexpr std::uint32_t kMaxPortsPerHca = 2;
inline constexpr std::uint32_t kMaxPorts = kLastUnicastLid;  // each has a LID

class Fabric {
 public:
  // Returns LimitExceeded or InvalidParameter if the shape is empty, too big or names a node twice.
  static Result<Fabric> create(const Shape& shape);
  Fabric(Fabric&&) = default;
  Fabric& operator=(Fabric&&) = default;
  Fabric(const Fabric&) = delete;
  Fabric& operator=(const Fabric&) = delete;
  ~Fabric() = default;

  const std::vector<Node>& nodes() const { return nodes_; }
  std::vector<Node>& nodes() { return nodes_; }
  // One more HCA of a node, as the others are, not present yet. Returns LimitExceeded if it has as
  // many as it can have, or the fabric has no LIDs for its ports.
  Result<Hca*> add_hca(Node& node);
  std::uint32_t hca_count() const { return static_cast<std::uint32_t>(hcas_.size()); }
  std::uint32_t port_count() const { return static_cast<std::uint32_t>(ports_.size()); }

  // Returns the node; the first one for an empty name, nullptr if there is none of that name.
  const Node* find_node(std::string_view name) const;
  Node* find_node(std::string_view name);
  const Node& node_of(const Hca& hca) const { return nodes_[hca.node]; }
  Hca* find_hca(std::uint32_t index);
  const Hca* find_hca(std::uint32_t index) const;
  const Hca* find_hca_by_guid(const Node& node, std::uint64_t guid) const;
  // The port that has it, whether its HCA is present or not; nullptr: none has.
  const Port* find_port(std::uint16_t lid) const;
  const Port* find_port(const verbs::Gid& gid) const;
  const Node* find_node_by_address(const verbs::Gid& ip) const;

  std::uint32_t index_of(const Port& port) const;  // of a port of this fabric
  const Port* port(std::uint32_t index) const {    // nullptr: there are not so many
    return index < ports_.size() ? &ports_[index] : nullptr;
  }

  // The listener hears of changes: of a port's state, LID, GIDs, P_Keys or capabilities, and of an
  // HCA that came, went, fell asleep or woke. It does not change the fabric in the call.
  using OnChange = std::function<void(const Hca& hca)>;
  void set_on_change(OnChange on_change) { on_change_ = std::move(on_change); }
  void report_change(const Hca& hca) const {
    if (on_change_) on_change_(hca);
  }

  // Gives a port of this fabric another LID: a unicast one (InvalidParameter) that no other port
  // has (AlreadyExists).
  Status set_lid(Port& port, std::uint16_t lid);
  // Gives it another GUID, and with it another GID 0; AlreadyExists: another port has it.
  Status set_guid(Port& port, std::uint64_t guid);
  // Gives a node other addresses, and with them the GIDs of its Ethernet ports: what is not in the
  // list is gone, what stays keeps its place in the GID table. AlreadyExists: another node has one
  // of them, or it is in the list twice; LimitExceeded: more than a GID table holds;
  // InvalidParameter: no address of a host, or of a port that the node has not. An error changes
  // nothing.
  Status set_addresses(Node& node, std::vector<Address> addresses,
                       AddressSource source = AddressSource::Configured);
  // Those that a node has until it is given others: of the node, and of each further Ethernet port.
  std::vector<Address> default_addresses(const Node& node) const;
  // Those of `wanted` that set_addresses() would take, in their order.
  std::vector<Address> available_addresses(const Node& node,
                                           const std::vector<Address>& wanted) const;

 private:
  struct NameHash {
    using is_transparent = void;
    std::size_t operator()(std::string_view name) const {
      return std::hash<std::string_view>{}(name);
    }
  };

  struct GidHash {
    std::size_t operator()(const verbs::Gid& gid) const {
      return std::hash<std::string_view>{}({reinterpret_cast<const char*>(gid.data()), gid.size()});
    }
  };

  Fabric() = default;
  void reserve(const Shape& shape);
  verbs::LinkLayer link_layer_of(const Node& node, std::uint32_t hca) const;
  Hca& append_hca(Node& node);
  void append_port(const Hca& hca, std::uint32_t number, std::uint64_t guid,
                   verbs::LinkLayer link_layer);
  Status check_address(const Node& node, std::span<const Address> before,
                       const Address& address) const;
  void give_addresses(Node& node, const Hca& hca);
  void drop_addresses(const Node& node, std::uint32_t ordinal, Port& port);
  void place_addresses(const Node& node, std::uint32_t ordinal, Port& port);
  Status set_gid(Port& port, std::size_t index, GidEntry entry);
  const Port* port_at(std::uint32_t number) const;  // 1 + index; 0: none

  std::vector<Node> nodes_;
  std::vector<Hca> hcas_;    // by index; never grows beyond what was reserved
  std::vector<Port> ports_;  // by index; the same
  std::unordered_map<std::string, std::uint32_t, NameHash, std::equal_to<>> node_by_name_;
  std::unordered_map<std::uint64_t, std::uint32_t> hca_by_guid_;
  std::unordered_map<verbs::Gid, std::uint32_t, GidHash> port_by_gid_;
  std::unordered_map<verbs::Gid, std::uint32_t, GidHash> node_by_address_;
  std::vector<std::uint16_t> port_by_lid_;  // 1 + index; 0: none
  std::uint16_t next_lid_ = 1;              // where to look for a free one
  std::uint32_t ports_per_hca_ = 1;
  verbs::LinkLayer link_layer_ = verbs::LinkLayer::InfiniBand;
  std::vector<HcaLink> links_;
  OnChange on_change_;
};

}  // namespace ib::fabric
