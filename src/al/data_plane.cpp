// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "al/data_plane.h"

#include "hca/layout/doorbell.h"
#include "hca/memory/op_scope.h"

namespace ib::al {

DataPlane::DataPlane(System& system, io::FileObject& zero, std::uint32_t slot)
    : system_(system),
      slot_(slot),
      poster_(system, zero),
      plane_(system.arena, poster_, slot, hca::Path::Auto) {}

void DataPlane::start() {
  plane_.introduce({system_.host.pid(), system_.host.nameplate()});
  poster_.set_plane(&plane_);
}

void DataPlane::listen() {
  system_.arena.slot(slot_)->waiting.store(hca::kListens, std::memory_order_seq_cst);
  hca::OpScope scope(plane_, hca::executing::kOwn);
  plane_.serve_bounces();
}

}  // namespace ib::al
