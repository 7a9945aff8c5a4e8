// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Graph: the elements of a fabric (channel adapters and switches), their ports, and the links that
// join two ports [IBA1 3.5].
//
// Plain arrays that name each other by index and never move what is in them; lookups by LID, GID
// and GUID take the same time in a graph of any size. A link is the business of both its ports: a
// port has one or none. A channel adapter's port without one is on the *ideal network*, which joins
// all such ports of a link layer.
//
// Thread rule: one owner (softibd's dispatch level).
#pragma once

#include "base/result.h"
#include "fabric/port.h"
#include "verbs/gid.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace ib::fabric {

inline constexpr std::uint32_t kNoIndex = 0xffffffffu;

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
  std::uint64_t node_guid = 0;   // [IBA1 4.1.2]
  std::uint32_t first_port = 0;  // index of port 1; of a switch: of port 0
  std::uint32_t port_count = 0;  // without port 0 of a switch
  std::uint32_t hca = kNoIndex;  // index of its HCA; a switch has none
  bool is_switch() const { return kind == ElementKind::Switch; }
  // Of its first port: 0 for a switch, whose port 0 manages it [IBA1 18.2.4.1].
  std::uint32_t first_number() const { return is_switch() ? 0 : 1; }
};

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

  std::uint32_t port_count() const { return static_cast<std::uint32_t>(ports_.size()); }
  std::uint32_t index_of(const Port& port) const;  // of a port of this graph
  // Returns nullptr if the graph has fewer ports.
  const Port* port(std::uint32_t index) const {
    return index < ports_.size() ? &ports_[index] : nullptr;
  }
  const Element* find_element(std::uint64_t node_guid) const;
  const Element& element_of(const Port& port) const { return elements_[port.element]; }
  // All ports of an element, in the order of their numbers.
  std::span<const Port> ports_of(const Element& element) const;
  std::span<Port> ports_of(const Element& element);

  // --- addresses ---

  // Returns the port that has it; nullptr if none has.
  const Port* find_port(std::uint16_t lid) const;
  const Port* find_port(const verbs::Gid& gid) const;
  // Gives a port another LID: a unicast one (InvalidParameter) that no other port has
  // (AlreadyExists).
  Status set_lid(Port& port, std::uint16_t lid);
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
  // Returns the port at the other end of its link; nullptr if it has no link.
  const Port* peer_of(const Port& port) const;
  Port* peer_of(const Port& port);
  // Ports of channel adapters reach each other without a switch if they are of the same segment:
  // the ideal network of a link layer, or the two ends of a link.
  std::uint32_t segment_of(const Port& port) const;
  // The subnet manager of each segment is at its first port of a channel adapter. To be called when
  // links have changed.
  void place_managers();

 private:
  void place(Port& port, std::uint64_t guid);

  std::vector<Element> elements_;     // never grows beyond what was reserved
  std::vector<Port> ports_;           // the same; those of an element in a row
  std::vector<std::uint32_t> peers_;  // by port: the index of the other end, or kNoIndex
  std::unordered_map<std::uint64_t, std::uint32_t> element_by_guid_;
  std::unordered_map<verbs::Gid, std::uint32_t, GidHash> port_by_gid_;
  std::vector<std::uint32_t> port_by_lid_;  // 1 + index; 0: none; up to the highest in use
  std::uint16_t next_lid_ = 1;              // where to look for a free one
};

}  // namespace ib::fabric
