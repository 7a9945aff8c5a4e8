// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Graph: the elements of a fabric (channel adapters and switches), their ports, and the links that
// join two ports [IBA1 3.5].
//
// Plain arrays that name each other by index and never move what is in them; lookups by LID, GID
// and GUID take the same time in a graph of any size. A link is the business of both its ports: a
// port has one or none. A channel adapter's port without one is on the *ideal network*, which joins
// all such ports of a link layer; in a graph without an ideal network it reaches nobody. Ports that
// cables join, over any number of switches, are a *subnet*; LIDs are unique in a subnet if its
// manager sees to it, and nothing here relies on that.
//
// Thread rule: one owner (softibd's dispatch level).
#pragma once

#include "base/result.h"
#include "fabric/lid_table.h"
#include "fabric/port.h"
#include "fabric/port_tables.h"
#include "fabric/switch.h"
#include "verbs/gid.h"
#include "verbs/limits.h"

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

// The capability mask of a port [IBA1 14.2.5.6] until a client changes it.
std::uint32_t default_capabilities(verbs::LinkLayer link_layer);

struct GidHash {
  std::size_t operator()(const verbs::Gid& gid) const {
    return std::hash<std::string_view>{}({reinterpret_cast<const char*>(gid.data()), gid.size()});
  }
};

enum class ElementKind : std::uint8_t { ChannelAdapter, Switch };

struct Element {
  ElementKind kind = ElementKind::ChannelAdapter;
  std::uint64_t node_guid = 0;          // [IBA1 4.1.2]
  std::uint32_t first_port = 0;         // index of port 1; of a switch: of port 0
  std::uint32_t port_count = 0;         // without port 0 of a switch
  std::uint32_t hca = kNoIndex;         // index of its HCA; a switch has none
  std::uint32_t forwarding = kNoIndex;  // of a switch: index of its tables
  std::string description;              // NodeDescription [IBA1 14.2.5.2]
  std::uint64_t system_image_guid = 0;  // 0: the node GUID
  std::uint32_t vendor_id = verbs::limits::kVendorId;
  std::uint32_t device_id = verbs::limits::kVendorPartId;
  bool led_is_on = false;  // to find it among others [IBA1 14.2.5.15]
  bool has_power = true;   // of a switch: without it the other ends of its cables are silent
  bool is_gone = false;    // a switch that was taken out of the fabric; its place stays
  bool is_marked = false;  // Graph::mark_forwarding()
  bool is_switch() const { return kind == ElementKind::Switch; }
  // For people: the description, or the GUID where there is none.
  std::string name() const;
  // Of its first port: 0 for a switch, whose port 0 manages it [IBA1 18.2.4.1].
  std::uint32_t first_number() const { return is_switch() ? 0 : 1; }
};

// classes: allow(methods) elements, ports, addresses and links, most read-only and not
class Graph {
 public:
  // The most that it can hold, so that nothing ever moves. Unused room costs address space only.
  Graph(std::size_t elements, std::size_t ports);

  // --- elements and their ports ---

  // A new element; its ports come by append_port(), before another element does.
  Element& append_element(ElementKind kind, std::uint64_t node_guid);
  // The next port of the last element. An end port (of a channel adapter; port 0 of a switch) has a
  // GUID and a GID of its own, and on InfiniBand the next free LID. The other ports of a switch
  // have none [IBA1 4.1.2, 4.1.3] and are down until they are linked.
  Port& append_port(std::uint64_t guid, verbs::LinkLayer link_layer);

  // Whether one more element with so many ports fits.
  bool has_room(std::size_t ports) const {
    return elements_.size() < elements_.capacity() && ports <= ports_.capacity() - ports_.size();
  }

  std::uint32_t port_count() const { return static_cast<std::uint32_t>(ports_.size()); }
  std::uint32_t index_of(const Port& port) const;  // of a port of this graph
  // Returns nullptr if the graph has fewer ports.
  const Port* port(std::uint32_t index) const {
    return index < ports_.size() ? &ports_[index] : nullptr;
  }
  Port* port(std::uint32_t index) { return index < ports_.size() ? &ports_[index] : nullptr; }
  const Element* find_element(std::uint64_t node_guid) const;
  std::uint32_t element_count() const { return static_cast<std::uint32_t>(elements_.size()); }
  const Element& element(std::uint32_t index) const { return elements_[index]; }
  const Element& element_of(const Port& port) const { return elements_[port.element]; }
  Element& element_of(const Port& port) { return elements_[port.element]; }
  // Returns nullptr if it has no port of this number.
  const Port* port_of(const Element& element, std::uint32_t number) const;
  Port* port_of(const Element& element, std::uint32_t number);
  // The port whose addresses packets have that come by this one: port 0 of a switch, else itself.
  const Port& end_port_of(const Port& port) const;
  Port& end_port_of(const Port& port);
  std::uint32_t switch_count() const { return static_cast<std::uint32_t>(switches_.size()); }
  // The tables of a switch.
  const Switch& switch_of(const Element& element) const { return switches_[element.forwarding]; }
  Switch& switch_of(const Element& element) { return switches_[element.forwarding]; }
  // All ports of an element, in the order of their numbers.
  std::span<const Port> ports_of(const Element& element) const;
  std::span<Port> ports_of(const Element& element);

