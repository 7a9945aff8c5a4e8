// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A world in virtual time for several interfaces: kernels with a small ARP, a subnet administrator,
// a communication manager and a fabric, each of which may lose what it carries.
#pragma once

#include "ulp/ipoib/interface.h"
#include "ulp/ipoib/packets/test/packets_test.h"
#include "ulp/ipoib/random.h"

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

namespace ib::ipoib {

struct WorldFaults {
  unsigned loss_percent = 0;  // of datagrams and of answers
  bool administrator_is_silent = false;
  bool refuses_connections = false;
};

class FabricWorld;

// A node: its port, its kernel, and the host of the interface that it has now. A restart gives it
// another interface, queue pair number and host.
class FabricNode : public Host {
 public:
  FabricNode(FabricWorld& world, unsigned number, bool connected_mode);

  // -- Host
  bool deliver(const VirtioHeader& header, std::span<const std::byte> frame) override;
  void set_link(const LinkState& state) override;
  bool send_datagram(const AddressVector& to, Qpn qpn, Qkey qkey, const Outgoing& message) override;
  bool send_on_connection(ConnectionId id, const Outgoing& message) override;
  bool takes_large(const HardwareAddress& to) override;
  void query_path(RequestId id, const Gid& destination) override;
  void join(RequestId id, const JoinRequest& request) override;
  void leave(const Gid& mgid) override;
  void attach(const Gid& mgid, Lid mlid) override;
  void detach(const Gid& mgid, Lid mlid) override;
  void connect(ConnectionId id, const ConnectRequest& request) override;
  void disconnect(ConnectionId id) override;

  // -- The kernel
  void ping(unsigned other, std::size_t payload);
  void send_large(unsigned other, std::size_t payload);
  void send_to_group(std::uint8_t group);
  void set_member(std::uint8_t group, bool is_member);

  void restart();
  void update_port();
  void stop();

  unsigned number() const { return number_; }
  unsigned generation() const { return generation_; }
  Interface& interface() { return *interface_; }

  PortState port;
  Settings settings;
  LinkState link;
  std::map<Gid, Lid> attached;
  std::map<unsigned, unsigned> pings;  // received, by sender
  unsigned large_bytes = 0;

 private:
  struct Entry {
    MacAddress mac;
    Instant confirmed;
  };
  void give(TestBytes frame, const Offload& offload = {});
  std::optional<MacAddress> resolve(unsigned other);
  void send_arp(std::uint16_t operation, const MacAddress& to, const MacAddress& target,
                std::uint8_t target_ip);
  void receive_arp(ConstBytes packet);
  void receive_ip(const VirtioHeader& header, ConstBytes frame);

  FabricWorld& world_;
  unsigned number_;
  unsigned generation_ = 0;
  std::unique_ptr<Interface> interface_;
  std::map<unsigned, Entry> arp_;
};

class FabricWorld {  // classes: allow(members) all of a world
 public:
  explicit FabricWorld(std::uint64_t seed);

  void add_node(bool connected_mode);
  std::size_t size() const { return nodes_.size(); }
  FabricNode& node(std::size_t i) { return *nodes_[i]; }
  FabricNode* find(const Gid& gid);

  Instant now() const { return now_; }
  unsigned draw(unsigned below) { return static_cast<unsigned>(random_.number() % below); }
  // Later, unless the interface that it is for has been replaced.
  void later(FabricNode& node, Duration most, std::function<void(FabricNode&)> what);
  void pass(Duration time);
  void fail(const std::string& what);
  bool loses() { return draw(100) < faults.loss_percent; }

  // -- The subnet administrator and the communication manager
  void restart_administrator();
  void answer_path(FabricNode& node, RequestId id, const Gid& destination);
  void answer_join(FabricNode& node, RequestId id, const JoinRequest& request);
  void multicast(FabricNode& from, const Gid& mgid, Lid mlid, const TestBytes& bytes);
  void connect(FabricNode& from, ConnectionId id, const ConnectRequest& request);
  bool send_on_connection(FabricNode& from, ConnectionId id, const TestBytes& bytes,
                          const Offload& offload);
  void disconnect(FabricNode& from, ConnectionId id);
  void end_connections(FabricNode& node);
  std::size_t connections_of(const FabricNode& node) const;

  WorldFaults faults;
  bool takes_large = false;
  std::string fault;
  std::uint64_t path_queries = 0;
  std::map<Gid, std::map<unsigned, Membership>> members;  // by MGID, node

 private:
  struct End {
    unsigned node = 0;
    unsigned generation = 0;
    std::uint32_t id = 0;
    auto operator<=>(const End&) const = default;
  };
  static End end_of(const FabricNode& node, ConnectionId id) {
    return {node.number(), node.generation(), static_cast<std::uint32_t>(id)};
  }
  struct Event {
    FabricNode* node = nullptr;
    unsigned generation = 0;
    std::function<void(FabricNode&)> what;
  };

  Random random_;
  Instant now_{std::chrono::hours(1)};
  std::vector<std::unique_ptr<FabricNode>> nodes_;
  std::multimap<Instant, Event> events_;
  std::map<Gid, Lid> mlids_;
  std::uint16_t next_mlid_ = 0xc000;
  std::map<End, End> connections_;  // both directions
};

inline Gid world_gid(unsigned number) {
  Gid gid;
  gid.bytes = {0xfe, 0x80, 0,    0, 0, 0, 0, 0,
               0,    2,    0xc9, 3, 0, 0, 0, static_cast<std::uint8_t>(number + 1)};
  return gid;
}

}  // namespace ib::ipoib
