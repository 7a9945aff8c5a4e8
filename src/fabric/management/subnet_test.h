// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A subnet of a preset, and a subnet manager by hand, for tests.
#pragma once

#include "fabric/management/smi.h"
#include "fabric/topology/node_names.h"
#include "fabric/topology/presets.h"

#include <gtest/gtest.h>

#include <bit>
#include <cstring>
#include <initializer_list>
#include <string>
#include <vector>

namespace ib::fabric::test {

inline Fabric make_subnet(const std::string& preset,
                          SubnetManagement management = SubnetManagement::Softib) {
  std::string reason;
  auto topology = preset_topology(preset, reason);
  EXPECT_TRUE(topology) << reason;
  Shape shape;
  shape.nodes = nodes_of(*topology);
  shape.topology = *std::move(topology);
  shape.management = management;
  auto fabric = Fabric::create(shape);
  EXPECT_TRUE(fabric);
  return *std::move(fabric);
}

// Sends SMPs from the port of node 0 and keeps what comes there.
struct Subnet : Smi::Receiver {
  explicit Subnet(const std::string& preset, SubnetManagement management = SubnetManagement::Softib)
      : fabric(make_subnet(preset, management)) {
    smi.set_receiver(this);
  }

  bool on_smp(std::uint32_t port, const PacketLids& lids, const mad::Mad& mad) override {
    if (port != takes_at) return false;
    came.push_back({lids, std::bit_cast<mad::Smp>(mad)});
    return true;
  }
  void on_bad_key(std::uint32_t, const PacketLids&, const mad::Mad&) override { ++bad_keys; }

  Graph& graph() { return fabric.graph(); }
  Port& port_of_node(std::size_t node) { return fabric.nodes()[node].hcas[0].ports[0]; }
  const Element& the_switch(std::uint32_t index = 0) {
    for (std::uint32_t i = 0; i < graph().element_count(); ++i) {
      if (graph().element(i).is_switch() && index-- == 0) return graph().element(i);
    }
    ADD_FAILURE() << "no such switch";
    return graph().element(0);
  }

  static mad::Smp along(std::initializer_list<int> ports, std::uint8_t method,
                        std::uint16_t attribute, std::uint32_t modifier = 0) {
    mad::Smp smp;
    smp.header = {mad::kBaseVersion,
                  mad::mgmt_class::kSubnDirected,
                  mad::kClassVersion,
                  method,
                  0,
                  static_cast<std::uint16_t>(ports.size()),
                  7,
                  attribute,
                  0,
                  modifier};
    smp.reserved[0] = smp.reserved[1] = smp.reserved[2] = smp.reserved[3] = 0xff;
    std::size_t at = 0;
    for (const int port : ports) smp.paths[++at] = static_cast<std::uint8_t>(port);
    return smp;
  }
  static mad::Smp by_lid(std::uint8_t method, std::uint16_t attribute, std::uint32_t modifier = 0) {
    mad::Smp smp = along({}, method, attribute, modifier);
    smp.header.mgmt_class = mad::mgmt_class::kSubnLid;
    smp.reserved = {};
    return smp;
  }
  // Returns the answer; an SMP without a method if none came.
  mad::Smp ask(const mad::Smp& smp, PacketLids lids = {}) {
    came.clear();
    smi.send(graph().index_of(port_of_node(0)), lids, std::bit_cast<mad::Mad>(smp));
    if (came.size() != 1) return {};
    return came[0].smp;
  }
  template <class T>
  T read(const mad::Smp& answer) {
    T value;
    std::memcpy(static_cast<void*>(&value), answer.data.data(), sizeof value);
    return value;
  }
  template <class T>
  static void write(mad::Smp& smp, const T& value) {
    std::memcpy(smp.data.data(), &value, sizeof value);
  }

  struct Came {
    PacketLids lids;
    mad::Smp smp;
  };
  Fabric fabric;
  PortChanges changes;
  Instant now{};
  Smi smi{fabric,
          {.now = [this] { return now; },
           .on_changes =
               [this](const PortChanges& more) {
                 changes.insert(changes.end(), more.begin(), more.end());
               }}};
  std::uint32_t takes_at = 0;
  std::vector<Came> came;
  int bad_keys = 0;
};

}  // namespace ib::fabric::test
