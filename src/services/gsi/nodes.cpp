// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "services/gsi/nodes_internal.h"

#include <fmt/format.h>

#include <string>
#include <utility>

namespace ib::services {

GsiNodes::~GsiNodes() {
  IB_ASSERT(nodes_.empty());
}

std::uint32_t GsiNodes::index_of(const GsiNode& node) const {
  return static_cast<std::uint32_t>(&node.node() - fabric_.nodes().data());
}

void GsiNodes::ensure(std::string_view name, io::IrpRef irp) {
  const fabric::Node* found = fabric_.find_node(name);
  if (found == nullptr) {
    return std::move(irp).fail(Status::NotFound,
                               fmt::format("this fabric has no node \"{}\"", name));
  }
  const auto index = static_cast<std::uint32_t>(found - fabric_.nodes().data());
  std::unique_ptr<GsiNode>& node = nodes_[index];
  if (node == nullptr) {
    node = std::make_unique<GsiNode>(system_, driver_, fabric_, *found, *this, receiver_);
  }
  if (node->is_settled() && node->first_problem().status == Status::Ok) {
    return std::move(irp).complete(Status::Ok);
  }
  ensures_[index].park(std::move(irp));
  node->open();
}

void GsiNodes::on_settled(GsiNode& node) {
  const GsiOutcome problem = node.first_problem();
  const std::uint32_t index = index_of(node);
  std::vector<io::IrpRef> done;
  while (auto irp = ensures_[index].take()) done.push_back(*std::move(irp));
  for (io::IrpRef& irp : done) {
    if (problem.status == Status::Ok) {
      std::move(irp).complete(Status::Ok);
    } else {
      std::move(irp).fail(problem.status, problem.reason);
    }
  }
}

std::vector<GsiPort> GsiNodes::ports() const {
  std::vector<GsiPort> ports;
  for (const auto& [index, node] : nodes_) node->list(ports);
  return ports;
}

void GsiNodes::let_go(const fabric::Hca& hca, std::function<void()> done) {
  const auto node = nodes_.find(hca.node);
  if (node == nodes_.end()) return done();
  node->second->let_go(hca.node_guid, std::move(done));
}

void GsiNodes::let_back(const fabric::Hca& hca) {
  const auto node = nodes_.find(hca.node);
  if (node != nodes_.end()) node->second->let_back(hca.node_guid);
}

GsiNode* GsiNodes::find_node_of(std::uint32_t port) const {
  const fabric::Port* place = fabric_.graph().port(port);
  const fabric::Hca* hca = place != nullptr ? fabric_.hca_of(*place) : nullptr;
  const auto node = hca != nullptr ? nodes_.find(hca->node) : nodes_.end();
  return node == nodes_.end() ? nullptr : node->second.get();
}

PortQueue* GsiNodes::find_port(std::uint32_t port) const {
  const GsiNode* node = find_node_of(port);
  return node == nullptr ? nullptr : node->find(port);
}

void GsiNodes::close(std::function<void()> done) {
  on_all_closed_ = std::move(done);
  std::vector<GsiNode*> all;
  for (const auto& [index, node] : nodes_) all.push_back(node.get());
  for (GsiNode* node : all) node->close();
  if (all.empty()) on_all_closed_();
}

void GsiNodes::on_closed(GsiNode& node) {
  nodes_.erase(index_of(node));
  if (nodes_.empty()) on_all_closed_();
}

void GsiNodes::cancel_ensures() {
  for (auto& [index, queue] : ensures_) {
    queue.fail_all(Status::Cancelled, "the services are being closed");
  }
}

}  // namespace ib::services
