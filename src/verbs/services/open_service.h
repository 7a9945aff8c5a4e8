// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The part of the control interface (verbs/control.h) by which a program gets the services that
// drivers have: paths, memberships and reports of the subnet administrator (sa_requests.h), and
// connections (cm_requests.h). Fixed layout, the same on 32 and 64 bit.
//
// A file of a service is one program's part of the service at one HCA. All that it has lives as
// long as it: Close, and the end of its connection, withdraw it. Its requests pend until others
// have acted, so a client sends several at once, and tells the answers apart by their tags. They
// end as those of drivers do, with one difference to the answers of other codes: if the status is
// not Ok, `information` says how many bytes of the output buffer come before the reason (the
// private data of a rejection).
//
// At most kMostServiceRequests of all files of a connection are under way; a further one gets
// InsufficientResources.
#pragma once

#include "verbs/control_layout.h"
#include "verbs/services/cm_requests.h"
#include "verbs/services/sa_requests.h"

#include <cstdint>

namespace ib::verbs::control {

enum class ServiceCode : std::uint32_t {
  // OpenServiceIn -> -; information = file. Of file 0, no Attach needed: by any connection of the
  // process that has the slot. Pends until the service has its queue pairs.
  // ! Malformed: size; InvalidParameter: no such kind; NotFound: no such HCA on the node of the
  // process; Disconnected: no such process attached; AccessDenied: another process;
  // InsufficientResources: more than kMostServiceFiles of the connection
  Open = 128,
};

inline constexpr std::uint32_t kMostServiceRequests = 4096;
inline constexpr std::uint32_t kMostServiceFiles = 64;

enum class ServiceKind : std::uint32_t { Sa = 0, Cm = 1 };
struct OpenServiceIn {
  ServiceKind kind = ServiceKind::Sa;
  std::uint32_t slot = 0;  // of the process whose queue pairs are connected (AttachOut)
  std::uint32_t slot_generation = 0;
  std::uint32_t ca_index = 0;  // OpenOut
};

// Of a file of a service: these go to no HCA.
constexpr bool is_of_service_file(std::uint32_t code) {
  return is_sa(code) || is_cm(code);
}
constexpr bool is_service(std::uint32_t code) {
  return code == static_cast<std::uint32_t>(ServiceCode::Open) || is_of_service_file(code);
}

IB_SIZE(OpenServiceIn, 16);
IB_FIELD(OpenServiceIn, kind, 0, 4);
IB_FIELD(OpenServiceIn, slot, 4, 4);
IB_FIELD(OpenServiceIn, slot_generation, 8, 4);
IB_FIELD(OpenServiceIn, ca_index, 12, 4);

}  // namespace ib::verbs::control
