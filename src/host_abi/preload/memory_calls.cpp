// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Calls about the program's memory. madvise() has another meaning for adopted pages, which are
// shared memory to the kernel; vmsplice() leaves pages in a pipe; munmap(), mmap() over a mapping,
// mremap() and mprotect() take away the memory under a region.
//
// Registration caches (UCX, OpenMPI) look these functions up by dlsym() and patch the code that
// they get, so as to see also the calls that libc makes by itself, as in free(). They must get
// libc's functions: ours have libc's versions, hidden. References of programs and libraries have a
// version and lead here; dlsym() has none and passes hidden ones over.
#include "host_abi/preload/fd_table.h"
#include "host_abi/preload/hooks.h"
#include "host_abi/preload/real.h"
#include "host_abi/preload/system_calls.h"

#include <sys/mman.h>
#include <sys/uio.h>

#include <atomic>
#include <cstdarg>

#if defined(__x86_64__)
#define IB_FIRST_VERSION "GLIBC_2.2.5"
#elif defined(__aarch64__)
#define IB_FIRST_VERSION "GLIBC_2.17"
#elif defined(__i386__)
#define IB_FIRST_VERSION "GLIBC_2.0"
#define IB_MMAP64_VERSION "GLIBC_2.1"
#else
#error "the version that libc's mmap() has on this architecture"
#endif
#if !defined(IB_MMAP64_VERSION)
#define IB_MMAP64_VERSION IB_FIRST_VERSION
#endif
#define IB_HIDDEN(symbol, version) \
  __asm__(".symver softib_" symbol ", " symbol "@" version ", remove")

IB_HIDDEN("madvise", IB_FIRST_VERSION);
IB_HIDDEN("munmap", IB_FIRST_VERSION);
IB_HIDDEN("mprotect", IB_FIRST_VERSION);
IB_HIDDEN("mremap", IB_FIRST_VERSION);
IB_HIDDEN("mmap", IB_FIRST_VERSION);
IB_HIDDEN("mmap64", IB_MMAP64_VERSION);
IB_HIDDEN("pkey_mprotect", "GLIBC_2.27");

namespace ib::host_abi::preload {
namespace {

// Resolved at load: an allocator may make these calls at a time when it cannot be called itself.
// Until then a system call replaces libc's function.
template <class Function>
class FoundAtLoad {
 public:
  void find(const char* name) {
    function_.store(reinterpret_cast<Function*>(::dlsym(RTLD_NEXT, name)));
  }
  // Relaxed: libc was there before, with all that the function needs.
  Function* get_or(Function* before) const {
    Function* const found = function_.load(std::memory_order_relaxed);
    return found != nullptr ? found : before;
  }

 private:
  std::atomic<Function*> function_{nullptr};
};

constinit FoundAtLoad<int(void*, std::size_t, int)> real_madvise;
constinit FoundAtLoad<int(void*, std::size_t)> real_munmap;
constinit FoundAtLoad<int(void*, std::size_t, int)> real_mprotect;
constinit FoundAtLoad<int(void*, std::size_t, int, int)> real_pkey_mprotect;
constinit FoundAtLoad<void*(void*, std::size_t, std::size_t, int, void*)> real_mremap;
constinit FoundAtLoad<void*(void*, std::size_t, int, int, int, off64_t)> real_mmap64;
constinit Real<ssize_t(int, const iovec*, std::size_t, unsigned)> real_vmsplice("vmsplice");

[[gnu::constructor]] void find_memory_calls() {
  real_madvise.find("madvise");
  real_munmap.find("munmap");
  real_mprotect.find("mprotect");
  real_pkey_mprotect.find("pkey_mprotect");
  real_mremap.find("mremap");
  real_mmap64.find("mmap64");
}

void tell_change(void* address, std::size_t length) {
  const auto tell = fds::hooks().mappings_change;
  if (tell != nullptr && length != 0) tell(address, length);
}

// A program that may still read and write has lost nothing.
void tell_rights(void* address, std::size_t length, int rights) {
  constexpr int kAll = PROT_READ | PROT_WRITE;
  if ((rights & kAll) != kAll) tell_change(address, length);
}

}  // namespace

extern "C" {

int preload_madvise(void* address, std::size_t length, int advice) IB_STANDS_FOR("softib_madvise");
int preload_madvise(void* address, std::size_t length, int advice) {
  int result = 0;
  const auto advise = fds::hooks().advise;
  if (advise == nullptr || advise(address, length, advice, &result) == 0) {
    return real_madvise.get_or(sys::madvise)(address, length, advice);
  }
  if (result == 0) return 0;
  errno = -result;
  return -1;
}

ssize_t preload_vmsplice(int fd, const iovec* pieces, std::size_t count, unsigned flags)
    IB_STANDS_FOR("vmsplice");
ssize_t preload_vmsplice(int fd, const iovec* pieces, std::size_t count, unsigned flags) {
  fds::note_splice();
  return real_vmsplice(fd, pieces, count, flags);
}

int preload_munmap(void* address, std::size_t length) IB_STANDS_FOR("softib_munmap");
int preload_munmap(void* address, std::size_t length) {
  tell_change(address, length);
  return real_munmap.get_or(sys::munmap)(address, length);
}

int preload_mprotect(void* address, std::size_t length, int rights)
    IB_STANDS_FOR("softib_mprotect");
int preload_mprotect(void* address, std::size_t length, int rights) {
  tell_rights(address, length, rights);
  return real_mprotect.get_or(sys::mprotect)(address, length, rights);
}

int preload_pkey_mprotect(void* address, std::size_t length, int rights, int key)
    IB_STANDS_FOR("softib_pkey_mprotect");
int preload_pkey_mprotect(void* address, std::size_t length, int rights, int key) {
  tell_change(address, length);  // a protection key may take away rights that `rights` grants
  return real_pkey_mprotect.get_or(sys::pkey_mprotect)(address, length, rights, key);
}

void* preload_mremap(void* from, std::size_t old_length, std::size_t length, int flags, ...)
    IB_STANDS_FOR("softib_mremap");
void* preload_mremap(void* from, std::size_t old_length, std::size_t length, int flags, ...) {
  void* to = nullptr;
  if ((flags & MREMAP_FIXED) != 0) {
    va_list more;
    va_start(more, flags);
    to = va_arg(more, void*);
    va_end(more);
    tell_change(to, length);
  }
  if ((flags & MREMAP_MAYMOVE) != 0 || length < old_length) tell_change(from, old_length);
  return real_mremap.get_or(sys::mremap)(from, old_length, length, flags, to);
}

void* preload_mmap64(void* address, std::size_t length, int rights, int flags, int fd,
                     off64_t offset) IB_STANDS_FOR("softib_mmap64");
void* preload_mmap64(void* address, std::size_t length, int rights, int flags, int fd,
                     off64_t offset) {
  if ((flags & MAP_FIXED) != 0) tell_change(address, length);
  return real_mmap64.get_or(sys::mmap)(address, length, rights, flags, fd, offset);
}

void* preload_mmap(void* address, std::size_t length, int rights, int flags, int fd, off_t offset)
    IB_STANDS_FOR("softib_mmap");
void* preload_mmap(void* address, std::size_t length, int rights, int flags, int fd, off_t offset) {
  return preload_mmap64(address, length, rights, flags, fd, offset);
}

}  // extern "C"

}  // namespace ib::host_abi::preload
