// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// epoll sets that contain sockets of the switch. The set of the kernel stays and has all other
// descriptors, and of listeners the part that takes plain TCP; beside it stand the items below.
#pragma once

namespace ib::host_abi::sockets {

// `fd` is closed: as an epoll set, and as a member of one.
void forget_in_epolls(int fd);
void release_epoll_locks_of_parent();

}  // namespace ib::host_abi::sockets
