// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The simple objects of api.h: each a handle and its destruction. A refusal (DeviceBusy) changes
// nothing; softibd being gone destroys everything.
#include "base/address.h"
#include "user/hca.h"

#include <fmt/format.h>

#include <string>

namespace ib::user {

using control::Code;

namespace {

// Destroying what went before, with softibd or the HCA, has nothing to do.
Status destroyed(Status status) {
  return Hca::is_gone(status) ? Status::Ok : status;
}

}  // namespace

Status ProtectionDomain::destroy() {
  if (const std::uint32_t users = addresses_.load(std::memory_order_relaxed); users != 0) {
    return failed(Status::DeviceBusy,
                  fmt::format("protection domain {} is in use by {} address handle{}", index(),
                              users, users == 1 ? "" : "s"));
  }
  return destroyed(hca_.command(Code::DeallocPd, control::IndexIn{handle_, 0}));
}

Status AddressHandle::destroy() {
  pd_.drop_address();
  pd_.hca().drop_address();
  return Status::Ok;
}

Status XrcDomain::destroy() {
  return destroyed(hca_.command(Code::CloseXrcd, control::IndexIn{handle_, 0}));
}

Status MemoryWindow::destroy() {
  return destroyed(hca_.command(Code::DeallocMw, control::IndexIn{handle_, 0}));
}

Status DeviceMemory::destroy() {
  if (!hca_.process().connection().is_mine()) return Status::Ok;
  std::lock_guard guard(hca_.process().connection().control_lock());
  const Status status = destroyed(hca_.command(Code::FreeDm, control::IndexIn{handle_, 0}));
  if (status == Status::Ok) hca_.remove_dm(handle_);
  return status;
}

Status MemoryRegion::destroy() {
  if (!hca_.process().connection().is_mine()) return Status::Ok;
  Regions& regions = hca_.process().regions();
  std::lock_guard guard(hca_.process().connection().control_lock());
  regions.hide(index());
  const Status status = destroyed(hca_.command(Code::DeregMr, control::IndexIn{handle_, 0}));
  if (status == Status::Ok) {
    regions.remove(index());
  } else {
    regions.undo(index());
  }
  return status;
}

Status MemoryRegion::reregister(std::uint32_t change, const control::RegMrIn& to) {
  Process& process = hca_.process();
  std::lock_guard guard(process.connection().control_lock());
  const hca::LocalKey& local = process.plane().local_keys().at(index());
  // The parts that do not change come from private memory.
  control::RegMrIn now = to;
  if ((change & 1) == 0) {
    now.address = reinterpret_cast<std::uintptr_t>(local.address);
    now.length = local.length;
    now.iova = local.iova;
  }
  if ((change & 2) == 0) now.pd = local.pd;
  if ((change & 4) == 0) now.access = local.access;
  control::ReregMrIn in;
  in.index = handle_;
  in.change = change;
  in.to = now;
  control::MrOut out;
  process.regions().hide(index());
  const auto done = process.connection().call_for(Code::ReregMr, hca_.file(), in, out);
  if (!done) {
    process.regions().undo(index());
    return done.error();
  }
  lkey_ = out.lkey;
  rkey_ = out.rkey;
  process.regions().change(index(), now, out, pointer_to(now.address), now.length);
  return Status::Ok;
}

}  // namespace ib::user
