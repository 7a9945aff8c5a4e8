// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Protection domains and address handles [IBA1 11.2.1.3, 11.2.3]. Both are only books: posters take
// the PD's number from what refers to it, and an address from the work request.
#include "drivers/soft_hca/handlers.h"
#include "verbs/limits.h"

#include <fmt/format.h>

namespace ib::drivers {

namespace limits = verbs::limits;

void alloc_pd(Core& core, HcaFile& file, io::IrpRef irp) {
  std::string reason;
  if (!has_room(core, file, Kind::Pd, limits::kMaxPd, reason)) {
    return fail(core, std::move(irp), Status::InsufficientResources, std::move(reason));
  }
  Pd* pd = core.pds.create();
  if (pd == nullptr) {
    return fail(core, std::move(irp), Status::InsufficientResources,
                "the fabric's table of protection domains is full");
  }
  pd->file = &file;
  enter(core, file, Kind::Pd, pd->index);
  succeed(std::move(irp), pd->handle);
}

void dealloc_pd(Core& core, HcaFile& file, const control::IndexIn& in, io::IrpRef irp) {
  Pd* pd = find_own(core.pds, file, in.index);
  if (pd == nullptr) {
    return fail(core, std::move(irp), Status::InvalidParameter, no_such(Kind::Pd, in.index));
  }
  const std::string users =
      list(count_of(pd->regions, "memory region"), count_of(pd->windows, "memory window"),
           count_of(pd->qps, "queue pair"), count_of(pd->srqs, "shared receive queue"),
           count_of(pd->ahs, "address handle"));
  if (!users.empty()) {
    return fail(
        core, std::move(irp), Status::DeviceBusy,
        fmt::format("protection domain {} is in use by {}", control::index_of(in.index), users));
  }
  release(core, *pd);
  succeed(std::move(irp));
}

void release(Core& core, Pd& pd) {
  leave(core, *pd.file, Kind::Pd, pd.index);
  core.pds.destroy(pd.index);
}

bool check_address(HcaFile& file, const verbs::AddressVector& av, std::string& reason) {
  const fabric::Port* port = find_port(file, av.port);
  if (port == nullptr) {
    reason = fmt::format("address vector: {}", no_such_port(file, av.port));
  } else if (av.is_global != 0 && av.sgid_index != 0) {
    reason = fmt::format("address vector: sgid_index {}, but port {} has a GID at index 0 only",
                         av.sgid_index, av.port);
  } else if (av.sl > 15) {
    reason = fmt::format("address vector: service level {} is above 15", av.sl);
  } else if (av.flow_label > 0xfffff) {
    reason = fmt::format("address vector: flow label {:#x} has more than 20 bits", av.flow_label);
  } else if (av.is_global == 0 && av.dlid == 0) {
    reason =
        "address vector: LID 0 names no port; give the LID of the other side's port "
        "(ibv_query_port)";
  } else {
    return true;
  }
  return false;
}

// A connection's global address is looked up when it is modified, user clients look up theirs;
// nobody would for this one, which is a kernel client's.
static bool names_port(const verbs::AddressVector& av, std::string& reason) {
  constexpr std::uint8_t kMulticastGid = 0xff;
  if (av.dlid != 0 || av.dgid[0] == kMulticastGid) return true;
  reason = "address vector: a destination GID alone is not enough; give the LID too";
  return false;
}

void create_ah(Core& core, HcaFile& file, const control::CreateAhIn& in, io::IrpRef irp) {
  Pd* pd = find_own(core.pds, file, in.pd);
  if (pd == nullptr) {
    return fail(core, std::move(irp), Status::InvalidParameter, no_such(Kind::Pd, in.pd));
  }
  std::string reason;
  if (!check_address(file, in.av, reason) || !names_port(in.av, reason)) {
    return fail(core, std::move(irp), Status::InvalidParameter, std::move(reason));
  }
  Ah* ah = has_room(core, file, Kind::Ah, limits::kMaxAh, reason) ? core.ahs.create() : nullptr;
  if (ah == nullptr) {
    return fail(core, std::move(irp), Status::InsufficientResources,
                reason.empty() ? "the fabric's table of address handles is full" : reason);
  }
  ah->file = &file;
  ah->pd = pd;
  ++pd->ahs;
  enter(core, file, Kind::Ah, ah->index);
  succeed(std::move(irp), ah->handle);
}

void destroy_ah(Core& core, HcaFile& file, const control::IndexIn& in, io::IrpRef irp) {
  Ah* ah = find_own(core.ahs, file, in.index);
  if (ah == nullptr) {
    return fail(core, std::move(irp), Status::InvalidParameter, no_such(Kind::Ah, in.index));
  }
  release(core, *ah);
  succeed(std::move(irp));
}

void release(Core& core, Ah& ah) {
  --ah.pd->ahs;
  leave(core, *ah.file, Kind::Ah, ah.index);
  core.ahs.destroy(ah.index);
}

}  // namespace ib::drivers
