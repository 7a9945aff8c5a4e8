// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "ulp/ipoib/test/fabric_world_test.h"

#include "ulp/ipoib/arp.h"

namespace ib::ipoib {
namespace {

using namespace std::chrono_literals;

std::uint8_t last_byte(unsigned node) {
  return static_cast<std::uint8_t>(node + 1);
}

// The bytes of a message, behind room for the headers of the receiver.
TestBytes buffer_of(const TestBytes& bytes) {
  TestBytes buffer(40);
  buffer.insert(buffer.end(), bytes.begin(), bytes.end());
  return buffer;
}

}  // namespace

FabricNode::FabricNode(FabricWorld& world, unsigned number, bool connected_mode)
    : world_(world), number_(number) {
  settings.port_guid = number + 1;
  settings.connected_mode = connected_mode;
  settings.seed = number * 77 + 5;
  settings.limits.packets_per_queue = 8;
  settings.limits.waiting_packets = 20;
  port.active = true;
  port.has_pkey = true;
  port.gid = world_gid(number);
  port.lid = Lid{static_cast<std::uint16_t>(number + 1)};
  port.rate = 7;
  restart();
}

void FabricNode::restart() {
  world_.end_connections(*this);
  attached.clear();
  ++generation_;
  settings.qpn = Qpn{0x100u * generation_ + number_ + 2};
  ++settings.seed;
  interface_ = std::make_unique<Interface>(settings, *this);
  link = {};
  arp_.clear();
  update_port();
}

void FabricNode::update_port() {
  interface_->on_port(port, world_.now());
}

void FabricNode::stop() {
  interface_->stop(world_.now());
}

bool FabricNode::deliver(const VirtioHeader& header, std::span<const std::byte> frame) {
  if (frame.size() < sizeof(EthernetHeader)) {
    world_.fail("a frame without a header");
    return true;
  }
  const auto ethernet = get<EthernetHeader>(frame);
  const MacAddress to{ethernet.destination};
  if (!to.is_group() && to != interface_->mac()) world_.fail("a frame for another MAC");
  const ConstBytes packet = frame.subspan(sizeof ethernet);
  // The kernel answers after the call.
  const TestBytes copy(packet.begin(), packet.end());
  if (ethernet.type == kTypeArp) {
    world_.later(*this, 1ms, [copy](FabricNode& node) { node.receive_arp(copy); });
  } else if (ethernet.type == kTypeIpv4) {
    receive_ip(header, packet);
  }
  return true;
}

void FabricNode::set_link(const LinkState& state) {
  link = state;
  if (state.carrier && (state.mtu != (settings.connected_mode ? kConnectedMtu : 2044u))) {
    world_.fail("a wrong MTU");
  }
}

bool FabricNode::send_datagram(const AddressVector& to, Qpn qpn, Qkey qkey,
                               const Outgoing& message) {
  const bool is_large = message.offload.segmentation != Segmentation::None;
  if (message.size() > 2048 && !is_large) world_.fail("a datagram is too long");
  if (qkey != Qkey{0x0b1b}) world_.fail("a wrong Q_Key");
  if (world_.draw(50) == 0 && world_.faults.loss_percent != 0) return false;  // queue full
  const TestBytes bytes = joined(message);
  if (qpn == kMulticastQpn) {
    world_.multicast(*this, to.dgid, to.dlid, bytes);
    return true;
  }
  FabricNode* const peer = world_.find(to.dgid);
  if (peer == nullptr || !port.active || !peer->port.active || world_.loses()) return true;
  if (peer->port.lid != to.dlid || !peer->port.has_pkey || !port.has_pkey) return true;
  const DatagramSource source{settings.qpn, port.lid, world_.draw(4) != 0, port.gid, to.dgid};
  const Offload offload = message.offload;
  world_.later(*peer, 1ms, [=](FabricNode& node) {
    if (node.settings.qpn != qpn || !node.port.active) return;
    TestBytes buffer = buffer_of(bytes);
    node.interface().on_datagram(source, {Bytes(buffer).subspan(40), offload}, node.world_.now());
  });
  return true;
}

bool FabricNode::send_on_connection(ConnectionId id, const Outgoing& message) {
  if (message.size() > kConnectionBufferBytes) world_.fail("a message is too long");
  return world_.send_on_connection(*this, id, joined(message), message.offload);
}

bool FabricNode::takes_large(const HardwareAddress&) {
  return world_.takes_large;
}

void FabricNode::query_path(RequestId id, const Gid& destination) {
  ++world_.path_queries;
  world_.answer_path(*this, id, destination);
}

void FabricNode::join(RequestId id, const JoinRequest& request) {
  world_.answer_join(*this, id, request);
}

void FabricNode::leave(const Gid& mgid) {
  if (world_.faults.administrator_is_silent || !port.active) return;
  world_.members[mgid].erase(number_);
}

void FabricNode::attach(const Gid& mgid, Lid mlid) {
  if (!attached.emplace(mgid, mlid).second) world_.fail("attached twice");
}

void FabricNode::detach(const Gid& mgid, Lid mlid) {
  const auto found = attached.find(mgid);
  if (found == attached.end() || found->second != mlid) return world_.fail("was not attached");
  attached.erase(found);
}

void FabricNode::connect(ConnectionId id, const ConnectRequest& request) {
  world_.connect(*this, id, request);
}

void FabricNode::disconnect(ConnectionId id) {
  world_.disconnect(*this, id);
}

// -- The kernel

void FabricNode::give(TestBytes frame, const Offload& offload) {
  interface_->on_frame({to_virtio(offload), frame}, world_.now());
}

void FabricNode::send_arp(std::uint16_t operation, const MacAddress& to, const MacAddress& target,
                          std::uint8_t target_ip) {
  TestBytes frame;
  append(frame, EthernetHeader{to.bytes, interface_->mac().bytes, kTypeArp});
  append(frame, EthernetArp{{std::uint16_t{1}, kTypeIpv4, 6, 4, operation},
                            interface_->mac().bytes,
                            ipv4(last_byte(number_)),
                            target.bytes,
                            ipv4(target_ip)});
  give(frame);
}

// A small copy of what Linux does: an entry is probed when it was not confirmed for some seconds,
// and goes if that has no answer.
std::optional<MacAddress> FabricNode::resolve(unsigned other) {
  const auto found = arp_.find(other);
  if (found == arp_.end()) {
    send_arp(kArpRequest, kBroadcastMac, {}, last_byte(other));
    return std::nullopt;
  }
  const Duration age = world_.now() - found->second.confirmed;
  const MacAddress mac = found->second.mac;
  if (age > 9s) {
    arp_.erase(found);
    send_arp(kArpRequest, kBroadcastMac, {}, last_byte(other));
    return std::nullopt;
  }
  if (age > 5s) send_arp(kArpRequest, mac, {}, last_byte(other));
  return mac;
}

void FabricNode::receive_arp(ConstBytes packet) {
  if (packet.size() != sizeof(EthernetArp)) return world_.fail("ARP of a wrong size");
  const auto arp = get<EthernetArp>(packet);
  const unsigned sender = arp.sender_ip[3] - 1u;
  const MacAddress mac{arp.sender};
  const bool is_for_me = arp.target_ip == ipv4(last_byte(number_));
  const bool is_reply = arp.header.operation == kArpReply;
  if (arp_.contains(sender) || is_for_me) {
    Entry& entry = arp_[sender];
    // A request shows an address, only a reply confirms that it is reached.
    if (entry.mac != mac || is_reply) entry = {mac, world_.now()};
  }
  if (!is_reply && is_for_me) send_arp(kArpReply, mac, mac, last_byte(sender));
}

void FabricNode::receive_ip(const VirtioHeader& header, ConstBytes packet) {
  const auto ip = parse_ipv4(packet);
  if (!ip || ip->length != packet.size()) return world_.fail("not an IP packet");
  if (ip->protocol == kIgmp || ip->protocol == kIcmp) return;
  const auto fields = get<Ipv4Header>(packet);
  if (fields.destination[0] == 10 && fields.destination != ipv4(last_byte(number_))) {
    return world_.fail("a packet for another node");
  }
  if (header.flags == 0 && !has_right_checksums(kTypeIpv4, packet)) {
    return world_.fail("a wrong checksum");
  }
  if (ip->protocol == kTcp) large_bytes += static_cast<unsigned>(ip->length);
  if (ip->protocol == kUdp && fields.destination[0] == 10) ++pings[fields.source[3] - 1u];
}

void FabricNode::ping(unsigned other, std::size_t payload) {
  const auto mac = resolve(other);
  if (!mac) return;
  const bool is_partial = world_.draw(2) == 0;
  const std::uint16_t fragment = world_.draw(2) == 0 ? kDontFragment : std::uint16_t{0};
  const Flow flow{false, kUdp, last_byte(number_), last_byte(other), fragment};
  TestBytes frame;
  append(frame, EthernetHeader{mac->bytes, interface_->mac().bytes, kTypeIpv4});
  const TestBytes packet = make_packet(flow, payload, is_partial);
  frame.insert(frame.end(), packet.begin(), packet.end());
  give(frame, is_partial ? offload_of(flow, 0) : Offload{});
}

void FabricNode::send_large(unsigned other, std::size_t payload) {
  const auto mac = resolve(other);
  if (!mac || !link.carrier) return;
  const Flow flow{false, kTcp, last_byte(number_), last_byte(other)};
  TestBytes frame;
  append(frame, EthernetHeader{mac->bytes, interface_->mac().bytes, kTypeIpv4});
  const TestBytes packet = make_packet(flow, payload, true);
  frame.insert(frame.end(), packet.begin(), packet.end());
  give(frame, offload_of(flow, static_cast<std::uint16_t>(link.mtu - 40)));
}

void FabricNode::send_to_group(std::uint8_t group) {
  TestBytes packet = make_packet({false, kUdp, last_byte(number_)}, 20, false);
  const std::array<std::uint8_t, 4> to = {239, 0, 0, group};
  auto header = get<Ipv4Header>(packet);
  header.destination = to;
  header.checksum = 0;
  header.checksum = static_cast<std::uint16_t>(~plain_sum(std::as_bytes(std::span(&header, 1))));
  put(Bytes(packet), 0, header);
  put(Bytes(packet), 26, Be16());
  const IpPacket ip = *parse_ipv4(packet);
  put(Bytes(packet), 26,
      Be16(static_cast<std::uint16_t>(
          ~plain_sum(ConstBytes(packet).subspan(20), plain_pseudo_sum(packet, ip)))));
  TestBytes frame;
  append(frame, EthernetHeader{{0x01, 0, 0x5e, 0, 0, group}, interface_->mac().bytes, kTypeIpv4});
  frame.insert(frame.end(), packet.begin(), packet.end());
  give(frame);
}

void FabricNode::set_member(std::uint8_t group, bool is_member) {
  TestBytes frame;
  append(frame, EthernetHeader{{0x01, 0, 0x5e, 0, 0, group}, interface_->mac().bytes, kTypeIpv4});
  const TestBytes packet = from_hex("46c0 0020 0000 4000 01 02 0000 0a000001 e0000016 94040000" +
                                    std::string(is_member ? "16" : "17") + "000000ef0000");
  frame.insert(frame.end(), packet.begin(), packet.end());
  frame.push_back(std::byte{group});
  give(frame);
}

// -- The world

FabricWorld::FabricWorld(std::uint64_t seed) : random_(seed) {}

void FabricWorld::add_node(bool connected_mode) {
  nodes_.push_back(
      std::make_unique<FabricNode>(*this, static_cast<unsigned>(nodes_.size()), connected_mode));
}

FabricNode* FabricWorld::find(const Gid& gid) {
  for (const auto& node : nodes_) {
    if (node->port.gid == gid) return node.get();
  }
  return nullptr;
}

void FabricWorld::fail(const std::string& what) {
  if (fault.empty()) fault = what;
}

void FabricWorld::later(FabricNode& node, Duration most, std::function<void(FabricNode&)> what) {
  events_.emplace(now_ + random_.up_to(most), Event{&node, node.generation(), std::move(what)});
}

void FabricWorld::pass(Duration time) {
  const Instant end = now_ + time;
  unsigned turns_at_once = 0;
  while (fault.empty()) {
    Instant next = end;
    for (const auto& node : nodes_) {
      const auto deadline = node->interface().next_deadline();
      if (deadline && *deadline < next) next = *deadline;
    }
    if (!events_.empty() && events_.begin()->first < next) next = events_.begin()->first;
    if (next >= end) break;
    turns_at_once = next > now_ ? 0 : turns_at_once + 1;
    if (turns_at_once > 10'000) return fail("the clock stands still");
    if (next > now_) now_ = next;
    while (!events_.empty() && events_.begin()->first <= now_) {
      const Event event = std::move(events_.begin()->second);
      events_.erase(events_.begin());
      if (event.node->generation() == event.generation) event.what(*event.node);
    }
    for (const auto& node : nodes_) {
      const auto deadline = node->interface().next_deadline();
      if (deadline && *deadline <= now_) node->interface().on_time(now_);
    }
  }
  now_ = end;
}

void FabricWorld::restart_administrator() {
  members.clear();
  mlids_.clear();
  next_mlid_ = static_cast<std::uint16_t>(0xc000 + draw(100));
  for (const auto& node : nodes_) {
    if (!node->port.active) continue;
    node->interface().on_port_event(PortEvent::SubnetManagerChanged, now_);
    node->interface().on_port_event(PortEvent::ClientReregister, now_);
  }
}

void FabricWorld::answer_path(FabricNode& node, RequestId id, const Gid& destination) {
  if (faults.administrator_is_silent || loses()) return;
  later(node, 20ms, [=, this](FabricNode& asking) {
    const FabricNode* const peer = find(destination);
    Result<PathRecord> answer = Status::NotFound;
    if (peer != nullptr && peer->port.active && asking.port.active) {
      answer = PathRecord{peer->port.lid, 0, 3, 4};
    }
    asking.interface().on_path_answer(id, answer, now_);
  });
}

void FabricWorld::answer_join(FabricNode& node, RequestId id, const JoinRequest& request) {
  if (faults.administrator_is_silent || loses()) return;
  later(node, 20ms, [=, this](FabricNode& asking) {
    const bool exists = mlids_.contains(request.mgid);
    if (!asking.port.active) return;
    if (!asking.port.has_pkey) {
      return asking.interface().on_join_answer(id, Status::AccessDenied, now_);
    }
    if (!exists && !request.create) {
      return asking.interface().on_join_answer(id, Status::NotFound, now_);
    }
    if (!exists) mlids_.emplace(request.mgid, Lid{next_mlid_++});
    members[request.mgid][asking.number()] = request.membership;
    GroupParameters parameters;
    parameters.mlid = mlids_[request.mgid];
    parameters.qkey = Qkey{0x0b1b};
    parameters.mtu = 4;
    parameters.rate = 3;
    asking.interface().on_join_answer(id, parameters, now_);
  });
}

void FabricWorld::multicast(FabricNode& from, const Gid& mgid, Lid mlid, const TestBytes& bytes) {
  if (!from.port.active) return;
  const DatagramSource source{from.settings.qpn, from.port.lid, true, from.port.gid, mgid};
  for (const auto& node : nodes_) {
    const auto at = node->attached.find(mgid);
    if (at == node->attached.end() || at->second != mlid || !node->port.active) continue;
    if (!members[mgid].contains(node->number()) || loses()) continue;
    later(*node, 1ms, [=, this](FabricNode& receiver) {
      TestBytes buffer = buffer_of(bytes);
      receiver.interface().on_datagram(source, {Bytes(buffer).subspan(40), {}}, now_);
    });
  }
}

void FabricWorld::connect(FabricNode& from, ConnectionId id, const ConnectRequest& request) {
  const End active = end_of(from, id);
  const auto refuse = [&](Status status) {
    later(from, 2s,
          [=, this](FabricNode& node) { node.interface().on_connection_lost(id, status, now_); });
  };
  FabricNode* const peer = find(request.peer.gid);
  if (peer == nullptr || loses()) return refuse(Status::Timeout);
  if (faults.refuses_connections ||
      request.service_id != (kServiceId | static_cast<std::uint32_t>(peer->settings.qpn))) {
    return refuse(Status::Disconnected);
  }
  connections_[active] = {};  // under way
  const ConnectionData data = request.data;
  const Gid gid = from.port.gid;
  later(*peer, 50ms, [=, this, &from](FabricNode& passive) {
    if (!connections_.contains(active)) return;  // given up
    const auto accepted =
        passive.interface().on_connect_request({gid, std::as_bytes(std::span(&data, 1))}, now_);
    if (!accepted) {
      connections_.erase(active);
      return from.interface().on_connection_lost(id, Status::Disconnected, now_);
    }
    const End end = end_of(passive, accepted->id);
    connections_[active] = end;
    connections_[end] = active;
    const ConnectionData reply = accepted->data;
    later(from, 50ms, [=, this](FabricNode& node) {
      if (!connections_.contains(active)) return;
      node.interface().on_connected(id, std::as_bytes(std::span(&reply, 1)), now_);
    });
  });
}

bool FabricWorld::send_on_connection(FabricNode& from, ConnectionId id, const TestBytes& bytes,
                                     const Offload& offload) {
  const auto found = connections_.find(end_of(from, id));
  const bool is_alive = found != connections_.end() && found->second.generation != 0 &&
                        from.port.active && nodes_[found->second.node]->port.active;
  if (!is_alive) {
    // Retries have run out.
    later(from, 1s, [=, this](FabricNode& node) {
      connections_.erase(end_of(node, id));
      node.interface().on_connection_lost(id, Status::Timeout, now_);
    });
    return true;
  }
  const ConnectionId far{found->second.id};
  later(*nodes_[found->second.node], 1ms, [=, this](FabricNode& node) {
    TestBytes buffer = buffer_of(bytes);
    node.interface().on_connection_message(far, {Bytes(buffer).subspan(40), offload}, now_);
  });
  return true;
}

void FabricWorld::disconnect(FabricNode& from, ConnectionId id) {
  const auto found = connections_.find(end_of(from, id));
  if (found == connections_.end()) return;
  const End far = found->second;
  connections_.erase(found);
  if (far.generation == 0 || connections_.erase(far) == 0) return;
  later(*nodes_[far.node], 10ms, [=, this](FabricNode& node) {
    node.interface().on_connection_lost(ConnectionId{far.id}, Status::Disconnected, now_);
  });
}

// The node's process is gone: its peers find out with the next message, or never.
void FabricWorld::end_connections(FabricNode& node) {
  for (auto it = connections_.begin(); it != connections_.end();) {
    const bool concerns = it->first.node == node.number() || it->second.node == node.number();
    it = concerns && it->second.generation != 0 ? connections_.erase(it) : std::next(it);
  }
}

std::size_t FabricWorld::connections_of(const FabricNode& node) const {
  std::size_t count = 0;
  for (const auto& [end, far] : connections_) {
    if (end.node == node.number() && end.generation == node.generation()) ++count;
  }
  return count;
}

}  // namespace ib::ipoib
