// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// umad0, issm0, ... of the ports of a node, which libibumad looks for: their character devices, and
// their folders in the tree of devices and in the class infiniband_mad.
#pragma once

#include "drivers/sysfs/sysfs_items_internal.h"

#include <string>
#include <vector>

namespace ib::drivers::sysfs {

// "umad0", "issm0", ...: of the HCAs that are there.
std::vector<std::string> mad_names(const View& view);
// /dev/infiniband/umad0 and the like.
Found mad_char_device(const View& view, Rest rest);
// /sys/class/infiniband_mad.
Found mad_class(const View& view, Rest rest);
// The folder infiniband_mad of the device of an HCA.
Found mad_folder(const Place& place, Rest rest);

}  // namespace ib::drivers::sysfs
