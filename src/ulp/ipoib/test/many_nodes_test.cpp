// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The number of requests of 648 interfaces to their subnet administrator, and when they come.
#include "ulp/ipoib/test/many_nodes_test.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <optional>

namespace ib::ipoib {
namespace {

using namespace std::chrono_literals;

Gid gid_of(unsigned node) {
  Gid gid;
  gid.bytes = {0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 2, 0xc9, 3, 0, 0};
  gid.bytes[14] = static_cast<std::uint8_t>((node + 1) >> 8);
  gid.bytes[15] = static_cast<std::uint8_t>(node + 1);
  return gid;
}
unsigned node_of(const Gid& gid) {
  return gid.bytes[14] * 256u + gid.bytes[15] - 1u;
}
std::array<std::uint8_t, 4> address_of(unsigned node) {
  return {10, 0, static_cast<std::uint8_t>((node + 1) >> 8), static_cast<std::uint8_t>(node + 1)};
}
unsigned node_of(const std::array<std::uint8_t, 4>& address) {
  return address[2] * 256u + address[3] - 1u;
}

}  // namespace

// -- A node

SubnetNode::SubnetNode(TestSubnet& subnet, unsigned number, Lid lid)
    : subnet_(subnet), number_(number) {
  settings_.port_guid = number + 1;
  settings_.qpn = Qpn{0x1000u + number};
  settings_.seed = settings_.port_guid ^ 0xffff;  // as the driver has it
  port_.active = port_.has_pkey = true;
  port_.gid = gid_of(number);
  port_.lid = lid;
  port_.rate = 7;
  interface_ = std::make_unique<Interface>(settings_, *this);
}

bool SubnetNode::deliver(const VirtioHeader&, std::span<const std::byte> frame) {
  const auto ethernet = get<EthernetHeader>(frame);
  const ConstBytes packet = frame.subspan(sizeof ethernet);
  if (ethernet.type == kTypeArp) on_arp(get<EthernetArp>(packet));
  if (ethernet.type == kTypeIpv4) on_ping(packet);
  return true;
}

void SubnetNode::on_arp(const EthernetArp& arp) {
  if (arp.target_ip != address_of(number_)) return;
  const unsigned sender = node_of(arp.sender_ip);
  const MacAddress mac{arp.sender};
  arp_[sender] = mac;
  if (arp.header.operation == kArpRequest) {
    answers_.push_back([=, this] { give_arp(kArpReply, mac, sender); });
  }
  if (unresolved_.erase(sender) != 0) {
    answers_.push_back([=, this] { give_ping(kRequest, mac, sender); });
  }
}

void SubnetNode::on_ping(ConstBytes packet) {
  if (get<Ipv4Header>(packet).protocol != kUdp) return;
  ASSERT_EQ(get<Ipv4Header>(packet).destination, address_of(number_));
  const unsigned sender = node_of(get<Ipv4Header>(packet).source);
  if (get<UdpHeader>(packet.subspan(sizeof(Ipv4Header))).destination == kAnswer) {
    ++answered_;
    return;
  }
  const auto mac = arp_.find(sender);
  ASSERT_NE(mac, arp_.end());
  answers_.push_back([=, this, to = mac->second] { give_ping(kAnswer, to, sender); });
}

void SubnetNode::send_answers() {
  const auto answers = std::exchange(answers_, {});
  for (const auto& answer : answers) answer();
}

void SubnetNode::ping(unsigned other) {
  if (const auto found = arp_.find(other); found != arp_.end()) {
    return give_ping(kRequest, found->second, other);
  }
  unresolved_.insert(other);
  give_arp(kArpRequest, kBroadcastMac, other);
}

void SubnetNode::give_arp(std::uint16_t operation, const MacAddress& to, unsigned target) {
  TestBytes frame;
  const MacAddress target_mac = operation == kArpReply ? to : MacAddress{};
  append(frame, EthernetHeader{to.bytes, interface_->mac().bytes, kTypeArp});
  append(frame, EthernetArp{{std::uint16_t{1}, kTypeIpv4, 6, 4, operation},
                            interface_->mac().bytes,
                            address_of(number_),
                            target_mac.bytes,
                            address_of(target)});
  interface_->on_frame({{}, frame}, subnet_.now());
  subnet_.watch(*this);
}

void SubnetNode::give_ping(Kind kind, const MacAddress& to, unsigned other) {
  TestBytes frame;
  append(frame, EthernetHeader{to.bytes, interface_->mac().bytes, kTypeIpv4});
  append(frame, Ipv4Header{0x45,
                           0,
                           static_cast<std::uint16_t>(sizeof(Ipv4Header) + sizeof(UdpHeader)),
                           7,
                           kDontFragment,
                           64,
                           kUdp,
                           {},
                           address_of(number_),
                           address_of(other)});
  append(frame, UdpHeader{1000,
                          static_cast<std::uint16_t>(kind),
                          static_cast<std::uint16_t>(sizeof(UdpHeader)),
                          {}});
  interface_->on_frame({{}, frame}, subnet_.now());
  subnet_.watch(*this);
}

bool SubnetNode::send_datagram(const AddressVector& to, Qpn qpn, Qkey, const Outgoing& message) {
  const DatagramSource source{settings_.qpn, port_.lid, true, port_.gid, to.dgid};
  TestBytes bytes = joined(message);
  if (qpn == kMulticastQpn) {
    subnet_.later(1ms, [=, this, bytes = std::move(bytes)] {
      subnet_.multicast(*this, to.dgid, to.dlid, source, bytes);
    });
    return true;
  }
  SubnetNode& peer = subnet_.node(node_of(to.dgid));
  subnet_.later(1ms, [=, &peer, bytes = std::move(bytes)] {
    if (peer.port().lid == to.dlid) peer.receive(source, bytes);
  });
  return true;
}

void SubnetNode::receive(const DatagramSource& source, ConstBytes message) {
  std::array<std::byte, 256> buffer;
  ASSERT_LE(message.size() + 40, buffer.size());
  std::copy(message.begin(), message.end(), buffer.begin() + 40);
  interface_->on_datagram(source, {Bytes(buffer).subspan(40, message.size()), {}}, subnet_.now());
  send_answers();
  subnet_.watch(*this);
}

void SubnetNode::query_path(RequestId id, const Gid& destination) {
  subnet_.answer_path(*this, id, destination);
}

void SubnetNode::join(RequestId id, const JoinRequest& request) {
  subnet_.answer_join(*this, id, request);
}

// -- The subnet

TestSubnet::TestSubnet(unsigned others, unsigned job) {
  for (unsigned i = 0; i < kNodes; ++i) {
    nodes_.push_back(
        std::make_unique<SubnetNode>(*this, i, Lid{static_cast<std::uint16_t>(i + 1)}));
  }
  const auto add = [&](unsigned one, unsigned other) {
    if (one != other) pairs_.insert(std::minmax(one, other));
  };
  for (unsigned i = 0; i < kNodes; ++i) {
    if (others != 0) add(i, (i + 1) % kNodes);
    for (unsigned j = 0; j < others; ++j) {
      add(i, static_cast<unsigned>(random_.number() % kNodes));
    }
    for (unsigned j = 0; i < job && j < i; ++j) add(i, j);
  }
}

void TestSubnet::pass(Duration time) {
  const Instant end = now_ + time;
  while (!events_.empty() && events_.begin()->first < end) {
    const auto event = events_.extract(events_.begin());
    now_ = std::max(now_, event.key());
    event.mapped()();
  }
  now_ = end;
}

void TestSubnet::watch(SubnetNode& node) {
  const auto next = node.interface().next_deadline();
  if (!next || *next >= node.deadline) return;
  node.deadline = *next;
  events_.emplace(*next, [this, &node, when = *next] {
    if (node.deadline != when) return;  // an earlier one has come since
    node.deadline = Instant::max();
    node.interface().on_time(now_);
    node.send_answers();
    watch(node);
  });
}

void TestSubnet::talk(Duration period, unsigned periods) {
  for (const auto& [one, other] : pairs_) {
    const Duration moment = random_.up_to(period - 1ns);
    SubnetNode& from = node(one);
    for (unsigned i = 0; i < periods; ++i) {
      events_.emplace(now_ + moment + i * period, [&from, to = other] { from.ping(to); });
    }
  }
  pass(period * periods);
}

void TestSubnet::restart_manager(bool moves) {
  mlids_.clear();
  members_.clear();
  next_mlid_ = static_cast<std::uint16_t>(next_mlid_ + 7);
  for (unsigned i = 0; i < kNodes; ++i) {
    if (moves) node(i).set_lid(Lid{static_cast<std::uint16_t>(2 * kNodes - i)});
    // The driver gives these two events so.
    for (const PortEvent event : {PortEvent::SubnetManagerChanged, PortEvent::ClientReregister}) {
      node(i).interface().on_port(node(i).port(), now_);
      node(i).interface().on_port_event(event, now_);
    }
    watch(node(i));
  }
}

void TestSubnet::answer_path(SubnetNode& node, RequestId id, const Gid& destination) {
  ++path_queries;
  log();
  later(10ms, [=, this, &node] {
    PathRecord path;
    path.dlid = this->node(node_of(destination)).port().lid;
    path.mtu = 4;
    node.interface().on_path_answer(id, path, now_);
    watch(node);
  });
}

void TestSubnet::answer_join(SubnetNode& node, RequestId id, const JoinRequest& request) {
  ++joins;
  log();
  later(10ms, [=, this, &node] {
    Result<GroupParameters> answer = Status::NotFound;
    if (request.create && !mlids_.contains(request.mgid)) {
      mlids_.emplace(request.mgid, Lid{next_mlid_++});
    }
    if (const auto found = mlids_.find(request.mgid); found != mlids_.end()) {
      GroupParameters parameters;
      parameters.mlid = found->second;
      parameters.qkey = Qkey{0x0b1b};
      parameters.mtu = 4;
      parameters.rate = 3;
      answer = parameters;
      auto& members = members_[request.mgid];
      members.resize(kNodes);
      members[node.number()] = true;
    }
    node.interface().on_join_answer(id, answer, now_);
    node.send_answers();
    watch(node);
  });
}

void TestSubnet::multicast(const SubnetNode& from, const Gid& mgid, Lid mlid,
                           const DatagramSource& source, const TestBytes& message) {
  const auto members = members_.find(mgid);
  if (members == members_.end()) return;
  for (unsigned i = 0; i < kNodes; ++i) {
    if (i == from.number() || !members->second[i]) continue;
    if (node(i).is_attached(mgid, mlid)) node(i).receive(source, message);
  }
}

void TestSubnet::begin_log() {
  path_queries = joins = 0;
  log_start_ = now_;
  slots_.clear();
}

void TestSubnet::log() {
  const auto slot = static_cast<std::size_t>((now_ - log_start_) / kSlot);
  if (slot >= slots_.size()) slots_.resize(slot + 1);
  ++slots_[slot];
}

std::uint64_t TestSubnet::most_within(Duration time) const {
  const auto width = std::min(static_cast<std::size_t>(time / kSlot), slots_.size());
  std::uint64_t sum =
      std::accumulate(slots_.begin(), slots_.begin() + static_cast<long>(width), 0u);
  std::uint64_t most = sum;
  for (std::size_t i = width; i < slots_.size(); ++i) {
    sum += slots_[i];
    sum -= slots_[i - width];
    most = std::max(most, sum);
  }
  return most;
}

// -- The tests

namespace {

class IpoibManyNodes : public testing::Test {
 protected:
  std::uint64_t answered() {
    std::uint64_t sum = 0;
    for (unsigned i = 0; i < kNodes; ++i) sum += subnet_->node(i).answered();
    return sum;
  }
  std::uint64_t dropped() {
    std::uint64_t sum = 0;
    for (unsigned i = 0; i < kNodes; ++i) {
      for (const auto count : subnet_->node(i).interface().counters().drops) sum += count;
    }
    return sum;
  }

