// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The arrays of the graph, their hashes, and the two ends of each link.
#include "fabric/graph.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace ib::fabric {
namespace {

// IsSLMappingSupported, IsSystemImageGuidSupported, IsExtendedSpeedsSupported,
// IsClientReregistrationSupported [IBA1 14.2.5.6]: all that is true so far.
constexpr std::uint32_t kPortCapabilities = (1u << 6) | (1u << 11) | (1u << 14) | (1u << 25);
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

std::string Element::name() const {
  return description.empty() ? fmt::format("{:#018x}", node_guid) : description;
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
  if (kind == ElementKind::Switch) {
    element.forwarding = static_cast<std::uint32_t>(switches_.size());
    switches_.emplace_back().facts.enforcement_cap = verbs::limits::kMaxPkeys;
  }
  return element;
}

Port& Graph::append_port(std::uint64_t guid, verbs::LinkLayer link_layer) {
  IB_ASSERT(!elements_.empty() && ports_.size() < ports_.capacity());
  Element& element = elements_.back();
  const std::uint32_t number = element.first_number() + port_count() - element.first_port;
  Port& port = ports_.emplace_back();
  peers_.push_back(kNoIndex);
  lids_.append_port();
  segments_ = {};
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
  const bool placed = set_guid(port, guid) == Status::Ok;
  if (port.is_ethernet()) {
    port.sm_lid = 0;
  } else {
    give_free_lid(port);
  }
  IB_ASSERT(placed);
}

// There is a free one: the owner of the graph sees to it (kMaxPorts in fabric/model.h).
void Graph::give_free_lid(Port& port) {
  take_lid(port, lids_.find_free(), 0);
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

const Port* Graph::port_of(const Element& element, std::uint32_t number) const {
  const auto ports = ports_of(element);
  const std::uint32_t index = number - element.first_number();
  return index < ports.size() ? &ports[index] : nullptr;
}

Port* Graph::port_of(const Element& element, std::uint32_t number) {
  return const_cast<Port*>(static_cast<const Graph&>(*this).port_of(element, number));
}

const Port& Graph::end_port_of(const Port& port) const {
  const Element& element = element_of(port);
  return element.is_switch() ? ports_[element.first_port] : port;
}

Port& Graph::end_port_of(const Port& port) {
  return const_cast<Port&>(static_cast<const Graph&>(*this).end_port_of(port));
}

namespace {

// The first port that has a LID and is wanted. One with an LMC is in the list of its first LID
// only.
template <typename Wanted>
const Port* find_by_lid(const LidTable& lids, const std::vector<Port>& ports, unsigned most_lmc,
                        std::uint16_t lid, Wanted wanted) {
  for (unsigned lmc = 0; lmc <= most_lmc; ++lmc) {
    const auto base = static_cast<std::uint16_t>(lid & ~((1u << lmc) - 1));
    for (std::uint32_t i = lids.first(base); i != kNoIndex; i = lids.next(i)) {
      if (ports[i].has_lid(lid) && wanted(ports[i])) return &ports[i];
    }
  }
  return nullptr;
}

}  // namespace

const Port* Graph::find_port(std::uint16_t lid) const {
  return find_by_lid(lids_, ports_, most_lmc_, lid, [](const Port&) { return true; });
}

const Port* Graph::route(const Port& from, std::uint16_t lid) const {
  return find_by_lid(lids_, ports_, most_lmc_, lid,
                     [&](const Port& port) { return reaches(from, port); });
}

const Port* Graph::route(const Port& from, const verbs::Gid& gid) const {
  const Port* port = find_port(gid);
  return port != nullptr && reaches(from, *port) ? port : nullptr;
}

const Port* Graph::find_port(const verbs::Gid& gid) const {
  const auto found = port_by_gid_.find(gid);
  return found != port_by_gid_.end() ? &ports_[found->second] : nullptr;
}

Status Graph::set_lid(Port& port, std::uint16_t lid) {
  if (lid == 0 || lid > kLastUnicastLid || port.is_ethernet()) return Status::InvalidParameter;
  const std::uint32_t subnet = subnet_of(port);
  for (std::uint32_t i = lids_.first(lid); i != kNoIndex; i = lids_.next(i)) {
    const Port& other = ports_[i];
    if (&other != &port && subnet_of(other) == subnet) return Status::AlreadyExists;
  }
  take_lid(port, lid, port.lmc);
  return Status::Ok;
}

void Graph::take_lid(Port& port, std::uint16_t lid, std::uint8_t lmc) {
  const std::uint32_t index = index_of(port);
  if (port.lid != 0) lids_.remove(index, port.lid);
  if (port.lid != lid || port.lmc != lmc) mark_forwarding(element_of(port));
  port.lid = lid;
  port.lmc = lmc;
  most_lmc_ = std::max<unsigned>(most_lmc_, lmc);
  if (lid != 0) lids_.add(index, lid);
}

Status Graph::set_guid(Port& port, std::uint64_t guid) {
  GidEntry entry;
  if (!port.gids.empty()) entry = port.gids[0];
  entry.gid = verbs::make_gid(port.gid_prefix, guid);
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
  mark_forwarding(element_of(a));
  mark_forwarding(element_of(b));
  forget_segments();
  segments_.subnets.clear();
  return Status::Ok;
}

void Graph::disconnect(const Port& port) {
  std::uint32_t& peer = peers_[index_of(port)];
  if (peer == kNoIndex) return;
  mark_forwarding(element_of(port));
  mark_forwarding(element_of(ports_[peer]));
  peers_[peer] = kNoIndex;
  peer = kNoIndex;
  forget_segments();
  segments_.subnets.clear();
}

void Graph::remove_ideal_network() {
  has_ideal_network_ = false;
  segments_ = {};
}

const Port* Graph::peer_of(const Port& port) const {
  const std::uint32_t peer = peers_[index_of(port)];
  return peer != kNoIndex ? &ports_[peer] : nullptr;
}

Port* Graph::peer_of(const Port& port) {
  return const_cast<Port*>(static_cast<const Graph&>(*this).peer_of(port));
}

std::uint32_t Graph::segment_of(const Port& port) const {
  if (segments_.now.empty()) segments_.now = components(true);
  return segments_.now[index_of(port)];
}

std::uint32_t Graph::subnet_of(const Port& port) const {
  if (segments_.subnets.empty()) segments_.subnets = components(false);
  return segments_.subnets[index_of(port)];
}

std::vector<std::uint32_t> Graph::components(bool only_up) const {
  std::vector<std::uint32_t> of(ports_.size(), kNoIndex);
  for (std::uint32_t i = 0; i < of.size(); ++i) {
    if (of[i] != kNoIndex) continue;
    const bool is_ideal =
        has_ideal_network_ && peers_[i] == kNoIndex && !element_of(ports_[i]).is_switch();
    if (is_ideal) {
      of[i] = ports_[i].is_ethernet() ? kIdealEthernet : kIdealInfiniBand;
    } else {
      mark_component(of, i, only_up);
    }
  }
  return of;
}

// Its number is that of its first port. A cable to a channel adapter counts in any state.
void Graph::mark_component(std::vector<std::uint32_t>& of, std::uint32_t first,
                           bool only_up) const {
  std::vector<std::uint32_t> open{first};
  const auto reach = [&](std::uint32_t index) {
    if (of[index] != kNoIndex) return;
    of[index] = kFirstLink + first;
    open.push_back(index);
  };
  of[first] = kFirstLink + first;
  while (!open.empty()) {
    const std::uint32_t index = open.back();
    open.pop_back();
    const Element& element = element_of(ports_[index]);
    if (element.is_switch()) {
      for (const Port& port : ports_of(element)) reach(index_of(port));
    }
    const std::uint32_t peer = peers_[index];
    if (peer == kNoIndex) continue;
    const bool between_switches = element.is_switch() && element_of(ports_[peer]).is_switch();
    if (!only_up || !between_switches || ports_[index].physical_state == kLinkUp) reach(peer);
  }
}

void Graph::forget_segments() {
  if (segments_.before.empty()) segments_.before = std::move(segments_.now);
  segments_.now.clear();
}

std::vector<std::uint32_t> Graph::refresh_segments() {
  forget_segments();
  const std::vector<std::uint32_t> before = std::exchange(segments_.before, {});
  segments_.now = components(true);
  std::vector<std::uint32_t> changed;
  for (std::uint32_t i = 0; i < segments_.now.size(); ++i) {
    const bool is_other = i >= before.size() || before[i] != segments_.now[i];
    if (is_other && ports_[i].device_index != kNoIndex) changed.push_back(i);
  }
  return changed;
}

void Graph::mark_forwarding(const Element& element) {
  const std::uint32_t index = ports_[element.first_port].element;
  if (elements_[index].is_marked) return;
  elements_[index].is_marked = true;
  marks_.elements.push_back(index);
  if (marks_.elements.size() == 1 && marks_.on_first) marks_.on_first();
}

std::vector<std::uint32_t> Graph::take_forwarding_marks() {
  for (const std::uint32_t index : marks_.elements) elements_[index].is_marked = false;
  return std::exchange(marks_.elements, {});
}

std::vector<std::uint32_t> Graph::place_managers(std::uint32_t only_subnet) {
  std::unordered_map<std::uint32_t, std::uint16_t> managers;  // by subnet
  for (const Port& port : ports_) {
    if (port.is_ethernet() || element_of(port).is_switch()) continue;
    const std::uint32_t subnet = subnet_of(port);
    if (only_subnet == kNoIndex || subnet == only_subnet) managers.emplace(subnet, port.lid);
  }
  std::vector<std::uint32_t> changed;
  for (std::uint32_t i = 0; i < port_count(); ++i) {
    Port& port = ports_[i];
    const auto manager = managers.find(subnet_of(port));
    if (port.is_ethernet() || manager == managers.end() || port.sm_lid == manager->second) continue;
    port.sm_lid = manager->second;
    changed.push_back(i);
  }
  return changed;
}

}  // namespace ib::fabric
