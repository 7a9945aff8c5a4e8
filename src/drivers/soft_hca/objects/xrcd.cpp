// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// XRC domains [IBA1 annex A14]: shared by all processes that open the same file (device and inode).
#include "drivers/soft_hca/handlers.h"
#include "verbs/limits.h"

#include <fmt/format.h>

namespace ib::drivers {
namespace {

namespace limits = verbs::limits;
constexpr std::uint32_t kCreate = 1;
constexpr std::uint32_t kExclusive = 2;

Xrcd* find_shared(Core& core, const HcaFile& file, const control::OpenXrcdIn& in) {
  Xrcd* found = nullptr;
  core.xrcds.for_each([&](Xrcd& xrcd) {
    if (xrcd.ca == file.hca->index && xrcd.inode == in.inode && xrcd.device == in.device) {
      found = &xrcd;
    }
  });
  return found;
}

}  // namespace

void open_xrcd(Core& core, HcaFile& file, const control::OpenXrcdIn& in, io::IrpRef irp) {
  Xrcd* xrcd = in.inode != 0 ? find_shared(core, file, in) : nullptr;
  if ((in.flags & ~(kCreate | kExclusive)) != 0) {
    return fail(core, std::move(irp), Status::InvalidParameter,
                fmt::format("flags {:#x}", in.flags));
  }
  if (xrcd != nullptr && (in.flags & kExclusive) != 0) {
    return fail(core, std::move(irp), Status::AlreadyExists,
                "this file has an XRC domain already, and O_EXCL was given");
  }
  if (xrcd == nullptr && in.inode != 0 && (in.flags & kCreate) == 0) {
    return fail(core, std::move(irp), Status::NotFound,
                "this file has no XRC domain yet; O_CREAT would make one");
  }
  if (xrcd == nullptr) {
    std::string reason;
    xrcd =
        has_room(core, file, Kind::Xrcd, limits::kMaxXrcd, reason) ? core.xrcds.create() : nullptr;
    if (xrcd == nullptr) {
      return fail(core, std::move(irp), Status::InsufficientResources,
                  reason.empty() ? "the fabric's table of XRC domains is full" : reason);
    }
    xrcd->file = &file;
    xrcd->inode = in.inode;
    xrcd->device = in.device;
    xrcd->ca = file.hca->index;
  }
  if (xrcd->openers[&file]++ == 0) enter(core, file, Kind::Xrcd, xrcd->index);
  succeed(std::move(irp), xrcd->handle);
}

void close_xrcd(Core& core, HcaFile& file, const control::IndexIn& in, io::IrpRef irp) {
  Xrcd* xrcd = find_xrcd(core, file, in.index);
  if (xrcd == nullptr) {
    return fail_no_such(core, std::move(irp), Kind::Xrcd, in.index);
  }
  std::uint32_t& opened = xrcd->openers[&file];
  if (opened > 1) {
    --opened;
    return succeed(std::move(irp));
  }
  // Its own queues keep it open; those of other processes are their business.
  std::uint32_t qps = 0;
  for (const std::uint32_t handle : file.of(Kind::Qp)) {
    const Qp* qp = core.qps.find(handle);
    if (qp != nullptr && qp->xrcd == xrcd) ++qps;
  }
  std::uint32_t srqs = 0;
  for (const std::uint32_t handle : file.of(Kind::Srq)) {
    const Srq* srq = core.srqs.find(handle);
    if (srq != nullptr && srq->xrcd == xrcd) ++srqs;
  }
  if (qps + srqs != 0) {
    return fail(
        core, std::move(irp), Status::DeviceBusy,
        fmt::format("XRC domain {} is in use by {}", control::index_of(in.index),
                    list(count_of(qps, "queue pair"), count_of(srqs, "shared receive queue"))));
  }
  release(core, *xrcd, file);
  succeed(std::move(irp));
}

void release(Core& core, Xrcd& xrcd, HcaFile& opener) {
  xrcd.openers.erase(&opener);
  leave(core, opener, Kind::Xrcd, xrcd.index);
  if (xrcd.openers.empty()) {
    IB_ASSERT(xrcd.qps == 0 && xrcd.srqs == 0);
    core.xrcds.destroy(xrcd.index);
  }
}

}  // namespace ib::drivers
