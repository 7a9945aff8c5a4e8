// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Both layouts have the same fields by name.
#include "cm/messages/path_format.h"

#include "cm/messages/format.h"

namespace ib::cm {
namespace {

template <class Wire>
Wire to_wire(const Path& path) {
  Wire wire;
  wire.local_lid = path.slid;
  wire.remote_lid = path.dlid;
  wire.local_gid = path.sgid;
  wire.remote_gid = path.dgid;
  wire.flow_label = (path.flow_label & 0xfffff) << 4;
  wire.rate = path.rate & 0x3f;
  wire.traffic_class = path.traffic_class;
  wire.hop_limit = path.hop_limit;
  wire.sl_subnet_local = static_cast<std::uint8_t>(put_bits(path.sl, 0, 4) |
                                                   put_bits(path.subnet_local ? 1 : 0, 4, 1));
  wire.ack_timeout = put_bits(path.ack_timeout, 0, 5);
  return wire;
}

template <class Wire>
Path to_path(const Wire& wire) {
  Path path;
  path.slid = wire.local_lid;
  path.dlid = wire.remote_lid;
  path.sgid = wire.local_gid;
  path.dgid = wire.remote_gid;
  path.flow_label = wire.flow_label >> 4;
  path.rate = wire.rate & 0x3f;
  path.traffic_class = wire.traffic_class;
  path.hop_limit = wire.hop_limit;
  path.sl = take_bits(wire.sl_subnet_local, 0, 4);
  path.subnet_local = take_bits(wire.sl_subnet_local, 4, 1) != 0;
  path.ack_timeout = take_bits(wire.ack_timeout, 0, 5);
  // The timeout is at least the time of two packets [IBA1 12.7.34].
  path.packet_lifetime =
      static_cast<std::uint8_t>(path.ack_timeout == 0 ? 0 : path.ack_timeout - 1);
  return path;
}

}  // namespace

ReqPathWire to_req_wire(const Path& path) {
  return to_wire<ReqPathWire>(path);
}
LapPathWire to_lap_wire(const Path& path) {
  return to_wire<LapPathWire>(path);
}
Path from_wire(const ReqPathWire& wire) {
  return to_path(wire);
}
Path from_wire(const LapPathWire& wire) {
  return to_path(wire);
}
bool is_present(const ReqPathWire& wire) {
  return wire.local_lid != 0 || !verbs::is_zero(wire.local_gid);
}

}  // namespace ib::cm
