// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The kinds of MADs that softib sends from queue pairs 1: one table, for all that a peer may send.
// emitted_test.cpp has each row sent and read by tshark. Answers of queue pairs 0 have their table
// in mad/test/smp_wire_test.cpp.
#pragma once

#include "cm/messages/format.h"
#include "mad/class_port_info.h"
#include "mad/device_management.h"
#include "mad/mgmt_class.h"
#include "mad/perf.h"
#include "mad/rmpp_header.h"
#include "sa/records/header.h"

#include <fmt/format.h>

#include <algorithm>
#include <compare>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

namespace ib::services::test {

// The part that a MAD is of a message of several packets [IBA1 13.6.2].
enum class Part : std::uint8_t {
  Whole,  // a message without RMPP
  Only,   // DATA; the only segment
  First,
  Middle,
  Last,
  Ack,
  Stop,
  Abort,
  Illegal,
};

struct MadKind {
  std::uint8_t mgmt_class = 0;
  std::uint8_t method = 0;
  std::uint16_t attribute = 0;
  Part part = Part::Whole;
  std::uint16_t status = 0;  // of the MAD; of STOP and ABORT: of RMPP
  friend auto operator<=>(const MadKind&, const MadKind&) = default;
};

inline constexpr std::uint32_t kAnyAttribute = 0x10000;

struct MadRow {
  std::uint8_t mgmt_class = 0;
  std::uint8_t method = 0;
  std::uint32_t attribute = kAnyAttribute;
  Part part = Part::Whole;
  std::uint16_t status = 0;
  bool has(const MadKind& kind) const {
    return mgmt_class == kind.mgmt_class && method == kind.method && part == kind.part &&
           status == kind.status && (attribute == kAnyAttribute || attribute == kind.attribute);
  }
};

inline std::string text_of(const MadRow& row) {
  constexpr const char* kParts[] = {"",    "DATA", "first DATA", "middle DATA", "last DATA",
                                    "ACK", "STOP", "ABORT",      "illegal"};
  const std::string attribute = row.attribute == kAnyAttribute
                                    ? "any attribute"
                                    : fmt::format("attribute {:#06x}", row.attribute);
  return fmt::format("class {:#04x}, method {:#04x}, {}, status {:#06x} {}", row.mgmt_class,
                     row.method, attribute, row.status, kParts[static_cast<std::size_t>(row.part)]);
}
inline std::string text_of(const MadKind& kind) {
  return text_of(MadRow{kind.mgmt_class, kind.method, kind.attribute, kind.part, kind.status});
}

// Rows of a class: each of these methods with each of these attributes, parts and statuses.
class MadRows {
 public:
  using Methods = std::initializer_list<std::uint8_t>;
  using Attributes = std::initializer_list<std::uint32_t>;
  using Parts = std::initializer_list<Part>;
  using Statuses = std::initializer_list<std::uint16_t>;

  explicit MadRows(std::uint8_t mgmt_class) : class_(mgmt_class) {}
  void add(Methods methods, Attributes attributes, Parts parts = {Part::Whole},
           Statuses statuses = {0}) {
    for (const auto method : methods) {
      for (const auto attribute : attributes) {
        for (const auto part : parts) {
          for (const auto status : statuses) {
            rows_.push_back({class_, method, attribute, part, status});
          }
        }
      }
    }
  }
  const std::vector<MadRow>& rows() const { return rows_; }

