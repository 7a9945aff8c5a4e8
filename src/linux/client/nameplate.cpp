// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The address makes a write safe: process_vm_writev() moves its pieces in order and stops at the
// first that is not mapped, and in any other process the page of the nameplate is not. So the
// places below are ones where no kernel puts a mapping by itself, and which allocators, sanitizers
// and language runtimes leave alone; 2^32 or, in a smaller address space, 2^24 pages each.
#include "linux/client/nameplate.h"

#include "linux/adopt/adopt_syscall.h"
#include "linux/process/process_number.h"

#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <mutex>

#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif

namespace ib::os {
namespace {

struct Place {
  std::uint64_t first;
  std::uint64_t pages;
};
constexpr std::uint64_t kPage = 65536;  // of any architecture
#if UINTPTR_MAX == UINT32_MAX
constexpr std::array<Place, 1> kPlaces{{{0x4000'0000, 0x6000'0000 / kPage}}};
#else
constexpr std::array<Place, 2> kPlaces{
    {{0x4000'0000'0000, 0x1000'0000'0000 / kPage}, {0x40'0000'0000, 0x10'0000'0000 / kPage}}};
#endif
constexpr int kTries = 4;

bool fill_random(void* to, std::size_t n) {
  return raw_syscall(SYS_getrandom, to_long(to), static_cast<long>(n)) == static_cast<long>(n);
}

// By system calls alone: a sanitizer that checks where programs have memory would object.
bool put_up_at(std::uint64_t address, platform::Nameplate& plate) {
  constexpr long kFlags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE;
  const auto page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  const long mapped = raw_syscall(kMapAnonymous, to_long(address), to_long(page),
                                  PROT_READ | PROT_WRITE, kFlags, -1, 0);
  if (is_error(mapped)) return false;
  // Kernels before 4.17 take the address for a hint.
  const bool there = mapped == to_long(address) &&
                     raw_syscall(SYS_madvise, mapped, to_long(page), MADV_DONTFORK) == 0;
  std::uint64_t number = 0;
  if (!there || !fill_random(&number, sizeof number)) {
    (void)raw_syscall(SYS_munmap, mapped, to_long(page));
    return false;
  }
  (void)raw_syscall(SYS_madvise, mapped, to_long(page), MADV_DONTDUMP);
  // NOLINTNEXTLINE(performance-no-int-to-ptr)
  void* const at = reinterpret_cast<void*>(address);
#if defined(__x86_64__)
  const void* from = &number;
  void* to = at;
  std::size_t n = sizeof number;
  asm volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(n) : : "memory");
#else
  *static_cast<volatile std::uint64_t*>(at) = number;
#endif
  plate = {address, number};
  return true;
}

platform::Nameplate put_up() {
  platform::Nameplate plate;
  for (const Place& place : kPlaces) {
    for (int i = 0; i < kTries; ++i) {
      std::uint64_t random = 0;
      if (!fill_random(&random, sizeof random)) return {};
      if (put_up_at(place.first + random % place.pages * kPage, plate)) return plate;
    }
  }
  return {};
}

}  // namespace

platform::Nameplate nameplate() {
  static std::mutex lock;
  static platform::Nameplate plate;
  static std::uint64_t owner = 0;
  const std::lock_guard guard(lock);
  if (const std::uint64_t here = process_number(); owner != here) {
    plate = put_up();
    owner = here;
  }
  return plate;
}

}  // namespace ib::os
