// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Tearing down whatever a file or process owns: hide all of it, wait once for posters, then release
// it kind by kind, users before used. Requests that still wait for posters find their object gone.
#include "drivers/soft_hca/handlers.h"
#include "drivers/soft_hca/lifetime/process_slots.h"

#include <algorithm>

namespace ib::drivers {
namespace {

// Handles change while objects are released.
std::vector<std::uint32_t> handles(HcaFile& file, Kind kind) {
  const auto& set = file.of(kind);
  return {set.begin(), set.end()};
}

void hide_all(Core& core, HcaFile& file) {
  for (const std::uint32_t index : handles(file, Kind::Qp)) {
    if (Qp& qp = *core.qps.find(index); !qp.dying) (void)drop_holder(core, qp, file);
  }
  for (const std::uint32_t index : handles(file, Kind::Srq)) hide(core, *core.srqs.find(index));
  for (const std::uint32_t index : handles(file, Kind::Cq)) hide(core, *core.cqs.find(index));
  for (const Kind kind : {Kind::Window, Kind::Region}) {
    for (const std::uint32_t index : handles(file, kind)) hide(core, *core.keys.find(index));
  }
}

void release_all(Core& core, HcaFile& file) {
  for (const std::uint32_t index : handles(file, Kind::Qp)) release(core, *core.qps.find(index));
  for (const std::uint32_t index : handles(file, Kind::Srq)) release(core, *core.srqs.find(index));
  for (const std::uint32_t index : handles(file, Kind::Cq)) release(core, *core.cqs.find(index));
  for (const std::uint32_t index : handles(file, Kind::Ah)) release(core, *core.ahs.find(index));
  for (const Kind kind : {Kind::Window, Kind::Region}) {
    for (const std::uint32_t index : handles(file, kind)) release(core, *core.keys.find(index));
  }
  for (const std::uint32_t index : handles(file, Kind::DeviceMemory)) {
    release(core, *core.dms.find(index));
  }
  for (const std::uint32_t index : handles(file, Kind::Xrcd)) {
    release(core, *core.xrcds.find(index), file);
  }
  for (const std::uint32_t index : handles(file, Kind::Pd)) release(core, *core.pds.find(index));
}

}  // namespace

void tear_down(Core& core, std::uint32_t slot, std::vector<std::shared_ptr<HcaFile>> files,
               Once done) {
  for (const auto& file : files) hide_all(core, *file);
  core.after_quiescence(slot, [&core, files = std::move(files), done = std::move(done)]() mutable {
    // If two teardowns of a file overlap (Close, then the end of its process), the second finds
    // nothing left.
    for (const auto& file : files) release_all(core, *file);
    done();
  });
}

}  // namespace ib::drivers
