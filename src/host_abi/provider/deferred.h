// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// deferred<operation>: the operation as libibverbs calls it if it is a control call. Such a call is
// no cancellation point, as it takes locks and makes objects: pthread_cancel() takes effect when it
// has ended. Calls of the data path do without, since none of them reaches a cancellation point.
#pragma once

#include "linux/process/client_signals.h"

namespace ib::host_abi {

template <auto operation>
struct Deferred;
template <class Result, class... Args, Result (*operation)(Args...)>
struct Deferred<operation> {
  static Result call(Args... args) {
    return os::without_cancellation([&] { return run(args...); });
  }

 private:
  // Out of line: call() has no part that throws nothing, where asynchronous cancellation, which
  // comes at any instruction of it, would end the process.
  [[gnu::noinline]] static Result run(Args... args) noexcept { return operation(args...); }
};
template <auto operation>
inline constexpr auto deferred = &Deferred<operation>::call;

}  // namespace ib::host_abi
