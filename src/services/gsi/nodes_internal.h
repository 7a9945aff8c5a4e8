// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// GsiNodes: the nodes that Gsi has opened, and the requests that wait until one is open.
#pragma once

#include "io/irp_queue.h"
#include "services/gsi/gsi.h"
#include "services/gsi/node_internal.h"

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string_view>
#include <vector>

namespace ib::services {

class GsiNodes final : public GsiNode::Owner {
 public:
  GsiNodes(al::System& system, const fabric::Fabric& fabric, GsiReceiver& receiver)
      : system_(system), fabric_(fabric), receiver_(receiver) {}
  GsiNodes(const GsiNodes&) = delete;
  GsiNodes& operator=(const GsiNodes&) = delete;
  ~GsiNodes() override;

  // As in Gsi.
  void ensure(std::string_view node, io::IrpRef irp);
  std::vector<GsiPort> ports() const;
  void let_go(const fabric::Hca& hca, std::function<void()> done);
  void let_back(const fabric::Hca& hca);

  // Returns false if the node of the port was never opened.
  bool has_node_of(std::uint32_t port) const { return find_node_of(port) != nullptr; }
  // Returns nullptr if the HCA of the port is not open.
  PortQueue* find_port(std::uint32_t port) const;

  // Closes all; `done` is called when that has ended, maybe at once. Once.
  void close(std::function<void()> done);
  // Ends the requests that wait for a node.
  void cancel_ensures();

 private:
  // GsiNode::Owner
  void on_settled(GsiNode& node) override;
  void on_closed(GsiNode& node) override;

  GsiNode* find_node_of(std::uint32_t port) const;
  std::uint32_t index_of(const GsiNode& node) const;

  al::System& system_;
  const fabric::Fabric& fabric_;
  GsiReceiver& receiver_;
  io::DriverObject driver_{"softib services"};
  std::map<std::uint32_t, std::unique_ptr<GsiNode>> nodes_;  // by index
  std::map<std::uint32_t, io::IrpQueue> ensures_;            // by node; a queue stays
  std::function<void()> on_all_closed_;
};

}  // namespace ib::services
