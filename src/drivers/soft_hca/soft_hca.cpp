// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "drivers/soft_hca/soft_hca.h"

#include "drivers/soft_hca/core_status.h"
#include "drivers/soft_hca/handlers.h"
#include "drivers/soft_hca/hca_device.h"
#include "drivers/soft_hca/hca_place.h"
#include "drivers/soft_hca/lifetime/process_slots.h"
#include "io/device_node.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

namespace ib::drivers {

namespace {

Session* session_of(Core& core, const io::FileObject& file) {
  const auto found = core.sessions.find(file.client().session);
  return found != core.sessions.end() ? found->second.get() : nullptr;
}

// The records outlive a FileObject or the other way round, so they meet by number.
HcaFile* find_file(Session& session, const fabric::Hca& hca, std::uint32_t number) {
  const auto found = std::find_if(session.files.begin(), session.files.end(), [&](const auto& f) {
    return f->number == number && f->hca == &hca && !f->closing;
  });
  return found != session.files.end() ? found->get() : nullptr;
}

void on_create(io::DeviceObject& device, io::IrpRef irp) {
  auto& self = static_cast<HcaDevice&>(device);
  Session* session = session_of(self.core, *irp->file);
  if (session == nullptr || session->slot == hca::kNone || session->ending) {
    return fail(self.core, std::move(irp), Status::InvalidState,
                "an HCA is opened by a process that has attached (Code::Attach)");
  }
  if (self.removed) {
    return fail(self.core, std::move(irp), Status::DeviceRemoved,
                fmt::format("HCA {} was pulled out", self.hca.name));
  }
  const bool on_its_node =
      std::any_of(session->node->hcas.begin(), session->node->hcas.end(),
                  [&](const fabric::Hca& hca) { return hca.index == self.hca.index; });
  if (!on_its_node) {
    return fail(
        self.core, std::move(irp), Status::NotFound,
        fmt::format("node {} has no HCA {} like this one", session->node->name, self.hca.name));
  }
  if (irp->out.size() < sizeof(control::OpenOut)) {
    const std::size_t room = irp->out.size();
    return fail(self.core, std::move(irp), Status::InvalidParameter,
                fmt::format("the output buffer has {} bytes, the answer {}", room,
                            sizeof(control::OpenOut)));
  }
  auto file = std::make_shared<HcaFile>();
  file->session = session;
  file->number = irp->file->number();
  file->hca = &self.hca;
  session->files.push_back(std::move(file));
  control::OpenOut out;
  self.hca.name.copy(out.ca.name.data(), out.ca.name.size() - 1);
  out.ca.node_guid = self.hca.node_guid;
  out.ca_index = self.hca.index;
  out.first_port = self.hca.first_port;
  succeed_with(std::move(irp), out);
}

void on_close(io::DeviceObject& device, io::IrpRef irp) {
  auto& self = static_cast<HcaDevice&>(device);
  Session* session = session_of(self.core, *irp->file);
  HcaFile* file = session != nullptr ? find_file(*session, self.hca, irp->file->number()) : nullptr;
  if (file == nullptr) return succeed(std::move(irp));  // its process is being torn down
  file->closing = true;
  const auto shared = std::find_if(session->files.begin(), session->files.end(),
                                   [&](const auto& f) { return f.get() == file; });
  tear_down(self.core, (*shared)->session->slot, {*shared},
            [&core = self.core, id = session->id, file, irp = std::move(irp)]() mutable {
              if (const auto owner = core.sessions.find(id); owner != core.sessions.end()) {
                std::erase_if(owner->second->files, [&](const auto& f) { return f.get() == file; });
              }
              succeed(std::move(irp));
            });
}

void on_control(io::DeviceObject& device, io::IrpRef irp) {
  auto& self = static_cast<HcaDevice&>(device);
  Session* session = session_of(self.core, *irp->file);
  HcaFile* file = session != nullptr ? find_file(*session, self.hca, irp->file->number()) : nullptr;
  if (file == nullptr) {
    return fail(self.core, std::move(irp), Status::Disconnected, "this file is closed");
  }
  dispatch_hca(self.core, *file, std::move(irp));
}

Result<std::unique_ptr<io::DeviceObject>> add_device(io::DriverObject& driver, io::DeviceNode& node,
                                                     std::string&) {
  Core& core = driver.extension<Core>();
  const auto& place = node.physical().extension<HcaPlace>();
  // It may be one that was not there when the fabric came up.
  core.counts.resize(core.fabric.hca_count());
  core.port_totals.resize(core.fabric.device_port_count());
  return std::unique_ptr<io::DeviceObject>(std::make_unique<HcaDevice>(
      core, place.hca, driver, fmt::format("{}/{} (soft_hca)", place.node.name, place.hca.name)));
}

}  // namespace

SoftHca::SoftHca(std::unique_ptr<Core> core)
    : core_(std::move(core)), status_(std::make_unique<CoreStatus>(*core_)) {}

Result<std::unique_ptr<SoftHca>> SoftHca::create(platform::Executor& executor,
                                                 fabric::Fabric& fabric,
                                                 platform::DeviceMemoryHost& host,
                                                 SoftHcaOptions options, std::string& reason) {
  if (fabric.device_port_count() > hca::kMaxPorts) {
    reason = fmt::format("a fabric of {} ports of HCAs; at most {}", fabric.device_port_count(),
                         hca::kMaxPorts);
    return Status::LimitExceeded;
  }
  auto core = std::make_unique<Core>(executor, fabric, host, options.max_memory,
                                     std::move(options.on_trace));
  IB_CHECK(core->memory.create(reason));
  core->fault.set(std::move(options.fault));
  core->memory.set_fault(core->fault);
  return std::unique_ptr<SoftHca>(new SoftHca(std::move(core)));
}

SoftHca::~SoftHca() {
  core_->later.abandon();
}

const DeviceStatus& SoftHca::status() const {
  return *status_;
}

io::DriverRegistry::Entry SoftHca::entry() {
  return [this](io::DriverObject& driver, std::string&) {
    driver.extension_pointer.set(core_.get());
    driver.add_device = &add_device;
    driver.on(io::Major::Create) = on_create;
    driver.on(io::Major::Close) = on_close;
    driver.on(io::Major::DeviceControl) = on_control;
    driver.on(io::Major::Pnp) = &on_hca_pnp;
    driver.on(io::Major::Power) = &on_hca_power;
    return Status::Ok;
  };
}

}  // namespace ib::drivers
