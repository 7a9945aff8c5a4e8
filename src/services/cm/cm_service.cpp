// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The managers of HCAs and their consumers, and what comes from the GSI.
#include "services/cm/cm_service.h"

#include "cm/messages/format.h"
#include "mad/header.h"
#include "services/cm/gsi_forms.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace ib::services {

CmService::CmService(platform::Executor& executor, const fabric::Fabric& fabric, Gsi& gsi,
                     std::function<std::uint32_t()> random, const cm::Limits& limits)
    : executor_(executor),
      fabric_(fabric),
      gsi_(gsi),
      random_(std::move(random)),
      limits_(limits),
      openings_(gsi) {
  GsiAgent agent;
  agent.name = "communication manager";
  agent.mgmt_class = cm::kCmClass;
  agent.class_version = cm::kCmClassVersion;
  agent.methods = {mad::method::kSend, mad::method::kGet, mad::method::kSet};
  agent.on_message = [this](const GsiMessage& message) { on_message(message); };
  agent.on_port = [this](const GsiPortEvent& event) { on_port(event); };
  std::string reason;
  const Result<AgentId> added = gsi_.add_agent(std::move(agent), reason);
  IB_ASSERT(added.has_value());  // nobody else has the class
  agent_ = *added;
}

CmService::~CmService() {
  IB_ASSERT(consumers_.empty());
  *alive_ = false;
  gsi_.remove_agent(agent_);
}

void CmService::add(CmConsumer& consumer) {
  consumers_.push_back(&consumer);
  for (const auto& [index, manager] : managers_) consumer.on_manager(*manager);
}

void CmService::remove(CmConsumer& consumer) {
  std::erase(consumers_, &consumer);
  for (const auto& [index, manager] : managers_) manager->forget(consumer);
}

HcaCm& CmService::manager_of(const fabric::Hca& hca) {
  std::unique_ptr<HcaCm>& manager = managers_[hca.index];
  if (manager != nullptr) return *manager;
  manager = std::make_unique<HcaCm>(*this, hca, std::uint64_t{random_()} << 32 | random_());
  HcaCm& made = *manager;
  for (CmConsumer* consumer : consumers_) consumer->on_manager(made);
  return made;
}

Status CmService::open(const fabric::Hca& hca, const cm::Path& path, OnOpen then) {
  const fabric::Port* port =
      path.has_lids() ? fabric_.graph().find_port(path.dlid) : fabric_.graph().find_port(path.dgid);
  // A switch has no communication manager.
  if (port == nullptr || fabric_.hca_of(*port) == nullptr) return Status::NotFound;
  const fabric::Node& peer = fabric_.node_of(*fabric_.hca_of(*port));
  open(fabric_.node_of(hca), [this, &peer, then = std::move(then)](Status own, const auto& why) {
    open(peer, [own, why, then](Status status, const std::string& reason) {
      own != Status::Ok ? then(own, why) : then(status, reason);
    });
  });
  return Status::Ok;
}

void CmService::on_message(const GsiMessage& message) {
  mad::Mad mad{};
  if (message.bytes.size() != mad.size()) return;
  std::memcpy(mad.data(), message.bytes.data(), mad.size());
  const fabric::Port* port = fabric_.graph().port(message.from.port);
  const fabric::Hca* hca = port != nullptr ? fabric_.hca_of(*port) : nullptr;
  if (hca != nullptr) manager_of(*hca).receive(mad, from_gsi(message.from, *port));
}

// The addresses of a port change with its events; an HCA that is gone takes its connections along,
// and the ids that have only bound an address of it.
void CmService::on_port(const GsiPortEvent& event) {
  const fabric::Port* port = fabric_.graph().port(event.port);
  const fabric::Hca* hca = port != nullptr ? fabric_.hca_of(*port) : nullptr;
  if (hca == nullptr) return;
  const auto at = managers_.find(hca->index);
  if (at != managers_.end()) at->second->set_ports();
  executor_.post([this, alive = alive_, hca] {
    if (!*alive) return;
    for (CmConsumer* consumer : std::vector(consumers_)) {
      // A client may have closed others.
      if (std::ranges::find(consumers_, consumer) == consumers_.end()) continue;
      hca->present ? consumer->on_ports_changed(*hca) : consumer->on_hca_gone(*hca);
    }
  });
}

}  // namespace ib::services
