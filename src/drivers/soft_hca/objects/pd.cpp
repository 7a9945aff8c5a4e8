// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Protection domains and address handles [IBA1 11.2.1.3, 11.2.3]. Both are only entries of private
// tables: posters take the PD's number from the objects that refer to it, and an address from the
// work request.
#include "drivers/soft_hca/handlers.h"
#include "verbs/address_check.h"
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
    return fail_no_such(core, std::move(irp), Kind::Pd, in.index);
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

namespace {

// The ports of an HCA and of its fabric, as the records have them.
class Ports : public verbs::AddressBook {
 public:
  Ports(const Core& core, const HcaFile& file) : fabric_(core.fabric), hca_(*file.hca) {}

  std::uint32_t ports() const override { return static_cast<std::uint32_t>(hca_.ports.size()); }
  verbs::LinkLayer link_layer(std::uint32_t port) const override {
    return hca_.ports[port - 1].link_layer;
  }
  std::uint32_t segment(std::uint32_t port) const override {
    return fabric_.graph().segment_of(hca_.ports[port - 1]);
  }
  verbs::Gid gid(std::uint32_t port, std::uint32_t index) const override {
    const auto& gids = hca_.ports[port - 1].gids;
    return index < gids.size() ? gids[index].gid : verbs::Gid{};
  }
  Owner owner_of(const verbs::Gid& gid) const override {
    const fabric::Port* port = fabric_.graph().find_port(gid);
    return port != nullptr ? Owner{port->link_layer, port->lid, fabric_.graph().segment_of(*port)}
                           : Owner{};
  }

 private:
  const fabric::Fabric& fabric_;
  const fabric::Hca& hca_;
};

}  // namespace

bool check_address(Core& core, HcaFile& file, verbs::AddressVector& av, std::string& reason) {
  reason = verbs::check_address(Ports(core, file), av);
  return reason.empty();
}

void create_ah(Core& core, HcaFile& file, const control::CreateAhIn& in, io::IrpRef irp) {
  Pd* pd = find_own(core.pds, file, in.pd);
  if (pd == nullptr) {
    return fail_no_such(core, std::move(irp), Kind::Pd, in.pd);
  }
  std::string reason;
  verbs::AddressVector av = in.av;
  if (!check_address(core, file, av, reason)) {
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
    return fail_no_such(core, std::move(irp), Kind::Ah, in.index);
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
