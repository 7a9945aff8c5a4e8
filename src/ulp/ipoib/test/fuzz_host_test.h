// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A host for the fuzzers: checks what an interface says, and answers at once or never.
#pragma once

#include "base/assert.h"
#include "base/fuzz_input.h"
#include "ulp/ipoib/interface.h"
#include "ulp/ipoib/packets/headers.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <vector>

namespace ib::ipoib {

inline Gid fuzz_gid(std::uint8_t number) {
  Gid gid;
  gid.bytes = {0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 2, 0xc9, 3, 0, 0, 0, number};
  return gid;
}

class FuzzHost : public Host {
 public:
  bool deliver(const VirtioHeader& header, std::span<const std::byte> frame) override {
    IB_ASSERT(frame.size() >= sizeof(EthernetHeader));
    touch(frame);
    if (header.flags == VirtioHeader::kNeedsChecksum) {
      IB_ASSERT(std::size_t{header.checksum_start} + header.checksum_offset + 2 <= frame.size());
    }
    return true;
  }
  void set_link(const LinkState&) override {}
  bool send_datagram(const AddressVector& to, Qpn, Qkey, const Outgoing& message) override {
    IB_ASSERT(to.dlid != Lid{});
    if (message.offload.segmentation == Segmentation::None) IB_ASSERT(message.size() <= 2048);
    touch(message.head);
    touch(message.body);
    return true;
  }
  bool send_on_connection(ConnectionId, const Outgoing& message) override {
    IB_ASSERT(message.size() <= kConnectionBufferBytes);
    touch(message.head);
    touch(message.body);
    return true;
  }
  bool takes_large(const HardwareAddress&) override { return peers_take_large; }
  void query_path(RequestId id, const Gid&) override { queries.push_back(id); }
  void join(RequestId id, const JoinRequest&) override { joins.push_back(id); }
  void leave(const Gid&) override {}
  void attach(const Gid& mgid, Lid) override { IB_ASSERT(attached.insert(mgid).second); }
  void detach(const Gid& mgid, Lid) override { IB_ASSERT(attached.erase(mgid) == 1); }
  void connect(ConnectionId id, const ConnectRequest&) override { connects.push_back(id); }
  void disconnect(ConnectionId) override {}

  bool peers_take_large = false;
  std::vector<RequestId> queries;
  std::vector<RequestId> joins;
  std::vector<ConnectionId> connects;
  std::set<Gid> attached;

 private:
  // A span that points out of its buffer shows.
  void touch(std::span<const std::byte> bytes) {
    for (const std::byte byte : bytes) sum_ = sum_ * 31 + std::to_integer<std::uint64_t>(byte);
  }
  volatile std::uint64_t sum_ = 0;
};

// An interface whose surroundings work, and its driver.
struct FuzzBench {
  explicit FuzzBench(FuzzInput& input) : host(), interface(settings_of(input), host) {
    host.peers_take_large = (input.byte() & 1) != 0;
    PortState port;
    port.active = port.has_pkey = true;
    port.lid = Lid{1};
    port.gid = fuzz_gid(1);
    interface.on_port(port, now);
    answer();
  }

  static Settings settings_of(FuzzInput& input) {
    Settings settings;
    settings.qpn = Qpn{0x48};
    settings.connected_mode = (input.byte() & 1) != 0;
    settings.limits.neighbours = 4;
    settings.limits.paths = 4;
    settings.limits.groups = 6;
    settings.limits.connections = 2;
    settings.limits.packets_per_queue = 3;
    settings.limits.waiting_packets = 8;
    return settings;
  }

  void answer() {
    for (const RequestId id : std::exchange(host.joins, {})) {
      GroupParameters parameters;
      parameters.mlid = Lid{0xc000};
      parameters.qkey = Qkey{0x0b1b};
      parameters.mtu = 4;
      parameters.rate = 3;
      interface.on_join_answer(id, parameters, now);
    }
    for (const RequestId id : std::exchange(host.queries, {})) {
      interface.on_path_answer(id, PathRecord{Lid{2}, 0, 3, 4}, now);
    }
    for (const ConnectionId id : std::exchange(host.connects, {})) {
      const ConnectionData data{0x102u, kConnectionBufferBytes};
      interface.on_connected(id, std::as_bytes(std::span(&data, 1)), now);
    }
  }
  void pass(Duration time) {
    now += time;
    // Each timer is for later than now: the clock does not stand still.
    for (unsigned turns = 0; turns < 100; ++turns) {
      const auto next = interface.next_deadline();
      if (!next || *next > now) return;
      interface.on_time(now);
      answer();
    }
    IB_ASSERT(false);
  }
  // From here on a neighbour with this number is in the table; returns its MAC.
  void introduce(std::uint8_t number, std::uint8_t flags) {
    std::vector<std::byte> buffer(kHeadroom + sizeof(Encapsulation) + 56);
    const Bytes message = Bytes(buffer).subspan(kHeadroom);
    put(message, 0, Encapsulation{kTypeArp, std::uint16_t{0}});
    put(message, 4, ArpHeader{std::uint16_t{32}, kTypeIpv4, 20, 4, std::uint16_t{2}});
    put(message, 12, to_bytes({Qpn{0x100u + number}, fuzz_gid(number), flags}));
    put(message, 32, std::array<std::uint8_t, 4>{10, 0, 0, number});
    put(message, 36, to_bytes(interface.address()));
    interface.on_datagram({Qpn{0x100u + number}, Lid{number}, true, fuzz_gid(number), fuzz_gid(1)},
                          {message, {}}, now);
  }
  MacAddress mac_of_neighbour() {
    const Snapshot snapshot = interface.snapshot(now);
    return snapshot.neighbours.empty() ? kBroadcastMac : snapshot.neighbours.front().mac;
  }
  void end() {
    interface.stop(now);
    IB_ASSERT(host.attached.empty());
    const Snapshot snapshot = interface.snapshot(now);
    IB_ASSERT(snapshot.paths.empty() && snapshot.connections.empty());
  }

  FuzzHost host;
  Interface interface;
  Instant now{std::chrono::hours(1)};
};

}  // namespace ib::ipoib