  void start(unsigned others, unsigned job) {
    subnet_.emplace(others, job);
    subnet_->begin_log();
    for (unsigned i = 0; i < kNodes; ++i) {
      subnet_->node(i).interface().on_port(subnet_->node(i).port(), subnet_->now());
      subnet_->watch(subnet_->node(i));
    }
    subnet_->pass(5s);
    for (unsigned i = 0; i < kNodes; ++i) ASSERT_TRUE(subnet_->node(i).has_carrier()) << i;
    // Most join the broadcast group twice: before it exists, and then to create it.
    EXPECT_LE(subnet_->joins, kNodes * (kPermanentGroups + 1));
    EXPECT_EQ(subnet_->path_queries, 0u);
  }

  // Each ping of the time was answered.
  void talk(Duration period, unsigned periods) {
    const std::uint64_t before = answered();
    subnet_->talk(period, periods);
    subnet_->pass(1s);
    EXPECT_EQ(answered() - before, subnet_->pairs().size() * periods);
  }

  // Both ends of a pair need a path to the other.
  std::uint64_t paths() const { return 2 * subnet_->pairs().size(); }

  // Each request is made once more, at moments that are spread: within a second at most `factor`
  // times what it would be if they were spread evenly.
  void expect_spread_over(Duration time, double factor) {
    EXPECT_EQ(subnet_->path_queries, paths());
    // Those that join the broadcast group before it exists do so once more, to create it.
    EXPECT_GE(subnet_->joins, kNodes * kPermanentGroups);
    EXPECT_LE(subnet_->joins, kNodes * (kPermanentGroups + 1));
    const double even =
        static_cast<double>(paths() + kNodes * kPermanentGroups) / static_cast<double>(time / 1s);
    EXPECT_LE(subnet_->most_within(1s), even * factor);
    EXPECT_LE(subnet_->most_within(100ms), even / 10 * factor * 1.3);
  }

