// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "services/sa/sa_message.h"

#include "mad/rmpp_header.h"
#include "sa/records/header.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace ib::services {
namespace {

mad::MadHeader sa_header(std::uint8_t method, std::uint16_t attribute) {
  mad::MadHeader header;
  header.base_version = mad::kBaseVersion;
  header.mgmt_class = sa::kMgmtClass;
  header.class_version = sa::kClassVersion;
  header.method = method;
  header.attribute = attribute;
  return header;
}

void put_data(sa::SaMad& mad, std::span<const std::byte> data) {
  std::copy_n(data.begin(), std::min(data.size(), mad.data.size()), mad.data.begin());
}

}  // namespace

mad::Mad sa_request(const sa::Outgoing& outgoing) {
  sa::SaMad mad;
  mad.header = sa_header(outgoing.method, outgoing.attribute);
  mad.sa.component_mask = outgoing.components;
  put_data(mad, outgoing.record);
  return std::bit_cast<mad::Mad>(mad);
}

mad::Mad sa_report(const sa::Notice& notice) {
  sa::SaMad mad;
  mad.header = sa_header(sa::method::kReport, sa::attribute::kNotice);
  put_data(mad, sa::encode(notice));
  return std::bit_cast<mad::Mad>(mad);
}

mad::Mad sa_report_response(const mad::MadHeader& report, std::span<const std::byte> data) {
  sa::SaMad mad;
  mad.header = sa_header(sa::method::kReportResp, sa::attribute::kNotice);
  mad.header.transaction_id = report.transaction_id;
  put_data(mad, data);
  return std::bit_cast<mad::Mad>(mad);
}

std::span<const std::byte> sa_data(const GsiMessage& message) {
  return message.bytes.size() > sa::kDataOffset ? message.bytes.subspan(sa::kDataOffset)
                                                : std::span<const std::byte>{};
}

sa::Request sa_request_of(const GsiMessage& message) {
  sa::SaMad mad;
  std::memcpy(&mad, message.bytes.data(), std::min(message.bytes.size(), sizeof mad));
  sa::Request request;
  request.lid = message.from.remote.lid;
  request.qpn = message.from.remote.qpn;
  if (message.from.remote.route) request.gid = message.from.remote.route->gid;
  request.method = mad.header.method;
  request.attribute = mad.header.attribute;
  request.modifier = mad.header.modifier;
  request.sm_key = mad.sa.sm_key;
  request.components = mad.sa.component_mask;
  request.record = sa_data(message);
  return request;
}

std::vector<std::byte> sa_response(const mad::MadHeader& request, const sa::Answer& answer) {
  sa::SaMad mad;
  mad.header = request;
  mad.header.method = answer.method;
  mad.header.status = answer.status;
  const bool is_table =
      (answer.method == sa::method::kGetTableResp || answer.method == sa::method::kGetMultiResp) &&
      answer.status == sa::sa_status::kOk;
  if (is_table) {
    mad::RmppHeader rmpp;
    rmpp.time_flags = mad::rmpp_flag::kActive;
    mad.rmpp = std::bit_cast<decltype(mad.rmpp)>(rmpp);
    mad.sa.attribute_offset = static_cast<std::uint16_t>(answer.stride / 8);
  }
  const auto first = std::bit_cast<mad::Mad>(mad);
  const std::size_t size =
      is_table ? sa::kDataOffset + answer.bytes.size() : std::size_t{mad::kMadSize};
  std::vector<std::byte> message(size);
  std::copy_n(first.begin(), sa::kDataOffset, message.begin());
  std::copy_n(answer.bytes.begin(), std::min(answer.bytes.size(), size - sa::kDataOffset),
              message.begin() + sa::kDataOffset);
  return message;
}

}  // namespace ib::services