  const PortTables& tables() const { return tables_; }
  PortTables& tables() { return tables_; }

  // --- addresses ---

  // Returns the port that has it; nullptr if none has. A LID may be that of a port in each subnet:
  // then the first one, for words only.
  const Port* find_port(std::uint16_t lid) const;
  const Port* find_port(const verbs::Gid& gid) const;
  // Returns the port to which packets go that port `from` sends to an address; nullptr if no port
  // has it, or no way leads there.
  const Port* route(const Port& from, std::uint16_t lid) const;
  const Port* route(const Port& from, const verbs::Gid& gid) const;
  bool reaches(const Port& from, const Port& to) const {
    return segment_of(from) == segment_of(to);
  }
  // Gives a port another LID: a unicast one (InvalidParameter) that no other port of its subnet has
  // (AlreadyExists).
  Status set_lid(Port& port, std::uint16_t lid);
  // The same for a subnet manager, which may have to give a LID before another port gives it up.
  // 0 takes it away.
  void take_lid(Port& port, std::uint16_t lid, std::uint8_t lmc);
  // One that no port of the graph has. There is one as long as there are no more end ports than
  // unicast LIDs.
  void give_free_lid(Port& port);
  // Gives it another GUID, and with it another GID 0; AlreadyExists: another port has it.
  Status set_guid(Port& port, std::uint64_t guid);
  // Changes an entry of its GID table; a zero GID frees it. AlreadyExists: another entry has it.
  Status set_gid(Port& port, std::size_t index, GidEntry entry);

  // --- links ---

  // Joins two ports. Returns AlreadyExists if one of them has a link; InvalidParameter if they are
  // the same port, or of different link layers, or one is port 0 of a switch, which is inside of
  // it.
  Status connect(Port& a, Port& b);
  void disconnect(const Port& port);  // has no effect on a port without a link
  // From now on a port of a channel adapter needs a cable.
  void remove_ideal_network();
  bool has_ideal_network() const { return has_ideal_network_; }
  // Returns the port at the other end of its link; nullptr if it has no link.
  const Port* peer_of(const Port& port) const;
  Port* peer_of(const Port& port);
  // Ports reach each other if they are of the same segment: the ideal network of a link layer, or
  // what is joined by cables that are up (an end port's own state does not matter).
  std::uint32_t segment_of(const Port& port) const;
  // The same by all cables, up or not: the ports that one manager has.
  std::uint32_t subnet_of(const Port& port) const;
  // The state of a cable between switches has changed. Returns the end ports that are of another
  // segment now.
  std::vector<std::uint32_t> refresh_segments();
  // An element sends packets on otherwise than before: a table, a key, the state of a port has
  // changed. The owner of cached ways takes these marks.
  void mark_forwarding(const Element& element);
  std::vector<std::uint32_t> take_forwarding_marks();  // indexes of elements, each once
  // Hears of the first mark after they were taken, in the middle of a change.
  void set_on_marked(std::function<void()> on_marked) { marks_.on_first = std::move(on_marked); }
  // The subnet manager of each subnet, or of one, is at its first port of a channel adapter. To be
  // called when links have changed. Returns the ports that have another one than before.
  std::vector<std::uint32_t> place_managers(std::uint32_t only_subnet = kNoIndex);

 private:
  void place(Port& port, std::uint64_t guid);
  // By port: the component of the graph that it is in.
  std::vector<std::uint32_t> components(bool only_up) const;
  void forget_segments();
  void mark_component(std::vector<std::uint32_t>& of, std::uint32_t first, bool only_up) const;

  std::vector<Element> elements_;     // never grows beyond what was reserved
  std::vector<Port> ports_;           // the same; those of an element in a row
  std::vector<std::uint32_t> peers_;  // by port: the index of the other end, or kNoIndex
  std::unordered_map<std::uint64_t, std::uint32_t> element_by_guid_;
  std::unordered_map<verbs::Gid, std::uint32_t, GidHash> port_by_gid_;
  std::vector<Switch> switches_;
  PortTables tables_;
  LidTable lids_;
  unsigned most_lmc_ = 0;  // of all ports, ever
  bool has_ideal_network_ = true;
  // By port, while links stay as they are. Empty: not known.
  struct Segments {
    std::vector<std::uint32_t> now;
    std::vector<std::uint32_t> before;   // that refresh_segments() has to tell from these
    std::vector<std::uint32_t> subnets;  // the same by all cables
  };
  mutable Segments segments_;
  struct {
    std::vector<std::uint32_t> elements{};
    std::function<void()> on_first{};
  } marks_;
};

}  // namespace ib::fabric
