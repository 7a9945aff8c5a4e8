// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Device memory that programs allocate (ibv_alloc_dm): a piece of the heap.
#include "drivers/soft_hca/handlers.h"
#include "verbs/limits.h"

#include <fmt/format.h>

namespace ib::drivers {

namespace limits = verbs::limits;

void alloc_dm(Core& core, HcaFile& file, const control::AllocDmIn& in, io::IrpRef irp) {
  if (in.length == 0 || in.length > limits::kMaxDmSize || in.log_align > limits::kMaxDmLogAlign) {
    return fail(core, std::move(irp), Status::InvalidParameter,
                fmt::format("device memory of {} bytes, aligned to 2^{}; at most {} and 2^{}",
                            in.length, in.log_align, limits::kMaxDmSize, limits::kMaxDmLogAlign));
  }
  std::string reason;
  if (!has_room(core, file, Kind::DeviceMemory, limits::kMaxDm, reason)) {
    return fail(core, std::move(irp), Status::InsufficientResources, std::move(reason));
  }
  const auto offset = core.memory.allocate(in.length, reason, std::uint64_t{1} << in.log_align);
  if (!offset) return fail(core, std::move(irp), offset.error(), std::move(reason));
  Dm* dm = core.dms.create();
  if (dm == nullptr) {
    core.memory.release(*offset);
    return fail(core, std::move(irp), Status::InsufficientResources,
                "the fabric's table of device memory is full");
  }
  dm->file = &file;
  dm->offset = *offset;
  dm->length = in.length;
  enter(core, file, Kind::DeviceMemory, dm->index);
  succeed_with(std::move(irp), control::DmOut{dm->offset, dm->length}, dm->handle);
}

void free_dm(Core& core, HcaFile& file, const control::IndexIn& in, io::IrpRef irp) {
  Dm* dm = find_own(core.dms, file, in.index);
  if (dm == nullptr) {
    return fail_no_such(core, std::move(irp), Kind::DeviceMemory, in.index);
  }
  if (dm->regions != 0) {
    return fail(core, std::move(irp), Status::DeviceBusy,
                fmt::format("device memory {} is in use by {}", control::index_of(in.index),
                            count_of(dm->regions, "memory region")));
  }
  release(core, *dm);  // posters reach it only through regions, and those were quiesced
  succeed(std::move(irp));
}

void release(Core& core, Dm& dm) {
  core.memory.release(dm.offset);
  leave(core, *dm.file, Kind::DeviceMemory, dm.index);
  core.dms.destroy(dm.index);
}

}  // namespace ib::drivers
