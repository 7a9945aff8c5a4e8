// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The memory that a region is to cover [IBA1 10.6.2], checked.
#pragma once

#include "drivers/soft_hca/core.h"

#include <cstdint>
#include <string>

namespace ib::drivers {

struct Extent {
  Dm* dm = nullptr;
  std::uint64_t address = 0;
  std::uint64_t length = 0;
  std::uint64_t iova = 0;    // follows from the access flags too
  std::uint64_t ranges = 0;  // a RangeList in device memory, the owner's to release; 0: none
};

// InvalidParameter; NotSupported: memory that keeps its content without power.
Status check_access(std::uint32_t flags, std::string& reason);
// InvalidParameter; NotFound: there is no such device memory.
Status check_extent(Core& core, HcaFile& file, const control::RegMrIn& in, Extent& out,
                    std::string& reason);
// Writes the list of ranges. Also InsufficientResources.
Status make_extent(Core& core, HcaFile& file, const control::PhysicalIn& in, Extent& out,
                   std::string& reason);

}  // namespace ib::drivers
