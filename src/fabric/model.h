// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The fabric of a softibd: virtual hosts (nodes), their HCAs and addresses, over the graph of
// elements, ports and links.
//
// Plain data with one owner (softibd's dispatch level): an array of nodes, one of HCAs and those of
// the graph, which name each other by index and stand still for as long as the fabric lives.
// Lookups by name, index, LID, GUID and GID take the same time in a fabric of any size. Until a
// subnet manager exists every port comes up Active, an InfiniBand port with a LID of its own; GUIDs
// and addresses follow from the position, so a fabric of the same shape has the same ones on every
// start.
#pragma once

#include "base/result.h"
#include "base/sanitizer.h"
#include "fabric/addresses.h"
#include "fabric/addressing/ip_interfaces.h"
#include "fabric/graph.h"
#include "fabric/hca.h"
#include "fabric/topology/topology.h"
#include "verbs/gid.h"
#include "verbs/types.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace ib::fabric {

// An IP address of a node.
struct Address {
  verbs::Gid ip{};
  std::string interface;   // the network interface that has it; empty: none does
  std::uint32_t port = 0;  // which of the node's Ethernet ports, in order, has it as a GID
  bool operator==(const Address&) const = default;
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
  std::uint64_t address_namespace = 0;  // of AddressSource::Interfaces: the number of its inode
};

// The Ethernet ports of a node in order: Address::port is a place in this list.
std::vector<Port*> ethernet_ports(const Node& node);

// The link layer of the ports of an HCA, where it is not that of all.
struct HcaLinkLayer {
  std::string node;  // empty: of each node
  std::uint32_t hca = 0;
  verbs::LinkLayer link_layer = verbs::LinkLayer::InfiniBand;
};

// Exponents of PacketLifeTime, 4.096 us * 2^n: the longest that a packet may be under way from port
// to port [IBA1 15.2.5.16]. A packet is there in less time than any timer counts; the default,
// 0.27 s, leaves room for a receiver that has to wait for a processor.
inline constexpr std::uint8_t kDefaultPacketLifeTime = 16;
inline constexpr std::uint8_t kMaxPacketLifeTime = 30;  // there and back is an ACK timeout still

// Room for switches that come while the fabric is in use. AddressSanitizer marks all of it for each
// fabric.
inline constexpr std::uint32_t kMaxAddedSwitches = 1024;
inline constexpr std::uint32_t kMaxAddedSwitchPorts =
    IB_ADDRESS_SANITIZER != 0 ? 1u << 12 : 1u << 16;

// The one that gives ports their LIDs and switches their tables, and makes ports Active.
enum class SubnetManagement : std::uint8_t {
  Softib,   // softib, in subnets that no other subnet manager works in
  Programs  // nobody but subnet managers that run as programs: ports come up in state Init
};

struct Shape {
  std::vector<std::string> nodes{"node0"};
  std::uint32_t hcas_per_node = 1;
  std::uint32_t ports_per_hca = 1;
  verbs::LinkLayer link_layer = verbs::LinkLayer::InfiniBand;
  std::vector<HcaLinkLayer> link_layers{};  // the last that fits an HCA counts
  std::uint8_t packet_life_time = kDefaultPacketLifeTime;
  AddressBlock addresses{};
  // With elements: the HCAs are its channel adapters, of the nodes that node_names() says, whose
  // names are in `nodes`; the three numbers above do not matter then.
  Topology topology{};
  SubnetManagement management = SubnetManagement::Softib;
};
inline constexpr std::uint32_t kMaxHcasPerNode = 16;
inline constexpr std::uint32_t kMaxPortsPerHca = 2;
inline constexpr std::uint32_t kMaxPorts = kLastUnicastLid;  // each has a LID
inline constexpr std::uint32_t kMaxNodes = 32768;  // without a topology; with one, kMaxPorts

