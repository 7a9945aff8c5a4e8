// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A host that records, and helpers for exchanges of one interface with it.
#pragma once

#include "ulp/ipoib/interface.h"
#include "ulp/ipoib/packets/test/packets_test.h"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

namespace ib::ipoib {

struct SentDatagram {
  AddressVector to;
  Qpn qpn{};
  Qkey qkey{};
  TestBytes bytes;
  Offload offload;
};
struct SentOnConnection {
  ConnectionId id{};
  TestBytes bytes;
  Offload offload;
};
struct DeliveredFrame {
  VirtioHeader header;
  TestBytes bytes;
};

// classes: allow(members) one for each call
class FakeHost : public Host {
 public:
  bool deliver(const VirtioHeader& header, std::span<const std::byte> frame) override {
    if (kernel_is_full) return false;
    frames.push_back({header, {frame.begin(), frame.end()}});
    return true;
  }
  void set_link(const LinkState& state) override { link = state; }
  bool send_datagram(const AddressVector& to, Qpn qpn, Qkey qkey,
                     const Outgoing& message) override {
    if (send_queue_is_full) return false;
    datagrams.push_back({to, qpn, qkey, joined(message), message.offload});
    last_message = message.head.data();
    return true;
  }
  bool send_on_connection(ConnectionId id, const Outgoing& message) override {
    on_connections.push_back({id, joined(message), message.offload});
    return true;
  }
  bool takes_large(const HardwareAddress&) override { return peers_take_large; }
  void query_path(RequestId id, const Gid& destination) override {
    queries.push_back({id, destination});
  }
  void join(RequestId id, const JoinRequest& request) override { joins.push_back({id, request}); }
  void leave(const Gid& mgid) override { left.push_back(mgid); }
  void attach(const Gid& mgid, Lid mlid) override {
    EXPECT_TRUE(attached.emplace(mgid, mlid).second);
  }
  void detach(const Gid& mgid, Lid mlid) override {
    const auto found = attached.find(mgid);
    ASSERT_NE(found, attached.end());
    EXPECT_EQ(found->second, mlid);
    attached.erase(found);
  }
  void connect(ConnectionId id, const ConnectRequest& request) override {
    connects.push_back({id, request});
  }
  void disconnect(ConnectionId id) override { disconnected.push_back(id); }
  void report(const Report& what) override { reports.push_back(what); }

  bool kernel_is_full = false;
  bool send_queue_is_full = false;
  bool peers_take_large = false;
  LinkState link;
  const std::byte* last_message = nullptr;
  std::vector<DeliveredFrame> frames;
  std::vector<SentDatagram> datagrams;
  std::vector<SentOnConnection> on_connections;
  std::vector<std::pair<RequestId, Gid>> queries;
  std::vector<std::pair<RequestId, JoinRequest>> joins;
  std::vector<Gid> left;
  std::map<Gid, Lid> attached;
  std::vector<std::pair<ConnectionId, ConnectRequest>> connects;
  std::vector<ConnectionId> disconnected;
  std::vector<Report> reports;
};

inline Gid test_gid(std::uint8_t number) {
  Gid gid;
  gid.bytes = {0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 2, 0xc9, 3, 0, 0, 0, number};
  return gid;
}

// An interface of node 1 with a link of 2048 bytes, and what its surroundings say to it.
struct InterfaceBench : testing::Test {
  Settings settings = default_settings();
  FakeHost host;
  std::unique_ptr<Interface> interface;
  Instant now{std::chrono::hours(1)};

  static Settings default_settings() {
    Settings settings;
    settings.port_guid = 0x0002c90300000001;
    settings.qpn = Qpn{0x48};
    return settings;
  }
  static PortState port_state() {
    PortState port;
    port.active = true;
    port.has_pkey = true;
    port.lid = Lid{1};
    port.gid = test_gid(1);
    port.mtu = 5;
    port.rate = 7;
    return port;
  }
  static GroupParameters link_parameters() {
    GroupParameters parameters;
    parameters.mlid = Lid{0xc000};
    parameters.qkey = Qkey{0x0b1b};
    parameters.mtu = 4;
    parameters.rate = 3;
    return parameters;
  }
  static HardwareAddress peer(std::uint8_t number, std::uint8_t flags = 0) {
    return {Qpn{0x100u + number}, test_gid(number), flags};
  }

