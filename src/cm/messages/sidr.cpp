// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The vendor ID of a SIDR_REP has its last byte behind the QPN.
#include "cm/messages/sidr.h"

namespace ib::cm {

mad::Mad encode(const SidrReq& req) {
  SidrReqWire wire;
  wire.request_id = req.request_id;
  wire.pkey = req.pkey;
  wire.service_id = req.service_id;
  put_bytes(wire.private_data, req.private_data);
  return mad_of(Attribute::SidrReq, req.transaction_id, wire);
}

SidrReq decode_sidr_req(const mad::Mad& mad) {
  const SidrReqWire wire = wire_of<SidrReqWire>(mad);
  return {header_of(mad).transaction_id, wire.request_id, wire.pkey, wire.service_id,
          Bytes<kSidrReqPrivateBytes>(wire.private_data)};
}

mad::Mad encode(const SidrRep& rep) {
  SidrRepWire wire;
  wire.request_id = rep.request_id;
  wire.status = rep.status;
  wire.info_length = static_cast<std::uint8_t>(rep.info.size());
  wire.vendor_id_high = static_cast<std::uint16_t>(rep.vendor.vendor_id >> 8);
  wire.vendor_id_low = static_cast<std::uint8_t>(rep.vendor.vendor_id);
  wire.qpn = rep.qpn;
  wire.service_id = rep.service_id;
  wire.qkey = rep.qkey;
  put_bytes(wire.info, rep.info);
  put_bytes(wire.private_data, rep.private_data);
  return mad_of(Attribute::SidrRep, rep.transaction_id, wire, rep.vendor.options);
}

Result<SidrRep> decode_sidr_rep(const mad::Mad& mad) {
  const SidrRepWire wire = wire_of<SidrRepWire>(mad);
  if (wire.info_length > wire.info.size()) return Status::Malformed;
  const mad::MadHeader header = header_of(mad);
  SidrRep rep;
  rep.transaction_id = header.transaction_id;
  rep.request_id = wire.request_id;
  rep.status = wire.status;
  rep.qpn = wire.qpn;
  rep.service_id = wire.service_id;
  rep.qkey = wire.qkey;
  rep.vendor = {static_cast<std::uint32_t>(wire.vendor_id_high << 8 | wire.vendor_id_low),
                header.modifier};
  rep.info = AdditionalInfo(std::span(wire.info).first(wire.info_length));
  rep.private_data = Bytes<kSidrRepPrivateBytes>(wire.private_data);
  return rep;
}

}  // namespace ib::cm
