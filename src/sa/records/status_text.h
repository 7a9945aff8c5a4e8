// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Statuses of the subnet administrator's answers in words [IBA1 13.4.7, 15.2.3]: one table.
#pragma once

#include "sa/records/header.h"

#include <array>
#include <cstdint>

namespace ib::sa {

struct StatusText {
  std::uint16_t status;
  const char* name;  // as the specification has it, short
  const char* sentence;
  const char* check;
};

inline constexpr std::array kStatusTexts = {
    StatusText{sa_status::kOk, "success", "success", "nothing"},
    StatusText{mad::mad_status::kBusy, "busy", "the administrator is busy",
               "whether it works at the next try"},
    StatusText{mad::mad_status::kBadVersion, "bad version", "the class version is not supported",
               "the version of the requester's software"},
    StatusText{mad::mad_status::kMethodNotSupported, "method not supported",
               "the method is not supported", "the method of the request"},
    StatusText{mad::mad_status::kAttributeNotSupported, "attribute not supported",
               "the attribute is not supported",
               "the attribute of the request; a smaller administrator may lack it"},
    StatusText{mad::mad_status::kBadField, "invalid field", "a field of the attribute is invalid",
               "the values of the request"},
    StatusText{sa_status::kNoResources, "ERR_NO_RESOURCES",
               "the subnet administrator has no room for it",
               "how many groups, services and subscriptions this port has"},
    StatusText{sa_status::kRequestInvalid, "ERR_REQ_INVALID", "the request is invalid",
               "its values; joining a group: MTU, rate, P_Key and Q_Key of the group"},
    StatusText{sa_status::kNoRecords, "ERR_NO_RECORDS", "there is no such record",
               "whether the other port is up, shares a partition, and is not behind another cable"},
    StatusText{sa_status::kTooManyRecords, "ERR_TOO_MANY_RECORDS",
               "several records match a request for one",
               "that the request has more components, or is GetTable"},
    StatusText{sa_status::kInvalidGid, "ERR_REQ_INVALID_GID", "no port that is up has this GID",
               "the GID, and the state of its port (`softib status`)"},
    StatusText{sa_status::kInsufficientComponents, "ERR_REQ_INSUFFICIENT_COMPONENTS",
               "the request lacks components",
               "the component mask: a path needs an end, a new group its P_Key, Q_Key and more"},
    StatusText{sa_status::kRequestDenied, "ERR_REQ_DENIED", "the request is denied",
               "whether the port may do that: its partitions, or a service of another port"},
};

// Never null.
constexpr const char* status_text(std::uint16_t status) {
  for (const StatusText& one : kStatusTexts) {
    if (one.status == status) return one.sentence;
  }
  return "unknown status";
}

}  // namespace ib::sa