 private:
  std::uint8_t class_;
  std::vector<MadRow> rows_;
};

// Requests and answers about tables of ports and switches, and about several paths.
inline void add_sa_tables(MadRows& rows) {
  namespace m = sa::method;
  namespace a = sa::attribute;
  const MadRows::Attributes of_ports = {a::kSlToVlRecord, a::kSmInfoRecord, a::kGuidInfoRecord,
                                        a::kVlArbitrationRecord};
  rows.add({m::kGet, m::kGetTable, m::kGetResp}, of_ports);
  rows.add({m::kGetTableResp}, of_ports, {Part::Only});
  rows.add({m::kGetTable}, of_ports, {Part::Ack});
  const MadRows::Attributes of_switches = {a::kSwitchInfoRecord, a::kLinearForwardingRecord,
                                           a::kMulticastForwardingRecord, a::kLinkRecord};
  rows.add({m::kGetTable}, of_switches);
  rows.add({m::kGetTableResp}, of_switches, {Part::Only});
  rows.add({m::kGetTable}, of_switches, {Part::Ack});
  rows.add({m::kGetMulti}, {a::kMultiPathRecord});
  rows.add({m::kGetMultiResp}, {a::kMultiPathRecord}, {Part::Only});
  rows.add({m::kGetMulti}, {a::kMultiPathRecord}, {Part::Ack});
}

// Messages of subnet administration [IBA1 15.2.2, 15.2.5, 15.4].
inline void add_sa_messages(MadRows& rows) {
  namespace m = sa::method;
  namespace a = sa::attribute;
  const MadRows::Attributes records = {a::kNodeRecord, a::kPortInfoRecord, a::kServiceRecord,
                                       a::kPathRecord, a::kMcMemberRecord, a::kInformInfoRecord};
  // The client, the administrator's Reports, and their answers.
  rows.add({m::kGet}, {a::kPathRecord, a::kMcMemberRecord});
  rows.add({m::kSet}, {a::kInformInfo, a::kServiceRecord, a::kMcMemberRecord});
  rows.add({m::kDelete}, {a::kServiceRecord, a::kMcMemberRecord});
  rows.add({m::kReport, m::kReportResp}, {a::kNotice});
  // A requester of the tests that is none of softib's services.
  rows.add({m::kGet, m::kGetTable}, records);
  rows.add({m::kGet}, {a::kClassPortInfo});
  // The administrator.
  rows.add({m::kGetResp}, records);
  rows.add({m::kGetResp}, {a::kClassPortInfo, a::kInformInfo});
  rows.add({m::kDeleteResp}, {a::kServiceRecord, a::kMcMemberRecord});
  rows.add({m::kGetTableResp}, records, {Part::Only, Part::First, Part::Middle, Part::Last});
  rows.add({m::kGetTable}, records, {Part::Ack});
  add_sa_tables(rows);
}

// Refusals of subnet administration: requests of any attribute [IBA1 13.4.7, 15.2.3]. A refusal of
// a table has no RMPP.
inline void add_sa_refusals(MadRows& rows) {
  namespace m = sa::method;
  namespace s = sa::sa_status;
  using mad::mad_status::kAttributeNotSupported, mad::mad_status::kBadVersion,
      mad::mad_status::kMethodNotSupported;
  const auto add = [&](std::uint8_t method, MadRows::Statuses statuses) {
    rows.add({method}, {kAnyAttribute}, {Part::Whole}, statuses);
  };
  add(m::kGetResp, {kBadVersion, kMethodNotSupported, kAttributeNotSupported, s::kNoResources,
                    s::kRequestInvalid, s::kNoRecords, s::kTooManyRecords, s::kInvalidGid,
                    s::kInsufficientComponents, s::kRequestDenied});
  add(m::kGetTableResp,
      {kMethodNotSupported, kAttributeNotSupported, s::kNoResources, s::kRequestInvalid,
       s::kNoRecords, s::kInvalidGid, s::kInsufficientComponents, s::kRequestDenied});
  add(m::kGetMultiResp, {kAttributeNotSupported, s::kInsufficientComponents, s::kRequestDenied});
  add(m::kDeleteResp, {kAttributeNotSupported, s::kRequestInvalid, s::kNoRecords,
                       s::kInsufficientComponents, s::kRequestDenied});
}

constexpr std::uint16_t number_of(mad::RmppStatus status) {
  return static_cast<std::uint16_t>(status);
}

// Control packets about messages of several packets that a peer sends: requests of the methods that
// an agent takes, and answers. Their response bit is the inverse of that in DATA [IBA1 13.6.2].
inline void add_sa_transfers(MadRows& rows) {
  using mad::RmppStatus;
  namespace m = sa::method;
  const MadRows::Methods methods = {mad::method::kResponseBit | m::kGet,
                                    mad::method::kResponseBit | m::kSet,
                                    mad::method::kResponseBit | m::kGetTable,
                                    mad::method::kResponseBit | m::kGetTraceTable,
                                    mad::method::kResponseBit | m::kGetMulti,
                                    mad::method::kResponseBit | m::kDelete,
                                    mad::method::kResponseBit | m::kReport,
                                    m::kGet,
                                    m::kGetTable,
                                    m::kDelete,
                                    m::kReport};
  rows.add(methods, {kAnyAttribute}, {Part::Ack});
  rows.add(methods, {kAnyAttribute}, {Part::Stop}, {number_of(RmppStatus::Resources)});
  rows.add(methods, {kAnyAttribute}, {Part::Abort},
           {number_of(RmppStatus::TimeTooLong), number_of(RmppStatus::InconsistentLast),
            number_of(RmppStatus::InconsistentFirst), number_of(RmppStatus::BadType),
            number_of(RmppStatus::IllegalStatus), number_of(RmppStatus::UnsupportedVersion),
            number_of(RmppStatus::Unspecified)});
  // About a table that is sent.
  rows.add({m::kGetTableResp}, {kAnyAttribute}, {Part::Abort},
           {number_of(RmppStatus::WindowTooSmall), number_of(RmppStatus::SegmentTooBig),
            number_of(RmppStatus::TooManyRetries)});
}

// Performance and device management [IBA1 16.1, 16.3].
template <class Add>
void add_element_agents(const Add& add) {
  namespace a = mad::perf_attribute;
  namespace s = mad::mad_status;
  constexpr std::uint8_t kGetResp = mad::method::kGetResp;
  const MadRows::Statuses refusals = {s::kBadVersion, s::kAttributeNotSupported};
  MadRows performance(mad::mgmt_class::kPerf);
  const MadRows::Attributes counters = {a::kPortSamplesControl,        a::kPortSamplesResult,
                                        a::kPortSamplesResultExtended, a::kPortCounters,
                                        a::kPortRcvErrorDetails,       a::kPortXmitDiscardDetails,
                                        a::kPortCountersExtended};
  performance.add({kGetResp}, {mad::kClassPortInfo});
  performance.add({kGetResp}, counters);
  performance.add({kGetResp}, counters, {Part::Whole}, {s::kBadField});
  performance.add({kGetResp}, {kAnyAttribute}, {Part::Whole}, refusals);
  add(performance);
  MadRows devices(mad::mgmt_class::kDevMgt);
  devices.add({kGetResp}, {mad::kClassPortInfo, mad::device_attribute::kIoUnitInfo});
  devices.add({kGetResp}, {kAnyAttribute}, {Part::Whole}, refusals);
  add(devices);
}

inline std::vector<MadRow> make_emitted_rows() {
  using mad::mad_status::kAttributeNotSupported, mad::mad_status::kBadVersion;
  MadRows administration(sa::kMgmtClass);
  add_sa_messages(administration);
  add_sa_refusals(administration);
  add_sa_transfers(administration);
  std::vector<MadRow> all = administration.rows();
  const auto add = [&](const MadRows& rows) {
    all.insert(all.end(), rows.rows().begin(), rows.rows().end());
  };
  // REQ, MRA, REJ, REP, RTU, DREQ, DREP, SIDR_REQ, SIDR_REP, LAP, APR [IBA1 12.6, 12.8, 12.11].
  MadRows communication(cm::kCmClass);
  communication.add({mad::method::kSend},
                    {0x10, 0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18, 0x19, 0x1a});
  communication.add({mad::method::kGetResp}, {mad::kClassPortInfo});
  communication.add({mad::method::kGetResp}, {kAnyAttribute}, {Part::Whole},
                    {kBadVersion, kAttributeNotSupported});
  add(communication);
  add_element_agents(add);
  // Get and Set of classes without an agent [IBA1 13.4.7].
  for (unsigned number = 0; number < 0x100; ++number) {
    const auto mgmt_class = static_cast<std::uint8_t>(number);
    const bool has_agent = mgmt_class == sa::kMgmtClass || mgmt_class == cm::kCmClass ||
                           mgmt_class == mad::mgmt_class::kPerf ||
                           mgmt_class == mad::mgmt_class::kDevMgt;
    if (!mad::is_general_class(mgmt_class) || has_agent) continue;
    MadRows refusals(mgmt_class);
    refusals.add({mad::method::kGetResp}, {kAnyAttribute}, {Part::Whole}, {kBadVersion});
    add(refusals);
  }
  return all;
}

inline const std::vector<MadRow>& emitted_rows() {
  static const std::vector<MadRow> kRows = make_emitted_rows();
  return kRows;
}

}  // namespace ib::services::test
