// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Status and Result<T>: how every fallible call in the stack reports failure.
//
// The names follow C++23 std::expected so that the type can become an alias of it one day;
// <expected> is empty under clang 14, so it cannot be used yet.
#pragma once

#include "base/assert.h"

#include <cstdint>
#include <utility>
#include <variant>

namespace ib {

// The one vocabulary of failure. Its numbers cross the control socket (verbs/control.h): append
// only.
enum class [[nodiscard]] Status : std::uint32_t{
    Ok = 0,
    Pending = 1,                // the request was accepted and completes later
    InvalidParameter = 2,       // caller broke the contract of a public entry point
    InvalidState = 3,           // legal request, wrong moment (e.g. post_send on a RESET QP)
    InsufficientResources = 4,  // a bounded pool is empty; retrying later may work
    Malformed = 5,              // bytes from the wire, a file or another process do not parse
    Cancelled = 6,              // the requester or the end of its file withdrew the request
    NotFound = 7,               // no such object, name, device or node
    AccessDenied = 8,           // the caller may not do this
    DeviceBusy = 9,             // other objects depend on this one; nothing was changed
    NotSupported = 10,          // this device cannot do it, as its attributes show
    AlreadyExists = 11,         // the name is taken
    Disconnected = 12,          // the other side (softibd, a peer process) is gone
    LimitExceeded = 13,         // a reported limit of the device was exceeded
    DeviceRemoved = 14,         // the HCA was removed or its fabric went down
    IoError = 15,               // the operating system refused; the text has the call and the error
    Timeout = 16,               // no answer in the allowed time
    TooManyHandles = 17,        // this process or the system has no file descriptor left
};
inline constexpr std::uint32_t kStatusCount = 18;

// A short English text for each status. The result is never null.
constexpr const char* status_text(Status status) {
  switch (status) {
    case Status::Ok: return "success";
    case Status::Pending: return "the request is pending";
    case Status::InvalidParameter: return "invalid parameter";
    case Status::InvalidState: return "not allowed in this state";
    case Status::InsufficientResources: return "out of resources";
    case Status::Malformed: return "malformed data";
    case Status::Cancelled: return "cancelled";
    case Status::NotFound: return "not found";
    case Status::AccessDenied: return "access denied";
    case Status::DeviceBusy: return "busy: other objects depend on it";
    case Status::NotSupported: return "not supported by this device";
    case Status::AlreadyExists: return "already exists";
    case Status::Disconnected: return "the other side is gone";
    case Status::LimitExceeded: return "a device limit was exceeded";
    case Status::DeviceRemoved: return "the device was removed";
    case Status::IoError: return "the operating system refused a call";
    case Status::Timeout: return "timed out";
    case Status::TooManyHandles: return "no file descriptor is left (ulimit -n)";
  }
  return "unknown status";
}

template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : v_(std::in_place_index<0>, std::move(value)) {}
  Result(Status error) : v_(std::in_place_index<1>, error) { IB_ASSERT(error != Status::Ok); }

  bool has_value() const { return v_.index() == 0; }
  explicit operator bool() const { return has_value(); }
  T& operator*() & { return *std::get_if<0>(&v_); }
  const T& operator*() const& { return *std::get_if<0>(&v_); }
  T&& operator*() && { return std::move(*std::get_if<0>(&v_)); }
  T* operator->() { return std::get_if<0>(&v_); }
  const T* operator->() const { return std::get_if<0>(&v_); }
  Status error() const { return has_value() ? Status::Ok : *std::get_if<1>(&v_); }

 private:
  std::variant<T, Status> v_;
};

// IB_TRY(name, expression): binds the value to `name`, or returns the error to the caller.
#define IB_TRY(name, expression)                    \
  auto name##_result = (expression);                \
  if (!name##_result) return name##_result.error(); \
  auto name = *std::move(name##_result)  // NOLINT(bugprone-macro-parentheses)

// IB_CHECK(expression): returns a Status other than Ok to the caller.
#define IB_CHECK(expression) \
  if (const ::ib::Status status_ = (expression); status_ != ::ib::Status::Ok) return status_

}  // namespace ib