  void create() { interface = std::make_unique<Interface>(settings, host); }
  // Port up, all groups that are wanted joined.
  void bring_up() {
    if (!interface) create();
    interface->on_port(port_state(), now);
    for (unsigned i = 0; i < 10; ++i) {
      answer_joins();
      pass(std::chrono::milliseconds(100));
    }
    ASSERT_TRUE(host.link.carrier);
    host.frames.clear();
  }
  void answer_joins() {
    for (const auto& [id, request] : std::exchange(host.joins, {})) {
      GroupParameters parameters = link_parameters();
      parameters.mlid = mlid_of(request.mgid);
      interface->on_join_answer(id, parameters, now);
    }
  }
  Lid mlid_of(const Gid& mgid) {
    const auto number = static_cast<std::uint16_t>(mlids.size());
    return mlids.emplace(mgid, Lid{static_cast<std::uint16_t>(0xc000 + number)}).first->second;
  }
  void answer_paths() {
    for (const auto& [id, destination] : std::exchange(host.queries, {})) {
      PathRecord path;
      path.dlid = Lid{destination.bytes[15]};
      path.mtu = 4;
      interface->on_path_answer(id, path, now);
    }
  }
  void pass(Duration time) {
    const Instant end = now + time;
    for (unsigned turns = 0; turns < 1000; ++turns) {
      const auto next = interface->next_deadline();
      if (!next || *next > end) break;
      if (*next > now) now = *next;
      interface->on_time(now);
    }
    now = end;
    interface->on_time(now);
  }

  // The neighbour says by ARP who it is; returns its MAC.
  MacAddress introduce(const HardwareAddress& address) {
    TestBytes message = from_hex("08060000 0020080014040002");
    const HardwareAddressBytes sender = to_bytes(address);
    append(message, sender);
    append(message, ipv4(address.gid.bytes[15]));
    append(message, to_bytes(interface->address()));
    append(message, ipv4(1));
    receive(address, message);
    MacAddress mac;
    EXPECT_FALSE(host.frames.empty());
    if (host.frames.empty()) return mac;
    std::memcpy(mac.bytes.data(), host.frames.back().bytes.data() + 6, 6);
    host.frames.clear();
    return mac;
  }
  // A datagram, by unicast unless there is a group.
  void receive(const HardwareAddress& from, const TestBytes& message,
               const std::optional<Gid>& group = {}, const Offload& offload = {}) {
    TestBytes buffer(40);
    buffer.insert(buffer.end(), message.begin(), message.end());
    DatagramSource source;
    source.qpn = from.qpn;
    source.slid = Lid{from.gid.bytes[15]};
    source.has_grh = true;
    source.sgid = from.gid;
    source.dgid = group ? *group : interface->address().gid;
    interface->on_datagram(source, {Bytes(buffer).subspan(40), offload}, now);
  }
  TestBytes frame_to(const MacAddress& mac, std::uint16_t type, const TestBytes& packet) {
    TestBytes frame;
    append(frame, EthernetHeader{mac.bytes, interface->mac().bytes, type});
    frame.insert(frame.end(), packet.begin(), packet.end());
    return frame;
  }
  void transmit(TestBytes frame, const Offload& offload = {}) {
    interface->on_frame({to_virtio(offload), frame}, now);
  }
  std::string own_mac() {
    const MacAddress mac = interface->mac();
    return to_hex(std::as_bytes(std::span(mac.bytes)));
  }
  std::uint64_t dropped(Drop drop) { return interface->counters().dropped(drop); }
  std::uint64_t all_dropped() {
    std::uint64_t sum = 0;
    for (const std::uint64_t count : interface->counters().drops) sum += count;
    return sum;
  }

  std::map<Gid, Lid> mlids;
};

}  // namespace ib::ipoib
