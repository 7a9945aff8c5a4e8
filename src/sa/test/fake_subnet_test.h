// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// FakeSubnet: a topology that tests write down; SaTest: a server over it, and requests in one line.
#pragma once

#include "sa/records/components.h"
#include "sa/records/mc_member_record.h"
#include "sa/records/path_record.h"
#include "sa/records/service_record.h"
#include "sa/server/server.h"
#include "verbs/gid.h"

#include <gtest/gtest.h>

#include <chrono>
#include <optional>
#include <utility>
#include <vector>

namespace ib::sa {

inline constexpr std::uint64_t kPrefix = 0xfe80000000000000ull;

struct FakePort {
  std::vector<verbs::Gid> gids;
  std::uint16_t lid = 0;
  std::uint8_t lmc = 0;
  std::vector<std::uint16_t> pkeys{0xffff};
  std::uint8_t mtu = 5;    // 4096
  std::uint8_t rate = 16;  // 100 Gb/s
  bool is_up = true;
  std::uint32_t island = 0;  // ports of different islands do not reach each other
  std::uint8_t sl = 0;       // of routes from here
  std::uint8_t life = 10;    // of routes from here
  bool reversible = true;    // routes from here are
};

class FakeSubnet final : public Topology {
 public:
  // Port i has LID 10 * (i + 1) and a GID that ends with it.
  explicit FakeSubnet(std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
      FakePort port;
      port.lid = static_cast<std::uint16_t>(10 * (i + 1));
      port.gids.push_back(verbs::make_gid(kPrefix, 0x100 + i));
      ports.push_back(port);
    }
  }

  std::uint32_t port_count() const override { return static_cast<std::uint32_t>(ports.size()); }
  std::optional<EndPort> port(std::uint32_t index) const override {
    if (!ports[index].is_up) return std::nullopt;
    const FakePort& p = ports[index];
    return EndPort{index, p.gids, p.lid, p.lmc, p.pkeys, p.mtu, p.rate};
  }
  std::optional<EndPort> find_lid(std::uint16_t lid) const override {
    for (std::uint32_t i = 0; i < port_count(); ++i) {
      if (lid >= ports[i].lid && lid < ports[i].lid + (1u << ports[i].lmc)) return port(i);
    }
    return std::nullopt;
  }
  std::optional<EndPort> find_gid(const verbs::Gid& gid) const override {
    for (std::uint32_t i = 0; i < port_count(); ++i) {
      for (const verbs::Gid& own : ports[i].gids) {
        if (own == gid) return port(i);
      }
    }
    return std::nullopt;
  }
  std::optional<Route> route(const EndPort& from, const EndPort& to) const override {
    const FakePort& a = ports[from.index];
    const FakePort& b = ports[to.index];
    if (a.island != b.island) return std::nullopt;
    return Route{a.sl, std::min(a.mtu, b.mtu), rate_fits(a.rate, b.rate) ? a.rate : b.rate, a.life,
                 a.reversible};
  }
  NodeRecord node_record(const EndPort& port) const override {
    NodeRecord record;
    record.lid = port.lid;
    record.info.node_type = 1;
    record.info.node_guid = 0x100 + port.index;
    record.info.port_guid = 0x100 + port.index;
    return record;
  }
  PortInfoRecord port_info_record(const EndPort& port) const override {
    PortInfoRecord record;
    record.lid = port.lid;
    record.port = 1;
    record.info.lid = port.lid;
    record.info.m_key = 0x1234;
    record.info.capability_mask = port.index == 0 ? 0x12 : 0x10;
    return record;
  }
  std::optional<EndPort> manager_port() const override { return port(0); }

  std::vector<FakePort> ports;
};

class SaTest : public testing::Test {
 protected:
  static constexpr std::uint64_t kSmKey = 0x5a5a;

  explicit SaTest(ServerLimits limits = {}) : server(subnet, {kSmKey, 18, limits}) {}

  verbs::Gid gid(std::size_t port) const { return subnet.ports[port].gids[0]; }
  // A request of port `from`.
  template <class Record>
  Answer ask(std::size_t from, std::uint8_t method, std::uint16_t attribute,
             std::uint64_t components, const Record& record, std::uint64_t sm_key = 0) {
    const auto bytes = encode(record);
    Request request;
    request.lid = subnet.ports[from].lid;
    request.method = method;
    request.attribute = attribute;
    request.components = components;
    request.sm_key = sm_key;
    request.record = bytes;
    const std::optional<Answer> answer = server.handle(request, now);
    EXPECT_TRUE(answer.has_value());
    return answer.value_or(Answer{});
  }
  template <class Record>
  static std::vector<Record> records(const Answer& answer) {
    std::vector<Record> all;
    const std::size_t stride = answer.stride != 0 ? answer.stride : stride_of(Record::kSize);
    for (std::size_t i = 0; i < answer.count; ++i) {
      all.push_back(decode_some<Record>(std::span(answer.bytes).subspan(i * stride)));
    }
    return all;
  }

  // Paths.
  Answer get_path(std::size_t from, std::uint64_t components, const PathRecord& wanted) {
    return ask(from, method::kGet, attribute::kPathRecord, components, wanted);
  }
  std::vector<PathRecord> path_table(std::size_t from, std::uint64_t components,
                                     const PathRecord& wanted) {
    return records<PathRecord>(
        ask(from, method::kGetTable, attribute::kPathRecord, components, wanted));
  }

  // Groups.
  static verbs::Gid mgid(std::uint8_t last) {
    verbs::Gid result{0xff, 0x12, 0x40, 0x1b, 0xff, 0xff};
    result[15] = last;
    return result;
  }
  McMemberRecord membership(std::size_t port, const verbs::Gid& group,
                            std::uint8_t state = join_state::kFullMember) const {
    McMemberRecord record;
    record.mgid = group;
    record.port_gid = gid(port);
    record.join_state = state;
    record.pkey = 0xffff;
    record.qkey = 0x0b1b;
    return record;
  }
  Answer create(std::size_t port, const verbs::Gid& group) {
    return ask(port, method::kSet, attribute::kMcMemberRecord, mc_component::kToCreate,
               membership(port, group));
  }
  Answer join(std::size_t port, const verbs::Gid& group, std::uint8_t state) {
    return ask(port, method::kSet, attribute::kMcMemberRecord, mc_component::kToJoin,
               membership(port, group, state));
  }
  Answer leave(std::size_t port, const verbs::Gid& group, std::uint8_t state) {
    return ask(port, method::kDelete, attribute::kMcMemberRecord, mc_component::kToJoin,
               membership(port, group, state));
  }

  void take_down(std::size_t port) {
    subnet.ports[port].is_up = false;
    server.on_port_down(subnet.ports[port].gids, subnet.ports[port].pkeys);
  }
  void bring_up(std::uint32_t port) {
    subnet.ports[port].is_up = true;
    server.on_port_up(*subnet.port(port));
  }

  FakeSubnet subnet{4};
  Server server;
  Instant now{std::chrono::seconds(100)};
};

}  // namespace ib::sa
