// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The numbers with which one side refuses the other: REJ reasons [IBA1 12.6.7.2], statuses of APR
// [IBA1 12.8.2.1] and of SIDR_REP [IBA1 12.11.2.1]; each with its text for users.
#pragma once

#include <cstdint>
#include <span>

namespace ib::cm {

enum class RejectReason : std::uint16_t {
  NoQp = 1,
  NoEec = 2,
  NoResources = 3,
  Timeout = 4,
  Unsupported = 5,
  InvalidCommId = 6,
  InvalidCommInstance = 7,
  InvalidServiceId = 8,
  InvalidTransport = 9,
  StaleConnection = 10,
  NoRdc = 11,
  InvalidGid = 12,  // 12 to 17: of the primary path
  InvalidLid = 13,
  InvalidSl = 14,
  InvalidTrafficClass = 15,
  InvalidHopLimit = 16,
  InvalidPacketRate = 17,
  InvalidAltGid = 18,
  InvalidAltLid = 19,
  InvalidAltSl = 20,
  InvalidAltTrafficClass = 21,
  InvalidAltHopLimit = 22,
  InvalidAltPacketRate = 23,
  PortAndCmRedirect = 24,
  PortRedirect = 25,
  InvalidMtu = 26,
  InsufficientResponderResources = 27,
  ConsumerReject = 28,
  InvalidRnrRetry = 29,
  DuplicateLocalCommId = 30,
  InvalidClassVersion = 31,
  InvalidFlowLabel = 32,
  InvalidAltFlowLabel = 33,
  ServiceHandoff = 65535,
};

enum class AlternatePathStatus : std::uint8_t {
  Loaded = 0,
  InvalidCommId = 1,
  NotSupported = 2,
  Rejected = 3,
  Redirect = 4,
  IsCurrent = 5,  // the path is the primary one
  InvalidQpn = 6,
  InvalidLid = 7,
  InvalidGid = 8,
  InvalidFlowLabel = 9,
  InvalidTrafficClass = 10,
  InvalidHopLimit = 11,
  InvalidPacketRate = 12,
  InvalidSl = 13,
};

enum class SidrStatus : std::uint8_t {
  Valid = 0,
  ServiceNotSupported = 1,
  Rejected = 2,
  NoQp = 3,
  Redirect = 4,
  UnsupportedVersion = 5,
};

// A number of a message in words.
struct ReasonText {
  const char* name;      // as the specification has it, short
  const char* sentence;  // what happened
  const char* check;     // what a user can do about it
};

struct NumberedText {
  std::int32_t number;
  ReasonText text;
};

// All that have a meaning, by number.
std::span<const NumberedText> reject_reasons();
std::span<const NumberedText> path_statuses();
std::span<const NumberedText> sidr_statuses();

// Any number may come from a peer: unknown ones have a text, too.
ReasonText reason_text(RejectReason reason);
ReasonText status_text(AlternatePathStatus status);
ReasonText status_text(SidrStatus status);

}  // namespace ib::cm
