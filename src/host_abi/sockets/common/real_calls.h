// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The functions that the switch replaces: libc's, or another preload library's.
#pragma once

#include "host_abi/preload/real.h"

#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/uio.h>

#include <ctime>

namespace ib::host_abi::sockets::real {

template <class Function>
using Real = preload::Real<Function>;

inline constinit Real<int(int, int)> listen{"listen"};
inline constinit Real<int(int, const sockaddr*, socklen_t)> connect{"connect"};
inline constinit Real<int(int, sockaddr*, socklen_t*, int)> accept4{"accept4"};
inline constinit Real<ssize_t(int, void*, std::size_t)> read{"read"};
inline constinit Real<ssize_t(int, const void*, std::size_t)> write{"write"};
inline constinit Real<ssize_t(int, const iovec*, int)> readv{"readv"};
inline constinit Real<ssize_t(int, const iovec*, int)> writev{"writev"};
inline constinit Real<ssize_t(int, void*, std::size_t, int)> recv{"recv"};
inline constinit Real<ssize_t(int, const void*, std::size_t, int)> send{"send"};
inline constinit Real<ssize_t(int, void*, std::size_t, int, sockaddr*, socklen_t*)> recvfrom{
    "recvfrom"};
inline constinit Real<ssize_t(int, const void*, std::size_t, int, const sockaddr*, socklen_t)>
    sendto{"sendto"};
inline constinit Real<ssize_t(int, msghdr*, int)> recvmsg{"recvmsg"};
inline constinit Real<ssize_t(int, const msghdr*, int)> sendmsg{"sendmsg"};
inline constinit Real<int(int, mmsghdr*, unsigned, int, timespec*)> recvmmsg{"recvmmsg"};
inline constinit Real<int(int, mmsghdr*, unsigned, int)> sendmmsg{"sendmmsg"};
inline constinit Real<ssize_t(int, int, off64_t*, std::size_t)> sendfile64{"sendfile64"};
inline constinit Real<ssize_t(int, int, off_t*, std::size_t)> sendfile{"sendfile"};
inline constinit Real<ssize_t(int, off64_t*, int, off64_t*, std::size_t, unsigned)> splice{
    "splice"};
inline constinit Real<int(pollfd*, nfds_t, int)> poll{"poll"};
inline constinit Real<int(pollfd*, nfds_t, const timespec*, const sigset_t*)> ppoll{"ppoll"};
inline constinit Real<int()> sched_yield{"sched_yield"};
inline constinit Real<int(int, fd_set*, fd_set*, fd_set*, timeval*)> select{"select"};
inline constinit Real<int(int, fd_set*, fd_set*, fd_set*, const timespec*, const sigset_t*)>
    pselect{"pselect"};
inline constinit Real<int(int)> epoll_create{"epoll_create"};
inline constinit Real<int(int)> epoll_create1{"epoll_create1"};
inline constinit Real<int(int, int, int, epoll_event*)> epoll_ctl{"epoll_ctl"};
inline constinit Real<int(int, epoll_event*, int, int, const sigset_t*)> epoll_pwait{"epoll_pwait"};
inline constinit Real<int(int, int)> shutdown{"shutdown"};
inline constinit Real<int(int, sockaddr*, socklen_t*)> getsockname{"getsockname"};
inline constinit Real<int(int, sockaddr*, socklen_t*)> getpeername{"getpeername"};
inline constinit Real<int(int, int, int, void*, socklen_t*)> getsockopt{"getsockopt"};
inline constinit Real<int(int, int, int, const void*, socklen_t)> setsockopt{"setsockopt"};
inline constinit Real<int(int, int, ...)> fcntl{"fcntl"};
inline constinit Real<int(int, int, ...)> fcntl64{"fcntl64"};
inline constinit Real<int(int, unsigned long, ...)> ioctl{"ioctl"};
inline constinit Real<int(int)> close{"close"};
inline constinit Real<int(int)> dup{"dup"};
inline constinit Real<int(int, int)> dup2{"dup2"};
inline constinit Real<int(int, int, int)> dup3{"dup3"};
inline constinit Real<int(unsigned, unsigned, int)> close_range{"close_range"};
inline constinit Real<void(int)> closefrom{"closefrom"};

}  // namespace ib::host_abi::sockets::real
