// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "host_abi/provider/errors.h"

#include "linux/process/client_handle.h"
#include "linux/process/client_signals.h"
#include "user/api.h"

#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace ib::host_abi {

namespace {

struct Row {
  Status status;
  int error;
};
// The errno that the kernel's uverbs returns in the same situation.
constexpr std::array<Row, kStatusCount> kTable{{
    {Status::Ok, 0},
    {Status::Pending, EINPROGRESS},
    {Status::InvalidParameter, EINVAL},
    {Status::InvalidState, EINVAL},
    {Status::InsufficientResources, ENOMEM},
    {Status::Malformed, EPROTO},
    {Status::Cancelled, ECANCELED},
    {Status::NotFound, ENOENT},
    {Status::AccessDenied, EACCES},
    {Status::DeviceBusy, EBUSY},
    {Status::NotSupported, EOPNOTSUPP},
    {Status::AlreadyExists, EEXIST},
    {Status::Disconnected, EIO},
    {Status::LimitExceeded, EINVAL},
    {Status::DeviceRemoved, ENODEV},
    {Status::IoError, EIO},
    {Status::Timeout, ETIMEDOUT},
    {Status::TooManyHandles, EMFILE},
}};

constexpr bool table_is_in_order() {
  for (std::size_t i = 0; i < kTable.size(); ++i) {
    if (static_cast<std::size_t>(kTable[i].status) != i) return false;
  }
  return true;
}
static_assert(table_is_in_order(), "one row per status, indexed by it");

bool is_set(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr && std::strcmp(value, "1") == 0;
}

}  // namespace

int errno_of(Status status) {
  const auto index = static_cast<std::size_t>(status);
  return index < kTable.size() ? kTable[index].error : EIO;
}

int errno_of_posting(Status status) {
  return status == Status::LimitExceeded ? ENOMEM : errno_of(status);
}

Status status_of(int error) {
  switch (error) {
    case ENOMEM:
    case ENOBUFS: return Status::InsufficientResources;
    case ENOENT: return Status::DeviceRemoved;
    default: return os::no_descriptor(error);
  }
}

bool logging() {
  static const bool on = is_set("SOFTIB_LOG") || is_set("SOFTIB_VERBOSE");
  return on;
}

int fail(const char* verb, Status status) {
  const int error = errno_of(status);
  if (logging()) {
    const os::CancelGuard no_cancel;
    const std::string& reason = user::last_reason();
    static_cast<void>(std::fprintf(stderr, "softib: %s: %s (errno %d, %s)\n", verb,
                                   reason.empty() ? status_text(status) : reason.c_str(), error,
                                   status_text(status)));
  }
  errno = error;
  return error;
}

int fail(const char* verb, int error, const char* reason) {
  if (logging()) {
    const os::CancelGuard no_cancel;
    static_cast<void>(std::fprintf(stderr, "softib: %s: %s (errno %d)\n", verb, reason, error));
  }
  errno = error;
  return error;
}

}  // namespace ib::host_abi
