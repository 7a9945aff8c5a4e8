// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The requests of al/sa.h: inputs, which the caller fills in, and outputs, which are filled in when
// the request has succeeded. Numbers of MTUs, rates and times are those of the records [IBA1
// 15.2.5].
#pragma once

#include "al/cm_requests.h"
#include "verbs/gid.h"
#include "verbs/types.h"

#include <array>
#include <cstdint>

namespace ib::al {

// As IRPs have them (Irp::code), on the file of an Sa.
enum class SaCode : std::uint32_t { QueryPath = 1, Register, Subscribe, Join, WaitEvent, Destroy };
inline constexpr std::uint32_t kSaCodes = 6;

// A registration, a subscription or a share in a membership; of one Sa.
using SaHandle = std::uint32_t;  // 0: none

struct SaHandleIn {
  SaHandle handle = 0;
};

// The destination is named by one of these; zeros: not by it.
struct SaPathIn {
  std::uint32_t port = 1;  // of the HCA: where the path begins
  verbs::Gid dgid{};
  std::uint16_t dlid = 0;
  std::uint64_t service_id = 0;  // of a service that is registered
  std::uint16_t pkey = 0xffff;
};
struct SaPath {
  CmPath path;  // as CmConnectIn and CmLoadPathIn take it
  verbs::Mtu mtu = verbs::Mtu::B1024;
};

// ServiceRecord [IBA1 15.2.5.14]. The lease is renewed until the registration is destroyed.
struct SaServiceIn {
  std::uint32_t port = 1;
  std::uint16_t pkey = 0xffff;
  std::uint64_t service_id = 0;
  std::uint32_t lease_seconds = 60;
  std::array<char, 64> name{};
  std::array<std::uint8_t, 16> key{};
  std::array<std::uint8_t, 16> data{};
};

struct SaSubscribeIn {
  std::uint32_t port = 1;
  std::uint16_t trap = 0xffff;  // number of the trap [IBA1 14.2.5.1]; 0xffff: all
};

// MCMemberRecord [IBA1 15.2.5.17]. A group that is not there is made if `may_create`.
struct SaJoinIn {
  std::uint32_t port = 1;
  verbs::Gid mgid{};
  std::uint8_t join_state = 1;  // bits: 1 full member, 2 non-member, 4 and 8 send only
  bool may_create = false;
  std::uint16_t pkey = 0xffff;  // of a group that is made; so are the next four
  std::uint32_t qkey = 0;
  std::uint8_t traffic_class = 0;
  std::uint8_t sl = 0;
  std::uint32_t flow_label = 0;
};
struct SaGroup {
  SaHandle handle = 0;
  verbs::Gid mgid{};
  std::uint16_t mlid = 0;
  std::uint16_t pkey = 0;
  std::uint32_t qkey = 0;
  verbs::Mtu mtu = verbs::Mtu::B1024;
  std::uint8_t rate = 0;
  std::uint8_t sl = 0;
  std::uint8_t packet_lifetime = 0;
};

enum class SaEventKind : std::uint32_t {
  Report = 1,        // of a subscription
  MembershipLost,    // the port went down, or could not join again: the share is void
  RegistrationLost,  // its lease could not be renewed; that is tried again
  EventsLost,        // the client was too slow: reports are missing here
};
struct SaEvent {
  SaEventKind kind{};
  std::uint16_t trap = 0;  // of a Report
  std::uint16_t issuer_lid = 0;
  verbs::Gid subject{};                    // the GID that traps 64 to 67 are about
  std::array<std::uint8_t, 54> details{};  // as in the notice
};

}  // namespace ib::al
