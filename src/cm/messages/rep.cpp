// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The three bytes of a REP's vendor ID are apart.
#include "cm/messages/rep.h"

namespace ib::cm {

mad::Mad encode(const Rep& rep) {
  RepWire wire;
  wire.local_comm_id = rep.ids.local;
  wire.remote_comm_id = rep.ids.remote;
  wire.local_qkey = rep.qkey;
  wire.local_qpn = rep.qpn;
  wire.local_eecn = rep.eecn;
  wire.vendor_id_high = static_cast<std::uint8_t>(rep.vendor.vendor_id >> 16);
  wire.vendor_id_middle = static_cast<std::uint8_t>(rep.vendor.vendor_id >> 8);
  wire.vendor_id_low = static_cast<std::uint8_t>(rep.vendor.vendor_id);
  wire.starting_psn = rep.starting_psn;
  wire.responder_resources = rep.responder_resources;
  wire.initiator_depth = rep.initiator_depth;
  wire.delay_failover = static_cast<std::uint8_t>(put_bits(rep.target_ack_delay, 0, 5) |
                                                  put_bits(rep.failover, 5, 2) |
                                                  put_bits(rep.flow_control ? 1 : 0, 7, 1));
  wire.rnr_srq = static_cast<std::uint8_t>(put_bits(rep.rnr_retry_count, 0, 3) |
                                           put_bits(rep.srq ? 1 : 0, 3, 1));
  wire.local_ca_guid = rep.ca_guid;
  put_bytes(wire.private_data, rep.private_data);
  return mad_of(Attribute::Rep, rep.ids.transaction_id, wire, rep.vendor.options);
}

Rep decode_rep(const mad::Mad& mad) {
  const RepWire wire = wire_of<RepWire>(mad);
  const mad::MadHeader header = header_of(mad);
  Rep rep;
  rep.ids = {header.transaction_id, wire.local_comm_id, wire.remote_comm_id};
  rep.qkey = wire.local_qkey;
  rep.qpn = wire.local_qpn;
  rep.eecn = wire.local_eecn;
  rep.vendor.vendor_id = static_cast<std::uint32_t>(
      wire.vendor_id_high << 16 | wire.vendor_id_middle << 8 | wire.vendor_id_low);
  rep.vendor.options = header.modifier;
  rep.starting_psn = wire.starting_psn;
  rep.responder_resources = wire.responder_resources;
  rep.initiator_depth = wire.initiator_depth;
  rep.target_ack_delay = take_bits(wire.delay_failover, 0, 5);
  rep.failover = take_bits(wire.delay_failover, 5, 2);
  rep.flow_control = take_bits(wire.delay_failover, 7, 1) != 0;
  rep.rnr_retry_count = take_bits(wire.rnr_srq, 0, 3);
  rep.srq = take_bits(wire.rnr_srq, 3, 1) != 0;
  rep.ca_guid = wire.local_ca_guid;
  rep.private_data = Bytes<kRepPrivateBytes>(wire.private_data);
  return rep;
}

mad::Mad encode(const Rtu& rtu) {
  RtuWire wire{rtu.ids.local, rtu.ids.remote, {}};
  put_bytes(wire.private_data, rtu.private_data);
  return mad_of(Attribute::Rtu, rtu.ids.transaction_id, wire);
}

Rtu decode_rtu(const mad::Mad& mad) {
  const RtuWire wire = wire_of<RtuWire>(mad);
  return {{header_of(mad).transaction_id, wire.local_comm_id, wire.remote_comm_id},
          Bytes<kRtuPrivateBytes>(wire.private_data)};
}

}  // namespace ib::cm
