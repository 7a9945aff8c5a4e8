// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A subnet of 648 interfaces, as many as a fat tree of 36-port switches has, in virtual time: their
// kernels resolve by ARP and answer pings, and nothing is lost. FabricWorld has the faults.
#pragma once

#include "ulp/ipoib/arp.h"
#include "ulp/ipoib/interface.h"
#include "ulp/ipoib/packets/test/packets_test.h"
#include "ulp/ipoib/random.h"

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <unordered_map>
#include <utility>
#include <vector>

namespace ib::ipoib {

inline constexpr unsigned kNodes = 648;
inline constexpr std::size_t kPermanentGroups = 3;  // broadcast, all hosts, all nodes
inline constexpr Duration kSlot = std::chrono::milliseconds(100);  // of the log of requests

class TestSubnet;

// A node: the interface, its host, and a kernel that resolves by ARP and answers pings.
class SubnetNode final : public Host {  // classes: allow(members) one for each call
 public:
  SubnetNode(TestSubnet& subnet, unsigned number, Lid lid);

  bool deliver(const VirtioHeader& header, std::span<const std::byte> frame) override;
  void set_link(const LinkState& state) override { has_carrier_ = state.carrier; }
  bool send_datagram(const AddressVector& to, Qpn qpn, Qkey qkey, const Outgoing& message) override;
  bool send_on_connection(ConnectionId, const Outgoing&) override { return false; }
  bool takes_large(const HardwareAddress&) override { return false; }
  void query_path(RequestId id, const Gid& destination) override;
  void join(RequestId id, const JoinRequest& request) override;
  void leave(const Gid&) override {}
  void attach(const Gid& mgid, Lid mlid) override { attached_[mgid] = mlid; }
  void detach(const Gid& mgid, Lid) override { attached_.erase(mgid); }
  void connect(ConnectionId, const ConnectRequest&) override {}
  void disconnect(ConnectionId) override {}

  void ping(unsigned other);
  void receive(const DatagramSource& source, ConstBytes message);
  // The kernel sends its answers after the call of deliver().
  void send_answers();
  bool is_attached(const Gid& mgid, Lid mlid) const {
    const auto found = attached_.find(mgid);
    return found != attached_.end() && found->second == mlid;
  }

  unsigned number() const { return number_; }
  Interface& interface() { return *interface_; }
  const PortState& port() const { return port_; }
  void set_lid(Lid lid) { port_.lid = lid; }
  bool has_carrier() const { return has_carrier_; }
  std::uint64_t answered() const { return answered_; }
  Instant deadline = Instant::max();  // for which the subnet has an event

 private:
  enum Kind : std::uint16_t { kRequest, kAnswer };
  void give_arp(std::uint16_t operation, const MacAddress& to, unsigned target);
  void give_ping(Kind kind, const MacAddress& to, unsigned other);
  void on_arp(const EthernetArp& arp);
  void on_ping(ConstBytes packet);

  TestSubnet& subnet_;
  unsigned number_;
  PortState port_;
  Settings settings_;
  std::unique_ptr<Interface> interface_;
  bool has_carrier_ = false;
  std::uint64_t answered_ = 0;
  std::unordered_map<unsigned, MacAddress> arp_;
  std::set<unsigned> unresolved_;  // pings that wait for ARP
  std::vector<std::function<void()>> answers_;
  std::unordered_map<Gid, Lid> attached_;
};

// The fabric, its subnet administrator and the clock.
class TestSubnet {
 public:
  // Each node talks to its neighbours of a ring and to random `others`, if there are any; the first
  // ones, `job` of them, talk to each other.
  TestSubnet(unsigned others, unsigned job);

  Instant now() const { return now_; }
  SubnetNode& node(unsigned number) { return *nodes_[number]; }
  void later(Duration most, std::function<void()> what) {
    events_.emplace(now_ + random_.up_to(most), std::move(what));
  }
  void pass(Duration time);
  void watch(SubnetNode& node);

  // Each pair pings once in each period, at a moment of its own.
  void talk(Duration period, unsigned periods);
  // Those who talk to each other.
  const std::set<std::pair<unsigned, unsigned>>& pairs() const { return pairs_; }
  // The manager restarts: it has no groups, and tells all ports; `moves`: with other LIDs.
  void restart_manager(bool moves);

  void answer_path(SubnetNode& node, RequestId id, const Gid& destination);
  void answer_join(SubnetNode& node, RequestId id, const JoinRequest& request);
  void multicast(const SubnetNode& from, const Gid& mgid, Lid mlid, const DatagramSource& source,
                 const TestBytes& message);

  // -- Requests since the last call of begin_log().
  void begin_log();
  std::uint64_t path_queries = 0;
  std::uint64_t joins = 0;
  std::uint64_t most_within(Duration time) const;

 private:
  void log();

  Random random_{648};
  Instant now_{std::chrono::hours(1)};
  std::vector<std::unique_ptr<SubnetNode>> nodes_;
  std::multimap<Instant, std::function<void()>> events_;
  std::set<std::pair<unsigned, unsigned>> pairs_;
  std::unordered_map<Gid, Lid> mlids_;
  std::unordered_map<Gid, std::vector<bool>> members_;  // by node
  std::uint16_t next_mlid_ = 0xc000;
  Instant log_start_;
  std::vector<std::uint32_t> slots_;
};

}  // namespace ib::ipoib
