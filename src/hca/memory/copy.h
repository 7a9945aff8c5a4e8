// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// copy_tail_last: memcpy whose last (up to 8) bytes become visible after all others.
//
// RDMA programs poll the last byte of an incoming write [IBA1 9.5 o9-20 leaves it open; every
// adapter delivers in order and every program relies on it].
//
// Copies to and from the application's memory are what DMA is to a processor: ThreadSanitizer,
// which cannot follow the order that device memory gives them (other mappings, other processes),
// does not see them.
#pragma once

#include "base/sanitizer.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#if defined(__x86_64__) || defined(__i386__)
#include <cpuid.h>
#endif

namespace ib::hca {

// memcpy, of the application's memory.
inline void copy_as_dma(void* to, const void* from, std::uint64_t n) {
#if IB_THREAD_SANITIZER
  asm volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(n) : : "memory");
#else
  std::memcpy(to, from, n);
#endif
}

// Begins to fetch a line in order to write it, or does nothing; `at` may be any address. Processors
// of the x86 family that do not have the instruction skip it.
inline void prefetch_for_write(const void* at) {
#if defined(__x86_64__) || defined(__i386__)
  asm volatile("prefetchw (%0)" : : "r"(at));
#else
  __builtin_prefetch(at, 1);
#endif
}

// Begins to fetch a line in order to read it; `at` may be any address. gcc takes a function that
// does nothing but __builtin_prefetch() for one without effects, and drops its calls; not this.
inline void prefetch_for_read(const void* at) {
#if defined(__x86_64__) || defined(__i386__)
  asm volatile("prefetcht0 (%0)" : : "r"(at));
#else
  __builtin_prefetch(at);
#endif
}

#if defined(__x86_64__) || defined(__i386__)
// Whether the processor has fast strings for lengths of kLeastString on ("ERMS").
inline bool has_fast_strings() {
  static std::atomic<int> known{-1};
  int has = known.load(std::memory_order_relaxed);
  if (has < 0) {
    constexpr unsigned kLeaf = 7;
    constexpr unsigned kErms = 1u << 9;  // of EBX
    unsigned a = 0, b = 0, c = 0, d = 0;
    has = __get_cpuid_count(kLeaf, 0, &a, &b, &c, &d) != 0 && (b & kErms) != 0 ? 1 : 0;
    known.store(has, std::memory_order_relaxed);
  }
  return has != 0;
}
#endif

// memmove, for memory that another core may have in its caches: there a string instruction, which
// need not read lines before it writes them whole, is up to twice as fast as the loops of libc
// (docs/benchmarks.md). Some processors want its target aligned.
inline void copy_to_others(std::byte* to, const std::byte* from, std::size_t n) {
#if defined(__x86_64__) || defined(__i386__)
  constexpr std::size_t kLeastString = 4096;
  constexpr std::uintptr_t kAlignment = 64;
  const auto target = reinterpret_cast<std::uintptr_t>(to);
  const auto source = reinterpret_cast<std::uintptr_t>(from);
  const std::uintptr_t apart = target > source ? target - source : source - target;
  if (n >= kLeastString && apart >= n && has_fast_strings()) {
    const std::size_t head = -target % kAlignment;
    std::memcpy(to, from, head);
    to += head;
    from += head;
    n -= head;
    asm volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(n) : : "memory");
    return;
  }
#endif
  std::memmove(to, from, n);
}

template <class T>
inline void store_once(std::byte* to, const std::byte* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  __atomic_store_n(reinterpret_cast<T*>(to), value, __ATOMIC_RELEASE);
}

template <class T>
inline bool aligned(const std::byte* p) {
  return reinterpret_cast<std::uintptr_t>(p) % sizeof(T) == 0;
}

[[gnu::noinline]] inline void copy_more_tail_last(std::byte* to, const std::byte* from,
                                                  std::uint64_t n) {
  using Tail = std::uint64_t;
  if (n == 4 && aligned<std::uint32_t>(to)) return store_once<std::uint32_t>(to, from);
  if (n == 2 && aligned<std::uint16_t>(to)) return store_once<std::uint16_t>(to, from);
  if (n == 0) return;
  const std::uint64_t head = n > sizeof(Tail) ? n - sizeof(Tail) : 0;
  if (head > 0) copy_to_others(to, from, head);
  // For the bytes that are stored one by one; the last store releases by itself. (Where memcpy uses
  // stores past the caches, it ends with a fence of its own.)
  std::atomic_thread_fence(std::memory_order_release);
  // Byte by byte keeps the very last byte last whatever the alignment.
  if (n - head == sizeof(Tail) && aligned<Tail>(to + head)) {
    return store_once<Tail>(to + head, from + head);
  }
  for (std::uint64_t i = head; i + 1 < n; ++i) to[i] = from[i];
  store_once<std::uint8_t>(to + n - 1, from + n - 1);
}

[[gnu::always_inline]] inline void copy_tail_last(std::byte* to, const std::byte* from,
                                                  std::uint64_t n) {
  if (IB_THREAD_SANITIZER != 0) return copy_as_dma(to, from, n);
  using Tail = std::uint64_t;
  if (n == sizeof(Tail) && aligned<Tail>(to)) return store_once<Tail>(to, from);
  copy_more_tail_last(to, from, n);
}

}  // namespace ib::hca
