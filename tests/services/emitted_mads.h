// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The kinds of MADs that softib sends from queue pairs 1: one table. A kind that is not in it fails
// the tests of the services; emitted_test.cpp has each of it sent and read by tshark.
#pragma once

#include "mad/header.h"
#include "mad/mgmt_class.h"
#include "mad/rmpp_header.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <compare>
#include <cstdint>
#include <cstring>
#include <map>
#include <string>
#include <vector>

namespace ib::services::test {

struct MadKind {
  std::uint8_t mgmt_class = 0;
  std::uint8_t method = 0;
  std::uint16_t attribute = 0;
  std::uint8_t rmpp = 0;  // type of the RMPP packet; 0: none
  friend auto operator<=>(const MadKind&, const MadKind&) = default;
};

inline std::string text_of(const MadKind& kind) {
  return fmt::format("class {:#04x}, method {:#04x}, attribute {:#06x}, RMPP {}", kind.mgmt_class,
                     kind.method, kind.attribute, kind.rmpp);
}

inline MadKind kind_of(const mad::Mad& mad) {
  mad::MadHeader header;
  std::memcpy(&header, mad.data(), sizeof header);
  constexpr std::size_t kRmppType = mad::kRmppOffset + 1, kRmppFlags = mad::kRmppOffset + 2;
  const bool is_active =
      mad::has_rmpp(header.mgmt_class) && (std::to_integer<unsigned>(mad[kRmppFlags]) & 1u) != 0;
  return {header.mgmt_class, header.method, header.attribute,
          is_active ? std::to_integer<std::uint8_t>(mad[kRmppType]) : std::uint8_t{0}};
}

// SA [IBA1 15.2.5, 15.4], CM [IBA1 12.6, 12.8, 12.11], ClassPortInfo of both [IBA1 13.4.8.1].
inline constexpr std::array kEmittedKinds = {
    // SA: Get
    MadKind{0x03, 0x01, 0x0001},  // ClassPortInfo
    MadKind{0x03, 0x01, 0x0011},  // NodeRecord
    MadKind{0x03, 0x01, 0x0012},  // PortInfoRecord
    MadKind{0x03, 0x01, 0x0031},  // ServiceRecord
    MadKind{0x03, 0x01, 0x0035},  // PathRecord
    MadKind{0x03, 0x01, 0x0038},  // MCMemberRecord
    MadKind{0x03, 0x01, 0x00f3},  // InformInfoRecord
    // SA: Set, Delete, Report(Notice)
    MadKind{0x03, 0x02, 0x0003},  // InformInfo
    MadKind{0x03, 0x02, 0x0031},
    MadKind{0x03, 0x02, 0x0038},
    MadKind{0x03, 0x15, 0x0031},
    MadKind{0x03, 0x15, 0x0038},
    MadKind{0x03, 0x06, 0x0002},
    // SA: GetTable, and the acknowledgements of its answers (RMPP ACK)
    MadKind{0x03, 0x12, 0x0011},
    MadKind{0x03, 0x12, 0x0012},
    MadKind{0x03, 0x12, 0x0031},
    MadKind{0x03, 0x12, 0x0035},
    MadKind{0x03, 0x12, 0x0038},
    MadKind{0x03, 0x12, 0x00f3},
    MadKind{0x03, 0x12, 0x0011, 2},
    MadKind{0x03, 0x12, 0x0012, 2},
    MadKind{0x03, 0x12, 0x0031, 2},
    MadKind{0x03, 0x12, 0x0038, 2},
    MadKind{0x03, 0x12, 0x00f3, 2},
    // SA: GetResp, to Get and Set
    MadKind{0x03, 0x81, 0x0001},
    MadKind{0x03, 0x81, 0x0003},
    MadKind{0x03, 0x81, 0x0011},
    MadKind{0x03, 0x81, 0x0012},
    MadKind{0x03, 0x81, 0x0031},
    MadKind{0x03, 0x81, 0x0035},
    MadKind{0x03, 0x81, 0x0038},
    MadKind{0x03, 0x81, 0x00f3},
    // SA: GetTableResp (RMPP DATA; a refusal has none), DeleteResp, ReportResp
    MadKind{0x03, 0x92, 0x0011, 1},
    MadKind{0x03, 0x92, 0x0012, 1},
    MadKind{0x03, 0x92, 0x0031, 1},
    MadKind{0x03, 0x92, 0x0035},
    MadKind{0x03, 0x92, 0x0038, 1},
    MadKind{0x03, 0x92, 0x00f3, 1},
    MadKind{0x03, 0x95, 0x0031},
    MadKind{0x03, 0x95, 0x0038},
    MadKind{0x03, 0x86, 0x0002},
    // CM: Send of REQ, MRA, REJ, REP, RTU, DREQ, DREP, SIDR_REQ, SIDR_REP, LAP, APR
    MadKind{0x07, 0x03, 0x0010},
    MadKind{0x07, 0x03, 0x0011},
    MadKind{0x07, 0x03, 0x0012},
    MadKind{0x07, 0x03, 0x0013},
    MadKind{0x07, 0x03, 0x0014},
    MadKind{0x07, 0x03, 0x0015},
    MadKind{0x07, 0x03, 0x0016},
    MadKind{0x07, 0x03, 0x0017},
    MadKind{0x07, 0x03, 0x0018},
    MadKind{0x07, 0x03, 0x0019},
    MadKind{0x07, 0x03, 0x001a},
    // Get(ClassPortInfo) of other classes, refused for want of an agent
    MadKind{0x07, 0x01, 0x0001},
    MadKind{0x07, 0x81, 0x0001},
    MadKind{0x04, 0x01, 0x0001},
    MadKind{0x04, 0x81, 0x0001},
};

// The first of each kind that was sent.
class EmittedMads {
 public:
  void add(const mad::Mad& mad) { all_.try_emplace(kind_of(mad), mad); }
  const std::map<MadKind, mad::Mad>& all() const { return all_; }
  std::vector<MadKind> unknown() const {
    std::vector<MadKind> found;
    for (const auto& [kind, mad] : all_) {
      if (std::ranges::find(kEmittedKinds, kind) == kEmittedKinds.end()) found.push_back(kind);
    }
    return found;
  }

 private:
  std::map<MadKind, mad::Mad> all_;
};

}  // namespace ib::services::test
