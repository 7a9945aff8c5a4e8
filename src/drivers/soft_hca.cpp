// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "drivers/soft_hca.h"

#include "drivers/handlers.h"
#include "drivers/slots.h"
#include "drivers/status.h"

#include <algorithm>
#include <vector>

namespace ib::drivers {

// What each functional device leaves in its extension.
struct HcaDevice {
  HcaDevice(Core& core_, fabric::Hca& hca_, io::DriverObject& driver, std::string name)
      : core(core_), hca(hca_), device(driver, std::move(name), io::DeviceKind::Functional) {
    device.set_extension(this);
  }
  Core& core;
  fabric::Hca& hca;
  io::DeviceObject device;
};

namespace {

Session* session_of(Core& core, const io::FileObject& file) {
  const auto found = core.sessions.find(file.client().session);
  return found != core.sessions.end() ? found->second.get() : nullptr;
}

// The books outlive a FileObject or the other way round, so they meet by number.
HcaFile* find_file(Session& session, const fabric::Hca& hca, std::uint32_t number) {
  const auto found = std::find_if(session.files.begin(), session.files.end(), [&](const auto& f) {
    return f->number == number && f->hca == &hca && !f->closing;
  });
  return found != session.files.end() ? found->get() : nullptr;
}

void on_create(io::DeviceObject& device, io::IrpRef irp) {
  auto& self = device.extension<HcaDevice>();
  Session* session = session_of(self.core, *irp->file);
  if (session == nullptr || session->slot == hca::kNone || session->ending) {
    return fail(self.core, std::move(irp), Status::InvalidState,
                "an HCA is opened by a process that has attached (Code::Attach)");
  }
  const bool on_its_node =
      std::any_of(session->node->hcas.begin(), session->node->hcas.end(),
                  [&](const fabric::Hca& hca) { return hca.index == self.hca.index; });
  if (!on_its_node) {
    return fail(self.core, std::move(irp), Status::NotFound,
                say("node ", session->node->name, " has no HCA ", self.hca.name, " like this one"));
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
  auto& self = device.extension<HcaDevice>();
  Session* session = session_of(self.core, *irp->file);
  HcaFile* file = session != nullptr ? find_file(*session, self.hca, irp->file->number()) : nullptr;
  if (file == nullptr) return succeed(std::move(irp));  // its process is being torn down
  file->closing = true;
  const auto shared = std::find_if(session->files.begin(), session->files.end(),
                                   [&](const auto& f) { return f.get() == file; });
  tear_down(self.core, {*shared},
            [&core = self.core, id = session->id, file, irp = std::move(irp)]() mutable {
              if (const auto owner = core.sessions.find(id); owner != core.sessions.end()) {
                std::erase_if(owner->second->files, [&](const auto& f) { return f.get() == file; });
              }
              succeed(std::move(irp));
            });
}

void on_control(io::DeviceObject& device, io::IrpRef irp) {
  auto& self = device.extension<HcaDevice>();
  Session* session = session_of(self.core, *irp->file);
  HcaFile* file = session != nullptr ? find_file(*session, self.hca, irp->file->number()) : nullptr;
  if (file == nullptr) {
    return fail(self.core, std::move(irp), Status::Disconnected, "this file is closed");
  }
  dispatch_hca(self.core, *file, std::move(irp));
}

// `\Device\ibal\<CA GUID>`, the name under which verbs are opened.
std::string device_name(const fabric::Hca& hca) {
  std::string digits = hex(hca.node_guid).substr(2);
  return "\\Device\\ibal\\" + std::string(16 - digits.size(), '0') + digits;
}

}  // namespace

struct SoftHca::Devices {
  explicit Devices(Core& core) : driver("soft_hca"), status(core) {
    driver.on(io::Major::Create) = on_create;
    driver.on(io::Major::Close) = on_close;
    driver.on(io::Major::DeviceControl) = on_control;
    for (fabric::Node& node : core.fabric.nodes()) {
      for (fabric::Hca& hca : node.hcas) {
        devices.push_back(std::make_unique<HcaDevice>(core, hca, driver, device_name(hca)));
      }
    }
  }
  io::DriverObject driver;
  std::vector<std::unique_ptr<HcaDevice>> devices;  // by index of the HCA
  CoreStatus status;
};

SoftHca::SoftHca(std::unique_ptr<Core> core) : core_(std::move(core)) {}

Result<std::unique_ptr<SoftHca>> SoftHca::create(platform::Executor& executor,
                                                 fabric::Fabric& fabric,
                                                 platform::DeviceMemoryHost& host,
                                                 SoftHcaOptions options, std::string& reason) {
  if (fabric.port_count() > hca::kMaxPorts) {
    reason = say("a fabric of ", fabric.port_count(), " ports; at most ", hca::kMaxPorts);
    return Status::LimitExceeded;
  }
  auto core = std::make_unique<Core>(executor, fabric, host, options.max_memory,
                                     std::move(options.on_trace));
  IB_CHECK(core->memory.create(reason));
  for (const fabric::Node& node : fabric.nodes()) {
    for (const fabric::Hca& hca : node.hcas) {
      for (const fabric::Port& port : hca.ports) {
        hca::PortEntry& entry = *core->arena().port(hca.first_port + port.number - 1);
        entry.lid = port.lid;
        entry.state.store(static_cast<std::uint32_t>(port.state), std::memory_order_release);
      }
    }
  }
  auto made = std::unique_ptr<SoftHca>(new SoftHca(std::move(core)));
  made->devices_ = std::make_unique<Devices>(*made->core_);
  return made;
}

SoftHca::~SoftHca() {
  core_->later.abandon();
}

io::DeviceObject* SoftHca::device(std::uint32_t hca_index) {
  return hca_index < devices_->devices.size() ? &devices_->devices[hca_index]->device : nullptr;
}

const DeviceStatus& SoftHca::status() const {
  return devices_->status;
}

}  // namespace ib::drivers