  std::optional<TestSubnet> subnet_;
};

TEST_F(IpoibManyNodes, EachDirectionOfAPairAsksOnceAndAfterARestartOfTheManagerOnceMore) {
  start(4, 24);
  subnet_->begin_log();
  talk(1s, 2);
  EXPECT_EQ(subnet_->path_queries, paths());
  EXPECT_EQ(subnet_->joins, 0u);
  const std::uint64_t drops = dropped();

  subnet_->begin_log();
  talk(60s, 4);
  EXPECT_EQ(subnet_->path_queries + subnet_->joins, 0u) << "paths are not cached";

  const Duration spread = Times{}.rejoin_spread;
  subnet_->begin_log();
  subnet_->restart_manager(false);
  talk(1s, 8);  // nothing is lost: the old records are used until they are replaced
  expect_spread_over(spread, 1.1);
  EXPECT_EQ(dropped(), drops);

  subnet_->begin_log();
  subnet_->restart_manager(true);
  // Old LIDs lead nowhere. A node that answers needs its path after the other one: more come late.
  subnet_->talk(1s, 8);
  subnet_->pass(1s);
  expect_spread_over(spread, 1.5);
  talk(1s, 1);
  EXPECT_EQ(subnet_->path_queries, paths());
}

TEST_F(IpoibManyNodes, RecordsThatWereResolvedTogetherExpireApart) {
  start(0, 24);
  talk(1s, 1);
  subnet_->begin_log();
  talk(30s, 21);
  EXPECT_EQ(subnet_->path_queries, paths());
  EXPECT_EQ(subnet_->joins, 0u);
  // They expire within the last quarter of their time.
  const double even =
      static_cast<double>(paths()) * 10 / static_cast<double>(Times{}.path / 4 / 1s);
  EXPECT_LE(subnet_->most_within(10s), even * 1.8);
}

}  // namespace
}  // namespace ib::ipoib
