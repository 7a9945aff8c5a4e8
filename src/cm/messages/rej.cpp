// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The length in a REJ is the only field of these messages that can contradict another one.
#include "cm/messages/rej.h"

namespace ib::cm {

mad::Mad encode(const Rej& rej) {
  RejWire wire;
  wire.local_comm_id = rej.ids.local;
  wire.remote_comm_id = rej.ids.remote;
  wire.message_rejected = put_bits(rej.message, 0, 2);
  wire.info_length = put_bits(static_cast<std::uint32_t>(rej.info.size()), 0, 7);
  wire.reason = rej.reason;
  put_bytes(wire.info, rej.info);
  put_bytes(wire.private_data, rej.private_data);
  return mad_of(Attribute::Rej, rej.ids.transaction_id, wire);
}

Result<Rej> decode_rej(const mad::Mad& mad) {
  const RejWire wire = wire_of<RejWire>(mad);
  const std::size_t length = take_bits(wire.info_length, 0, 7);
  if (length > wire.info.size()) return Status::Malformed;
  Rej rej;
  rej.ids = {header_of(mad).transaction_id, wire.local_comm_id, wire.remote_comm_id};
  rej.message = take_bits(wire.message_rejected, 0, 2);
  rej.reason = wire.reason;
  rej.info = AdditionalInfo(std::span(wire.info).first(length));
  rej.private_data = Bytes<kRejPrivateBytes>(wire.private_data);
  return rej;
}

mad::Mad encode(const Mra& mra) {
  MraWire wire;
  wire.local_comm_id = mra.ids.local;
  wire.remote_comm_id = mra.ids.remote;
  wire.message = put_bits(mra.message, 0, 2);
  wire.service_timeout = put_bits(mra.service_timeout, 0, 5);
  put_bytes(wire.private_data, mra.private_data);
  return mad_of(Attribute::Mra, mra.ids.transaction_id, wire);
}

Mra decode_mra(const mad::Mad& mad) {
  const MraWire wire = wire_of<MraWire>(mad);
  return {{header_of(mad).transaction_id, wire.local_comm_id, wire.remote_comm_id},
          take_bits(wire.message, 0, 2),
          take_bits(wire.service_timeout, 0, 5),
          Bytes<kMraPrivateBytes>(wire.private_data)};
}

}  // namespace ib::cm
