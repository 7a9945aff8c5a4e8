// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// FakeSubnet: a topology that tests and fuzzers write down.
#pragma once

#include "base/assert.h"
#include "sa/records/selector.h"
#include "sa/server/topology.h"
#include "verbs/gid.h"

#include <algorithm>
#include <cstring>
#include <map>
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

  // Of a switch.
  bool is_switch = false;
  std::vector<std::vector<std::uint16_t>> other_pkeys;  // of ports 1, 2, ...
  std::uint16_t linear_top = 0;
  std::map<std::uint32_t, mad::SmpData> multicast;  // by modifier
};

struct FakeLink {
  struct End {
    std::uint32_t port = 0;
    std::uint8_t number = 0;
  };
  End a, b;
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
    EndPort end{index, p.gids, p.lid, p.lmc, p.pkeys, p.mtu, p.rate};
    end.number = p.is_switch ? 0 : 1;
    end.others = static_cast<std::uint8_t>(p.other_pkeys.size());
    return end;
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
  std::optional<Route> route(const EndPort& from, std::uint16_t slid, const EndPort& to,
                             std::uint16_t dlid) const override {
    const FakePort& a = ports[from.index];
    const FakePort& b = ports[to.index];
    IB_ASSERT(from.has_lid(slid) && to.has_lid(dlid));
    if (a.island != b.island) return std::nullopt;
    return Route{a.sl, std::min(a.mtu, b.mtu), rate_fits(a.rate, b.rate) ? a.rate : b.rate, a.life,
                 a.reversible};
  }

  std::optional<NodePort> node_port(const EndPort& end, std::uint8_t number) const override {
    if (number == end.number) return NodePort{end, number, end.pkeys};
    if (!end.is_switch() || number > end.others) return std::nullopt;
    return NodePort{end, number, ports[end.index].other_pkeys[number - 1u]};
  }
  std::optional<NodePort> peer(const NodePort& port) const override {
    for (const FakeLink& link : links) {
      for (const auto& [one, other] : {std::pair(link.a, link.b), std::pair(link.b, link.a)}) {
        if (one.port != port.end.index || one.number != port.number) continue;
        const std::optional<EndPort> end = this->port(other.port);
        return end ? node_port(*end, other.number) : std::nullopt;
      }
    }
    return std::nullopt;
  }
  // Tables have two blocks; a block's first byte is its number, the second one the port's.
  std::optional<mad::SmpData> attribute(const NodePort& port, std::uint16_t attribute,
                                        std::uint32_t modifier) const override {
    namespace smp = mad::smp_attribute;
    const auto block = [&](std::uint32_t number, bool is_there) -> std::optional<mad::SmpData> {
      if (!is_there) return std::nullopt;
      return mad::SmpData{static_cast<std::uint8_t>(number), port.number};
    };
    const bool is_switch = port.end.is_switch();
    const std::uint32_t low = modifier & 0xffff;
    switch (attribute) {
      case smp::kNodeInfo: return as_data(node_info(port));
      case smp::kNodeDescription:
        return mad::SmpData{'p', static_cast<std::uint8_t>('0' + port.end.index)};
      case smp::kPortInfo: return as_data(port_info(port));
      case smp::kGuidInfo: return block(modifier, modifier < 2);
      case smp::kPkeyTable: return block(low, low < 2);
      case smp::kSlToVlTable:
        return block(modifier >> 8, (modifier >> 8 & 0xff) <= port.end.others);
      case smp::kVlArbitration: return block(modifier >> 16, true);
      case smp::kSwitchInfo:
        if (!is_switch) return std::nullopt;
        return as_data(switch_info(ports[port.end.index]));
      case smp::kLinearForwarding: return block(modifier, is_switch);
      case smp::kMulticastForwarding: {
        const auto& masks = ports[port.end.index].multicast;
        const auto found = masks.find(modifier);
        return found == masks.end() ? mad::SmpData{} : found->second;
      }
      default: return std::nullopt;
    }
  }
  std::optional<EndPort> manager_port() const override { return port(0); }
  std::vector<SmInfoRecord> managers() const override {
    return {{ports[0].lid, 0x100, 0x77, 9, 5, kMasterState}};
  }

  // Makes the end port a switch of so many other ports.
  void make_switch(std::size_t index, std::size_t others) {
    ports[index].is_switch = true;
    ports[index].other_pkeys.assign(others, {0xffff});
  }

  std::vector<FakePort> ports;
  std::vector<FakeLink> links;

 private:
  template <class Attribute>
  static mad::SmpData as_data(const Attribute& attribute) {
    mad::SmpData data{};
    std::memcpy(data.data(), &attribute, sizeof attribute);
    return data;
  }
  static mad::NodeInfo node_info(const NodePort& port) {
    mad::NodeInfo info;
    info.node_type = port.end.is_switch() ? 2 : 1;
    info.num_ports = port.end.is_switch() ? port.end.others : std::uint8_t{1};
    info.node_guid = 0x100 + port.end.index;
    info.port_guid = 0x100 + port.end.index;
    info.local_port = port.number;
    return info;
  }
  static mad::PortInfo port_info(const NodePort& port) {
    mad::PortInfo info;
    info.lid = port.number == port.end.number ? port.end.lid : std::uint16_t{0};
    info.m_key = 0x1234;
    info.local_port = port.number;
    info.capability_mask = port.end.index == 0 ? 0x12 : 0x10;
    info.capability_mask2 = port.end.index == 1 ? 0x22 : 0x20;
    return info;
  }
  static mad::SwitchInfo switch_info(const FakePort& port) {
    mad::SwitchInfo info;
    info.linear_cap = 0xc000;
    info.multicast_cap = 128;
    info.linear_top = port.linear_top;
    return info;
  }
};

}  // namespace ib::sa
