// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Calls about the program's memory that mean something else for adopted pages, which are shared
// memory to the kernel: madvise(), and vmsplice(), which leaves pages in a pipe.
#include "host_abi/preload/fd_table.h"
#include "host_abi/preload/hooks.h"
#include "host_abi/preload/real.h"
#include "host_abi/preload/system_calls.h"

#include <sys/uio.h>

#include <atomic>

namespace ib::host_abi::preload {
namespace {

using Madvise = int(void*, std::size_t, int);
// Looked up at load: an allocator may call madvise() when it cannot be called itself. Until then
// the kernel does without libc.
constinit std::atomic<Madvise*> real_madvise{nullptr};
constinit Real<ssize_t(int, const iovec*, std::size_t, unsigned)> real_vmsplice("vmsplice");
constinit std::atomic<bool> spliced{false};

[[gnu::constructor]] void find_madvise() {
  real_madvise.store(reinterpret_cast<Madvise*>(::dlsym(RTLD_NEXT, "madvise")));
}

}  // namespace

namespace fds {

void report_splices() {
  const auto report = hooks().spliced;
  if (spliced.load() && report != nullptr) report();
}

}  // namespace fds

extern "C" {

int preload_madvise(void* address, std::size_t length, int advice) IB_STANDS_FOR("madvise");
int preload_madvise(void* address, std::size_t length, int advice) {
  int result = 0;
  const auto advise = fds::hooks().advise;
  if (advise == nullptr || advise(address, length, advice, &result) == 0) {
    Madvise* const real = real_madvise.load(std::memory_order_relaxed);
    return real != nullptr ? real(address, length, advice) : sys::madvise(address, length, advice);
  }
  if (result == 0) return 0;
  errno = -result;
  return -1;
}

ssize_t preload_vmsplice(int fd, const iovec* pieces, std::size_t count, unsigned flags)
    IB_STANDS_FOR("vmsplice");
ssize_t preload_vmsplice(int fd, const iovec* pieces, std::size_t count, unsigned flags) {
  if (!spliced.exchange(true)) fds::report_splices();
  return real_vmsplice(fd, pieces, count, flags);
}

}  // extern "C"

}  // namespace ib::host_abi::preload
