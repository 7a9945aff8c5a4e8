// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The part of the control interface (verbs/control.h) that carries the subnet administrator [IBA1
// chapter 15]: codes and buffers of a file of its client (verbs/services/open_service.h). Drivers
// have the same requests (al/sa.h). Fixed layout, the same on 32 and 64 bit. Numbers of MTUs, rates
// and times are those of the records [IBA1 15.2.5].
#pragma once

#include "verbs/gid.h"
#include "verbs/services/cm_requests.h"
#include "verbs/services/flag.h"
#include "verbs/types.h"

#include <array>
#include <cstdint>

namespace ib::verbs::control {

// Codes of a file that ServiceCode::Open has opened with ServiceKind::Sa; al/sa.h says what they
// do.
enum class SaCode : std::uint32_t {
  QueryPath = 129,
  Register,
  Subscribe,
  Join,
  WaitEvent,
  Destroy,
};
inline constexpr std::uint32_t kSaCodes = 6;
constexpr bool is_sa(std::uint32_t code) {
  return code >= static_cast<std::uint32_t>(SaCode::QueryPath) &&
         code <= static_cast<std::uint32_t>(SaCode::Destroy);
}

// A registration, a subscription or a share in a membership; of one Sa.
using SaHandle = std::uint32_t;  // 0: none

struct SaHandleIn {
  SaHandle handle = 0;
};

// The destination is named by one of these; zeros: not by it.
struct SaPathIn {
  std::uint32_t port = 1;  // of the HCA: where the path begins
  Gid dgid{};
  std::uint16_t dlid = 0;
  std::uint16_t pkey = 0xffff;
  std::uint64_t service_id = 0;  // of a service that is registered
};
struct SaPath {
  CmPath path;  // as CmConnectIn and CmLoadPathIn take it
  Mtu mtu = Mtu::B1024;
};

// ServiceRecord [IBA1 15.2.5.14]. The lease is renewed until the registration is destroyed.
struct SaServiceIn {
  std::uint32_t port = 1;
  std::uint32_t lease_seconds = 60;
  std::uint64_t service_id = 0;
  std::array<char, 64> name{};
  std::array<std::uint8_t, 16> key{};
  std::array<std::uint8_t, 16> data{};
  std::uint16_t pkey = 0xffff;
  std::array<std::uint16_t, 3> reserved{};
};

struct SaSubscribeIn {
  std::uint32_t port = 1;
  std::uint16_t trap = 0xffff;  // number of the trap [IBA1 14.2.5.1]; 0xffff: all
  std::uint16_t reserved = 0;
};

// MCMemberRecord [IBA1 15.2.5.17]. A group that is not there is made if `may_create`.
struct SaJoinIn {
  std::uint32_t port = 1;
  Gid mgid{};
  std::uint8_t join_state = 1;  // bits: 1 full member, 2 non-member, 4 and 8 send only
  Flag may_create = false;
  std::uint16_t pkey = 0xffff;  // of a group that is made; so are the next four
  std::uint32_t qkey = 0;
  std::uint8_t traffic_class = 0;
  std::uint8_t sl = 0;
  std::uint16_t reserved = 0;
  std::uint32_t flow_label = 0;
};
struct SaGroup {
  SaHandle handle = 0;
  Gid mgid{};
  std::uint16_t mlid = 0;
  std::uint16_t pkey = 0;
  std::uint32_t qkey = 0;
  Mtu mtu = Mtu::B1024;
  std::uint8_t rate = 0;
  std::uint8_t sl = 0;
  std::uint8_t packet_lifetime = 0;
  std::uint8_t reserved = 0;
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
  Gid subject{};                           // the GID that traps 64 to 67 are about
  std::array<std::uint8_t, 54> details{};  // as in the notice
  std::uint16_t reserved = 0;
};

IB_SIZE(SaHandleIn, 4);
IB_FIELD(SaHandleIn, handle, 0, 4);
IB_SIZE(SaPathIn, 32);
IB_FIELD(SaPathIn, port, 0, 4);
IB_FIELD(SaPathIn, dgid, 4, 16);
IB_FIELD(SaPathIn, dlid, 20, 2);
IB_FIELD(SaPathIn, pkey, 22, 2);
IB_FIELD(SaPathIn, service_id, 24, 8);
IB_SIZE(SaPath, 52);
IB_FIELD(SaPath, path, 0, 48);
IB_FIELD(SaPath, mtu, 48, 4);
IB_SIZE(SaServiceIn, 120);
IB_FIELD(SaServiceIn, port, 0, 4);
IB_FIELD(SaServiceIn, lease_seconds, 4, 4);
IB_FIELD(SaServiceIn, service_id, 8, 8);
IB_FIELD(SaServiceIn, name, 16, 64);
IB_FIELD(SaServiceIn, key, 80, 16);
IB_FIELD(SaServiceIn, data, 96, 16);
IB_FIELD(SaServiceIn, pkey, 112, 2);
IB_FIELD(SaServiceIn, reserved, 114, 6);
IB_SIZE(SaSubscribeIn, 8);
IB_FIELD(SaSubscribeIn, port, 0, 4);
IB_FIELD(SaSubscribeIn, trap, 4, 2);
IB_FIELD(SaSubscribeIn, reserved, 6, 2);
IB_SIZE(SaJoinIn, 36);
IB_FIELD(SaJoinIn, port, 0, 4);
IB_FIELD(SaJoinIn, mgid, 4, 16);
IB_FIELD(SaJoinIn, join_state, 20, 1);
IB_FIELD(SaJoinIn, may_create, 21, 1);
IB_FIELD(SaJoinIn, pkey, 22, 2);
IB_FIELD(SaJoinIn, qkey, 24, 4);
IB_FIELD(SaJoinIn, traffic_class, 28, 1);
IB_FIELD(SaJoinIn, sl, 29, 1);
IB_FIELD(SaJoinIn, reserved, 30, 2);
IB_FIELD(SaJoinIn, flow_label, 32, 4);
IB_SIZE(SaGroup, 36);
IB_FIELD(SaGroup, handle, 0, 4);
IB_FIELD(SaGroup, mgid, 4, 16);
IB_FIELD(SaGroup, mlid, 20, 2);
IB_FIELD(SaGroup, pkey, 22, 2);
IB_FIELD(SaGroup, qkey, 24, 4);
IB_FIELD(SaGroup, mtu, 28, 4);
IB_FIELD(SaGroup, rate, 32, 1);
IB_FIELD(SaGroup, sl, 33, 1);
IB_FIELD(SaGroup, packet_lifetime, 34, 1);
IB_FIELD(SaGroup, reserved, 35, 1);
IB_SIZE(SaEvent, 80);
IB_FIELD(SaEvent, kind, 0, 4);
IB_FIELD(SaEvent, trap, 4, 2);
IB_FIELD(SaEvent, issuer_lid, 6, 2);
IB_FIELD(SaEvent, subject, 8, 16);
IB_FIELD(SaEvent, details, 24, 54);
IB_FIELD(SaEvent, reserved, 78, 2);

}  // namespace ib::verbs::control
