// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Decoding cannot fail: no field has a value that is not allowed.
#include "cm/messages/dreq.h"

namespace ib::cm {

mad::Mad encode(const Dreq& dreq) {
  DreqWire wire;
  wire.local_comm_id = dreq.ids.local;
  wire.remote_comm_id = dreq.ids.remote;
  wire.remote_qpn = dreq.remote_qpn;
  put_bytes(wire.private_data, dreq.private_data);
  return mad_of(Attribute::Dreq, dreq.ids.transaction_id, wire);
}

Dreq decode_dreq(const mad::Mad& mad) {
  const DreqWire wire = wire_of<DreqWire>(mad);
  return {{header_of(mad).transaction_id, wire.local_comm_id, wire.remote_comm_id},
          wire.remote_qpn,
          Bytes<kDreqPrivateBytes>(wire.private_data)};
}

mad::Mad encode(const Drep& drep) {
  DrepWire wire{drep.ids.local, drep.ids.remote, {}};
  put_bytes(wire.private_data, drep.private_data);
  return mad_of(Attribute::Drep, drep.ids.transaction_id, wire);
}

Drep decode_drep(const mad::Mad& mad) {
  const DrepWire wire = wire_of<DrepWire>(mad);
  return {{header_of(mad).transaction_id, wire.local_comm_id, wire.remote_comm_id},
          Bytes<kDrepPrivateBytes>(wire.private_data)};
}

}  // namespace ib::cm
