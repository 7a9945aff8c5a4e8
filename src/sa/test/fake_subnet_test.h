// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// FakeSubnet: a topology that tests and fuzzers write down.
#pragma once

#include "sa/records/selector.h"
#include "sa/server/topology.h"
#include "verbs/gid.h"

#include <algorithm>
#include <optional>
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

}  // namespace ib::sa
