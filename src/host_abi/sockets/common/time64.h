// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The functions of libc, with names and times of their own, that 32-bit programs with a time_t of
// 64 bits (_TIME_BITS=64) call.
#pragma once

#include "host_abi/sockets/common/real_calls.h"

#if __TIMESIZE == 32
#include <climits>
#include <cstdint>

namespace ib::host_abi::sockets {

struct Timespec64 {
  std::int64_t tv_sec;
  std::int32_t tv_nsec;
  std::int32_t unused;
};
struct Timeval64 {
  std::int64_t tv_sec;
  std::int64_t tv_usec;
};
static_assert(sizeof(Timespec64) == 16 && sizeof(Timeval64) == 16);

// A timeout as a Deadline takes it, for which more than 68 years are none.
class Narrow {
 public:
  explicit Narrow(const Timespec64* timeout)
      : is_limited_(timeout != nullptr && timeout->tv_sec <= INT_MAX) {
    if (is_limited_) time_ = {static_cast<time_t>(timeout->tv_sec), timeout->tv_nsec};
  }
  const timespec* get() const { return is_limited_ ? &time_ : nullptr; }

 private:
  bool is_limited_;
  timespec time_{};
};

namespace real {

inline constinit Real<int(pollfd*, nfds_t, const Timespec64*, const sigset_t*)> ppoll64{
    "__ppoll64"};
inline constinit Real<int(int, fd_set*, fd_set*, fd_set*, Timeval64*)> select64{"__select64"};
inline constinit Real<int(int, fd_set*, fd_set*, fd_set*, const Timespec64*, const sigset_t*)>
    pselect64{"__pselect64"};
inline constinit Real<ssize_t(int, msghdr*, int)> recvmsg64{"__recvmsg64"};
inline constinit Real<ssize_t(int, const msghdr*, int)> sendmsg64{"__sendmsg64"};
inline constinit Real<int(int, mmsghdr*, unsigned, int, Timespec64*)> recvmmsg64{"__recvmmsg64"};
inline constinit Real<int(int, mmsghdr*, unsigned, int)> sendmmsg64{"__sendmmsg64"};
inline constinit Real<int(int, int, int, void*, socklen_t*)> getsockopt64{"__getsockopt64"};
inline constinit Real<int(int, int, int, const void*, socklen_t)> setsockopt64{"__setsockopt64"};
inline constinit Real<int(int, int, ...)> fcntl_time64{"__fcntl_time64"};
inline constinit Real<int(int, unsigned long, ...)> ioctl_time64{"__ioctl_time64"};

}  // namespace real
}  // namespace ib::host_abi::sockets
#endif
