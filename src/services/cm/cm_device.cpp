// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "services/cm/cm_device.h"

#include "al/service_file.h"
#include "io/irp_queue.h"
#include "services/cm/cm_file.h"

#include <algorithm>
#include <array>
#include <memory>
#include <utility>

namespace ib::services {

namespace {

std::string name_in(const std::array<char, 64>& text) {
  return {text.begin(), std::ranges::find(text, '\0')};
}

}  // namespace

CmDevice::CmDevice(CmService& service) : service_(service) {
  driver_.on(io::Major::Create) = &CmDevice::create;
  driver_.on(io::Major::Close) = &CmDevice::close;
  driver_.on(io::Major::DeviceControl) = &CmDevice::control;
  device_.set_extension(this);
  const Status attached = device_.attach(waiting_);
  IB_ASSERT(attached == Status::Ok);
}

void CmDevice::create(io::DeviceObject& device, io::IrpRef irp) {
  CmDevice& self = device.extension<CmDevice>();
  const auto in = irp->input<al::ServiceOpenIn>();
  const fabric::Fabric& fabric = self.service_.fabric();
  const fabric::Hca* hca = in ? fabric.find_hca(in->ca_index) : nullptr;
  if (hca == nullptr || fabric.node_of(*hca).name != irp->file->client().node) {
    return std::move(irp).fail(Status::NotFound, "there is no such HCA");
  }
  if (!hca->present) {
    return std::move(irp).fail(Status::DeviceRemoved, "HCA " + hca->name + " was pulled out");
  }
  self.open(*hca, name_in(in->driver), std::move(irp));
}

// The request waits in a queue of its own: it may be cancelled, and its memory be another's, before
// the node is open.
void CmDevice::open(const fabric::Hca& hca, std::string driver, io::IrpRef irp) {
  const auto queue = std::make_shared<io::IrpQueue>();
  queue->park(std::move(irp));
  service_.open(service_.fabric().node_of(hca), [this, &hca, queue, driver = std::move(driver)](
                                                    Status status, const std::string& reason) {
    auto opening = queue->take();
    if (!opening) return;
    if (status != Status::Ok) return (*std::move(opening)).fail(status, reason);
    auto file = std::make_unique<CmFile>(service_, hca, waiting_, driver);
    (*opening)->file->set_context(device_, file.release());
    (*std::move(opening)).complete(Status::Ok);
  });
}

void CmDevice::close(io::DeviceObject& device, io::IrpRef irp) {
  const std::unique_ptr<CmFile> file(irp->file->context<CmFile>(device));
  irp->file->set_context<CmFile>(device, nullptr);
  std::move(irp).complete(Status::Ok);
}

void CmDevice::control(io::DeviceObject& device, io::IrpRef irp) {
  if (device.lower() == nullptr) {
    io::IrpQueue* const queue = irp->parameters.get<io::IrpQueue>();
    return queue->park(std::move(irp));
  }
  CmFile* const file = irp->file->context<CmFile>(device);
  file->control(std::move(irp));
}

void CmDevice::for_each_object(const CmObjectVisitor& visit) const {
  for (const io::FileObject* open : device_.open_files()) {
    const CmFile* file = open->context<CmFile>(device_);
    if (file != nullptr) file->for_each_object(visit);  // it is not being opened
  }
}

}  // namespace ib::services
