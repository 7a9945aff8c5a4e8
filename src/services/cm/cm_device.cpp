// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "services/cm/cm_device.h"

#include "io/irp_queue.h"
#include "services/cm/cm_file.h"

#include <memory>
#include <string>
#include <utility>

namespace ib::services {

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
  ServiceUser user = user_of(*irp);
  const fabric::Hca* hca = hca_of(self.service_.fabric(), user, irp);
  if (hca == nullptr) return;
  self.open(*hca, std::move(user), std::move(irp));
}

// The request waits in a queue of its own: it may be cancelled, and its memory be another's, before
// the node is open.
void CmDevice::open(const fabric::Hca& hca, ServiceUser user, io::IrpRef irp) {
  const auto queue = std::make_shared<io::IrpQueue>();
  queue->park(std::move(irp));
  service_.open(service_.fabric().node_of(hca), [this, &hca, queue, user = std::move(user)](
                                                    Status status, const std::string& reason) {
    auto opening = queue->take();
    if (!opening) return;
    if (status != Status::Ok) return (*std::move(opening)).fail(status, reason);
    auto file = std::make_unique<CmFile>(service_, hca, waiting_, user);
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