// classes: allow(methods) the steps that build it from a shape or a topology are private methods
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
  // A switch that comes while the fabric is in use, without a cable. LimitExceeded: no room, or no
  // LID for it; AlreadyExists: an element has its GUID.
  Result<Element*> add_switch(const TopologyElement& what);
  std::uint32_t hca_count() const { return static_cast<std::uint32_t>(hcas_.size()); }
  const Graph& graph() const { return graph_; }
  Graph& graph() { return graph_; }

  // Of all paths between its ports.
  std::uint8_t packet_life_time() const { return packet_life_time_; }

  // Returns the node; the first one for an empty name, nullptr if there is none of that name.
  const Node* find_node(std::string_view name) const;
  Node* find_node(std::string_view name);
  const Node& node_of(const Hca& hca) const { return nodes_[hca.node]; }
  Hca* find_hca(std::uint32_t index);
  const Hca* find_hca(std::uint32_t index) const;
  const Hca* find_hca_by_guid(const Node& node, std::uint64_t guid) const;
  // Returns the HCA that a port belongs to; nullptr if the port is a switch's.
  const Hca* hca_of(const Port& port) const { return find_hca(graph_.element_of(port).hca); }
  Hca* hca_of(const Port& port) { return find_hca(graph_.element_of(port).hca); }
  // Returns the port with this index in the port table of device memory, or nullptr if there is
  // none.
  const Port* device_port(std::uint32_t index) const;
  std::uint32_t device_port_count() const {
    return static_cast<std::uint32_t>(device_ports_.size());
  }
  const Node* find_node_by_address(const verbs::Gid& ip) const;
  // Of IP over InfiniBand; their addresses are not those of Node::addresses.
  const IpInterfaces& ip_interfaces() const { return ip_interfaces_; }
  IpInterfaces& ip_interfaces() { return ip_interfaces_; }

  // Whether softib manages the subnet of a port, as long as no other subnet manager does: some port
  // there has IsSM in its capability mask [IBA1 14.2.5.6].
  bool is_managed_here(const Port& port) const;
  SubnetManagement management() const { return managers_.management; }
  // The ports with IsSM, in the graph.
  std::span<const std::uint32_t> manager_ports() const { return managers_.ports; }
  // Replaces the capability mask of a port.
  void set_capabilities(Port& port, std::uint32_t mask);

  // The listener hears of changes: of a port's state, LID, GIDs, P_Keys or capabilities, and of an
  // HCA that came, went, fell asleep or woke. It does not change the fabric in the call.
  using OnChange = std::function<void(const Hca& hca)>;
  void set_on_change(OnChange on_change) { on_change_ = std::move(on_change); }
  void report_change(const Hca& hca) const {
    if (on_change_) on_change_(hca);
  }

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

  explicit Fabric(const Shape& shape);
  verbs::LinkLayer link_layer_of(const Node& node, std::uint32_t hca) const;
  Status build(const Shape& shape);
  Status build_topology(const Topology& topology, const std::vector<std::string>& nodes);
  void append_node(const std::string& name);
  Element& append_switch(const TopologyElement& from);
  bool has_lids(std::size_t ports) const;  // free ones, for so many more end ports
  // `from`: the element of the topology that it is. Without one GUIDs follow from the position.
  Hca& append_hca(Node& node, const TopologyElement* from = nullptr);
  Status check_address(const Node& node, std::span<const Address> before,
                       const Address& address) const;
  void give_addresses(Node& node, const Hca& hca);
  void drop_addresses(const Node& node, std::uint32_t ordinal, Port& port);
  void place_addresses(const Node& node, std::uint32_t ordinal, Port& port);

  std::vector<Node> nodes_;
  std::vector<Hca> hcas_;  // by index; never grows beyond what was reserved
  Graph graph_;
  std::unordered_map<std::string, std::uint32_t, NameHash, std::equal_to<>> node_by_name_;
  std::unordered_map<verbs::Gid, std::uint32_t, GidHash> node_by_address_;
  std::vector<std::uint32_t> device_ports_;  // by index in device memory: index in the graph
  // Subnet managers: which may be there, and the ports with IsSM.
  struct {
    SubnetManagement management = SubnetManagement::Softib;
    std::vector<std::uint32_t> ports{};
  } managers_;
  // Of an HCA that comes.
  struct {
    std::uint32_t ports = 1;
    verbs::LinkLayer link_layer = verbs::LinkLayer::InfiniBand;
    std::vector<HcaLinkLayer> link_layers{};
  } new_hca_;
  std::uint8_t packet_life_time_ = kDefaultPacketLifeTime;
  AddressBlock address_block_;
  IpInterfaces ip_interfaces_;
  OnChange on_change_;
};

}  // namespace ib::fabric
