// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// How the provider reports failure to libibverbs: one total table from Status to errno, and, if the
// environment has SOFTIB_LOG=1 (or `softib run --verbose`), a line on stderr with the reason.
//
// Nothing may be thrown into C code: guarded() is the frame of every entry point that allocates.
// One that succeeds leaves errno as it was, as the kernel's system calls do: librdmacm and programs
// look at it after calls that clean up.
#pragma once

#include "base/result.h"

#include <cerrno>
#include <new>
#include <utility>

namespace ib::host_abi {

// Ok is 0. `posting`: for work requests a full queue is ENOMEM, as applications expect.
int errno_of(Status status);
int errno_of_posting(Status status);
// Why a system call of the provider's own failed.
Status status_of(int error);

// Sets errno, writes the log line, returns the number. `verb`: for the log, "ibv_create_qp".
int fail(const char* verb, Status status);                  // the reason is user::last_reason()
int fail(const char* verb, int error, const char* reason);  // the provider's own refusals
inline int done(const char* verb, Status status) {
  return status == Status::Ok ? 0 : fail(verb, status);
}
// For entry points that return a pointer.
template <class... Args>
std::nullptr_t fail_null(const char* verb, Args... args) {
  static_cast<void>(fail(verb, args...));
  return nullptr;
}
bool logging();

// Runs `body`; an exception becomes errno and `failed`. Only bad_alloc can come from below.
template <class T, class F>
T guarded(const char* verb, T failed, F&& body) noexcept {
  const int before = errno;
  try {
    const T result = std::forward<F>(body)();
    if (result != failed) errno = before;
    return result;
  } catch (const std::bad_alloc&) {
    static_cast<void>(fail(verb, ENOMEM, "out of memory"));
  } catch (...) {
    static_cast<void>(fail(verb, EIO, "internal error: unexpected exception"));
  }
  return failed;
}
template <class F>
int guarded_int(const char* verb, F&& body) noexcept {
  const int before = errno;
  try {
    const int result = std::forward<F>(body)();
    if (result == 0) errno = before;
    return result;
  } catch (const std::bad_alloc&) {
    return fail(verb, ENOMEM, "out of memory");
  } catch (...) {
    return fail(verb, EIO, "internal error: unexpected exception");
  }
}

}  // namespace ib::host_abi
