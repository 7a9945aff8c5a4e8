// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Every bit pattern of a REQ has a meaning, so decoding cannot fail.
#include "cm/messages/req.h"

namespace ib::cm {

mad::Mad encode(const Req& req) {
  ReqWire wire;
  wire.local_comm_id = req.local_comm_id;
  wire.vendor_id = req.vendor.vendor_id;
  wire.service_id = req.service_id;
  wire.local_ca_guid = req.ca_guid;
  wire.local_qkey = req.qkey;
  wire.local_qpn = req.qpn;
  wire.responder_resources = req.responder_resources;
  wire.initiator_depth = req.initiator_depth;
  wire.remote_timeout_transport = static_cast<std::uint8_t>(
      put_bits(req.remote_cm_response_timeout, 0, 5) | put_bits(req.transport, 5, 2) |
      put_bits(req.flow_control ? 1 : 0, 7, 1));
  wire.starting_psn = req.starting_psn;
  wire.local_timeout_retry = static_cast<std::uint8_t>(
      put_bits(req.local_cm_response_timeout, 0, 5) | put_bits(req.retry_count, 5, 3));
  wire.pkey = req.pkey;
  wire.mtu_rnr = static_cast<std::uint8_t>(put_bits(req.path_mtu, 0, 4) |
                                           put_bits(req.rdc_exists ? 1 : 0, 4, 1) |
                                           put_bits(req.rnr_retry_count, 5, 3));
  wire.retries_srq = static_cast<std::uint8_t>(put_bits(req.max_cm_retries, 0, 4) |
                                               put_bits(req.srq ? 1 : 0, 4, 1) |
                                               put_bits(req.extended_transport, 5, 3));
  wire.primary = to_req_wire(req.primary);
  if (req.alternate) wire.alternate = to_req_wire(*req.alternate);
  put_bytes(wire.private_data, req.private_data);
  return mad_of(Attribute::Req, req.transaction_id, wire, req.vendor.options);
}

Req decode_req(const mad::Mad& mad) {
  const ReqWire wire = wire_of<ReqWire>(mad);
  const mad::MadHeader header = header_of(mad);
  Req req;
  req.transaction_id = header.transaction_id;
  req.local_comm_id = wire.local_comm_id;
  req.vendor = {wire.vendor_id, header.modifier};
  req.service_id = wire.service_id;
  req.ca_guid = wire.local_ca_guid;
  req.qkey = wire.local_qkey;
  req.qpn = wire.local_qpn;
  req.responder_resources = wire.responder_resources;
  req.initiator_depth = wire.initiator_depth;
  req.remote_cm_response_timeout = take_bits(wire.remote_timeout_transport, 0, 5);
  req.transport = take_bits(wire.remote_timeout_transport, 5, 2);
  req.extended_transport = take_bits(wire.retries_srq, 5, 3);
  req.flow_control = take_bits(wire.remote_timeout_transport, 7, 1) != 0;
  req.starting_psn = wire.starting_psn;
  req.local_cm_response_timeout = take_bits(wire.local_timeout_retry, 0, 5);
  req.retry_count = take_bits(wire.local_timeout_retry, 5, 3);
  req.pkey = wire.pkey;
  req.path_mtu = take_bits(wire.mtu_rnr, 0, 4);
  req.rdc_exists = take_bits(wire.mtu_rnr, 4, 1) != 0;
  req.rnr_retry_count = take_bits(wire.mtu_rnr, 5, 3);
  req.max_cm_retries = take_bits(wire.retries_srq, 0, 4);
  req.srq = take_bits(wire.retries_srq, 4, 1) != 0;
  req.primary = from_wire(wire.primary);
  req.primary.pkey = req.pkey;
  if (is_present(wire.alternate)) {
    req.alternate = from_wire(wire.alternate);
    req.alternate->pkey = req.pkey;
  }
  req.private_data = Bytes<kReqPrivateBytes>(wire.private_data);
  return req;
}

}  // namespace ib::cm
