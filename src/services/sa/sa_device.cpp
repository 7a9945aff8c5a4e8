// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "services/sa/sa_device.h"

#include "io/irp_queue.h"
#include "sa/records/header.h"
#include "services/sa/sa_file.h"
#include "services/service_user.h"

#include <string>
#include <utility>
#include <vector>

namespace ib::services {

SaDevice::SaDevice(SaClient& client, Gsi& gsi, const fabric::Fabric& fabric,
                   platform::Executor& executor)
    : client_(client), gsi_(gsi), fabric_(fabric), executor_(executor) {
  driver_.on(io::Major::Create) = &SaDevice::create;
  driver_.on(io::Major::Close) = &SaDevice::close;
  driver_.on(io::Major::DeviceControl) = &SaDevice::control;
  device_.set_extension(this);
  const Status attached = device_.attach(waiting_);
  IB_ASSERT(attached == Status::Ok);
  GsiAgent agent;
  agent.name = "subnet administrator's client of drivers";
  agent.mgmt_class = sa::kMgmtClass;
  agent.class_version = sa::kClassVersion;
  agent.on_port = [this](const GsiPortEvent& event) { on_port(event); };
  std::string reason;
  const Result<AgentId> added = gsi_.add_agent(std::move(agent), reason);
  IB_ASSERT(added.has_value());  // it takes no requests, so nobody else has them
  agent_ = *added;
}

SaDevice::~SaDevice() {
  *alive_ = false;
  gsi_.remove_agent(agent_);
}

void SaDevice::create(io::DeviceObject& device, io::IrpRef irp) {
  SaDevice& self = device.extension<SaDevice>();
  const fabric::Hca* hca = hca_of(self.fabric_, user_of(*irp), irp);
  if (hca == nullptr) return;
  auto file = std::make_unique<SaFile>(self.client_, *hca, self.waiting_);
  irp->file->set_context(device, file.release());
  std::move(irp).complete(Status::Ok);
}

void SaDevice::close(io::DeviceObject& device, io::IrpRef irp) {
  const std::unique_ptr<SaFile> file(irp->file->context<SaFile>(device));
  irp->file->set_context<SaFile>(device, nullptr);
  std::move(irp).complete(Status::Ok);
}

void SaDevice::control(io::DeviceObject& device, io::IrpRef irp) {
  if (device.lower() == nullptr) {
    io::IrpQueue* const queue = irp->parameters.get<io::IrpQueue>();
    return queue->park(std::move(irp));
  }
  SaFile* const file = irp->file->context<SaFile>(device);
  file->control(std::move(irp));
}

void SaDevice::on_port(const GsiPortEvent& event) {
  if (event.change != GsiPortChange::Closed) return;
  const fabric::Port* port = fabric_.graph().port(event.port);
  const fabric::Hca* hca = port != nullptr ? fabric_.hca_of(*port) : nullptr;
  if (hca == nullptr) return;
  executor_.post([this, alive = alive_, hca] {
    if (*alive && !hca->present) end_those_of(*hca);
  });
}

// A request that ends may close its file, and open others.
void SaDevice::end_those_of(const fabric::Hca& hca) {
  for (;;) {
    SaFile* next = nullptr;
    for (const io::FileObject* open : device_.open_files()) {
      SaFile* file = open->context<SaFile>(device_);
      if (file != nullptr && file->is_of(hca) && !file->is_gone()) next = file;
    }
    if (next == nullptr) return;
    next->end();
  }
}

}  // namespace ib::services
