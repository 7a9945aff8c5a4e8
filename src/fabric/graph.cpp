// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The arrays of the graph, their hashes, and the two ends of each link.
#include "fabric/graph.h"

#include <algorithm>

namespace ib::fabric {
namespace {

// IsSystemImageGuidSupported, IsExtendedSpeedsSupported [IBA1 14.2.5.6]: all that is true so far.
constexpr std::uint32_t kPortCapabilities = (1u << 11) | (1u << 14);
// As Linux shows for RoCE: communication manager, GIDs from IP addresses.
constexpr std::uint32_t kEthernetCapabilities = (1u << 16) | (1u << 26);

// Segments: of the two ideal networks, then of the links.
constexpr std::uint32_t kIdealInfiniBand = 0;
constexpr std::uint32_t kIdealEthernet = 1;
constexpr std::uint32_t kFirstLink = 2;

}  // namespace

std::uint32_t default_capabilities(verbs::LinkLayer link_layer) {
  return link_layer == verbs::LinkLayer::Ethernet ? kEthernetCapabilities : kPortCapabilities;
}

Graph::Graph(std::size_t elements, std::size_t ports) {
  elements_.reserve(elements);
  ports_.reserve(ports);
}

Element& Graph::append_element(ElementKind kind, std::uint64_t node_guid) {
  IB_ASSERT(elements_.size() < elements_.capacity());
  const auto index = static_cast<std::uint32_t>(elements_.size());
  const bool is_new = element_by_guid_.emplace(node_guid, index).second;
  IB_ASSERT(is_new);
  Element& element = elements_.emplace_back();
  element.kind = kind;
  element.node_guid = node_guid;
  element.first_port = port_count();
  return element;
}

Port& Graph::append_port(std::uint64_t guid, verbs::LinkLayer link_layer) {
  IB_ASSERT(!elements_.empty() && ports_.size() < ports_.capacity());
  Element& element = elements_.back();
  const std::uint32_t number = element.first_number() + port_count() - element.first_port;
  Port& port = ports_.emplace_back();
  peers_.push_back(kNoIndex);
  port.element = static_cast<std::uint32_t>(elements_.size() - 1);
  port.number = number;
  port.link_layer = link_layer;
  port.capability_mask = default_capabilities(link_layer);
  element.port_count = number;
  if (!element.is_switch() || number == 0) {
    place(port, guid);
  } else {
    port.guid = guid;
    port.state = verbs::PortState::Down;
    port.physical_state = kPolling;
  }
  return port;
}

// Gives a new end port its addresses.
void Graph::place(Port& port, std::uint64_t guid) {
  bool placed = set_guid(port, guid) == Status::Ok;
  if (port.is_ethernet()) {
    port.sm_lid = 0;
  } else {
    // There is a free one: the owner of the graph sees to it (kMaxPorts in fabric/model.h).
    while (find_port(next_lid_) != nullptr)
      next_lid_ = static_cast<std::uint16_t>(next_lid_ % kLastUnicastLid + 1);
    placed = placed && set_lid(port, next_lid_) == Status::Ok;
  }
  IB_ASSERT(placed);
}

std::uint32_t Graph::index_of(const Port& port) const {
  const auto index = static_cast<std::size_t>(&port - ports_.data());
  IB_ASSERT(index < ports_.size());
  return static_cast<std::uint32_t>(index);
}

const Element* Graph::find_element(std::uint64_t node_guid) const {
  const auto found = element_by_guid_.find(node_guid);
  return found != element_by_guid_.end() ? &elements_[found->second] : nullptr;
}

std::span<const Port> Graph::ports_of(const Element& element) const {
  const std::size_t count = element.port_count + 1 - element.first_number();
  return std::span(ports_).subspan(element.first_port, count);
}

std::span<Port> Graph::ports_of(const Element& element) {
  const std::size_t count = element.port_count + 1 - element.first_number();
  return std::span(ports_).subspan(element.first_port, count);
}

const Port* Graph::find_port(std::uint16_t lid) const {
  const std::uint32_t number = lid < port_by_lid_.size() ? port_by_lid_[lid] : 0;
  return number != 0 ? &ports_[number - 1] : nullptr;
}

const Port* Graph::find_port(const verbs::Gid& gid) const {
  const auto found = port_by_gid_.find(gid);
  return found != port_by_gid_.end() ? &ports_[found->second] : nullptr;
}

Status Graph::set_lid(Port& port, std::uint16_t lid) {
  if (lid == 0 || lid > kLastUnicastLid || port.is_ethernet()) return Status::InvalidParameter;
  if (port_by_lid_.size() <= lid) port_by_lid_.resize(std::size_t{lid} + 1);
  const std::uint32_t number = index_of(port) + 1;
  if (port_by_lid_[lid] == number) return Status::Ok;
  if (port_by_lid_[lid] != 0) return Status::AlreadyExists;
  port_by_lid_[port.lid] = 0;  // entry 0 stays what it is: no port has LID 0
  port_by_lid_[lid] = number;
  port.lid = lid;
  return Status::Ok;
}

Status Graph::set_guid(Port& port, std::uint64_t guid) {
  GidEntry entry;
  if (!port.gids.empty()) entry = port.gids[0];
  entry.gid = verbs::make_gid(kSubnetPrefix, guid);
  entry.type = port.is_ethernet() ? verbs::GidType::RoceV2 : verbs::GidType::InfiniBand;
  const Status done = set_gid(port, 0, std::move(entry));
  if (done == Status::Ok) port.guid = guid;
  return done;
}

Status Graph::set_gid(Port& port, std::size_t index, GidEntry entry) {
  if (port.gids.size() <= index) port.gids.resize(index + 1);
  GidEntry& now = port.gids[index];
  if (now.gid != entry.gid) {
    if (!verbs::is_zero(entry.gid) && !port_by_gid_.emplace(entry.gid, index_of(port)).second) {
      return Status::AlreadyExists;
    }
    if (!verbs::is_zero(now.gid)) port_by_gid_.erase(now.gid);
  }
  now = std::move(entry);
  return Status::Ok;
}

Status Graph::connect(Port& a, Port& b) {
  const std::uint32_t one = index_of(a);
  const std::uint32_t other = index_of(b);
  if (one == other || a.link_layer != b.link_layer || a.number == 0 || b.number == 0) {
    return Status::InvalidParameter;
  }
  if (peers_[one] != kNoIndex || peers_[other] != kNoIndex) return Status::AlreadyExists;
  peers_[one] = other;
  peers_[other] = one;
  return Status::Ok;
}

void Graph::disconnect(const Port& port) {
  std::uint32_t& peer = peers_[index_of(port)];
  if (peer == kNoIndex) return;
  peers_[peer] = kNoIndex;
  peer = kNoIndex;
}

const Port* Graph::peer_of(const Port& port) const {
  const std::uint32_t peer = peers_[index_of(port)];
  return peer != kNoIndex ? &ports_[peer] : nullptr;
}

Port* Graph::peer_of(const Port& port) {
  return const_cast<Port*>(static_cast<const Graph&>(*this).peer_of(port));
}

std::uint32_t Graph::segment_of(const Port& port) const {
  const std::uint32_t index = index_of(port);
  const std::uint32_t peer = peers_[index];
  if (peer != kNoIndex) return kFirstLink + std::min(index, peer);
  return port.is_ethernet() ? kIdealEthernet : kIdealInfiniBand;
}

void Graph::place_managers() {
  std::uint16_t unlinked = 0;
  for (std::size_t i = 0; i < ports_.size(); ++i) {
    Port& port = ports_[i];
    if (port.is_ethernet() || elements_[port.element].is_switch()) continue;
    if (peers_[i] == kNoIndex) {
      if (unlinked == 0) unlinked = port.lid;
      port.sm_lid = unlinked;
    } else {
      const Port& peer = ports_[peers_[i]];
      const bool is_first = i < peers_[i] || elements_[peer.element].is_switch();
      port.sm_lid = is_first ? port.lid : peer.lid;
    }
  }
}

}  // namespace ib::fabric
