// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "cm/paths_internal.h"
#include "cm/timeouts.h"

#include <utility>

namespace ib::cm {

MadAddress address_of(const Path& path) {
  MadAddress address;
  address.port = path.port;
  address.pkey = path.pkey;
  address.sl = path.sl;
  address.local_lid = path.slid;
  address.remote_lid = path.dlid;
  address.is_global = path.is_global();
  if (address.is_global) {
    address.local_gid = path.sgid;
    address.remote_gid = path.dgid;
    address.flow_label = path.flow_label;
    address.traffic_class = path.traffic_class;
    address.hop_limit = path.hop_limit;
  }
  return address;
}

Path mirrored(const Path& path) {
  Path result = path;
  std::swap(result.slid, result.dlid);
  std::swap(result.sgid, result.dgid);
  return result;
}

bool fits(const Path& path) {
  return path.flow_label <= 0xfffff && path.sl <= 15 && path.rate <= 63 &&
         path.packet_lifetime <= kMaxExponent;
}

}  // namespace ib::cm
