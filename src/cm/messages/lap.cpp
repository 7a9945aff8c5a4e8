// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The length in an APR is the only field of these messages that can contradict another one.
#include "cm/messages/lap.h"

namespace ib::cm {

mad::Mad encode(const Lap& lap) {
  LapWire wire;
  wire.local_comm_id = lap.ids.local;
  wire.remote_comm_id = lap.ids.remote;
  wire.remote_qpn = lap.remote_qpn;
  wire.remote_timeout = put_bits(lap.remote_cm_response_timeout, 0, 5);
  wire.alternate = to_lap_wire(lap.alternate);
  put_bytes(wire.private_data, lap.private_data);
  return mad_of(Attribute::Lap, lap.ids.transaction_id, wire);
}

Lap decode_lap(const mad::Mad& mad) {
  const LapWire wire = wire_of<LapWire>(mad);
  return {{header_of(mad).transaction_id, wire.local_comm_id, wire.remote_comm_id},
          wire.remote_qpn,
          take_bits(wire.remote_timeout, 0, 5),
          from_wire(wire.alternate),
          Bytes<kLapPrivateBytes>(wire.private_data)};
}

mad::Mad encode(const Apr& apr) {
  AprWire wire;
  wire.local_comm_id = apr.ids.local;
  wire.remote_comm_id = apr.ids.remote;
  wire.info_length = static_cast<std::uint8_t>(apr.info.size());
  wire.status = apr.status;
  put_bytes(wire.info, apr.info);
  put_bytes(wire.private_data, apr.private_data);
  return mad_of(Attribute::Apr, apr.ids.transaction_id, wire);
}

Result<Apr> decode_apr(const mad::Mad& mad) {
  const AprWire wire = wire_of<AprWire>(mad);
  if (wire.info_length > wire.info.size()) return Status::Malformed;
  Apr apr;
  apr.ids = {header_of(mad).transaction_id, wire.local_comm_id, wire.remote_comm_id};
  apr.status = wire.status;
  apr.info = AdditionalInfo(std::span(wire.info).first(wire.info_length));
  apr.private_data = Bytes<kAprPrivateBytes>(wire.private_data);
  return apr;
}

}  // namespace ib::cm
