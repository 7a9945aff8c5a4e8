// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The only call of libibverbs that is answered here: whether the kernel copies registered memory at
// fork(). libibverbs would query an RDMA driver's socket, which a virtual host has not, and take
// the answer of a kernel before Linux 5.12. softib gives the child copies (linux/adopt/adopt.h), on
// any kernel.
#include "host_abi/preload/real.h"
#include "host_abi/preload/remote.h"

namespace ib::host_abi::preload {
namespace {

// enum ibv_fork_status
constexpr int kDisabled = 0;
constexpr int kUnneeded = 2;

// A program may have loaded libibverbs for itself, so that RTLD_NEXT does not find it.
int from_libibverbs() {
  using Function = int();
  void* found = ::dlsym(RTLD_NEXT, "ibv_is_fork_initialized");
  if (found == nullptr) {
    void* const library = ::dlopen("libibverbs.so.1", RTLD_LAZY | RTLD_NOLOAD);
    if (library != nullptr) found = ::dlsym(library, "ibv_is_fork_initialized");
  }
  return found != nullptr ? reinterpret_cast<Function*>(found)() : kDisabled;
}

}  // namespace

extern "C" {

int preload_is_fork_initialized() IB_STANDS_FOR("ibv_is_fork_initialized");
int preload_is_fork_initialized() {
  return remote::reachable() ? kUnneeded : from_libibverbs();
}

}  // extern "C"

}  // namespace ib::host_abi::preload
