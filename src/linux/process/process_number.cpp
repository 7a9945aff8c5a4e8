// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "linux/process/process_number.h"

#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <new>

namespace ib::os {
namespace {

using Generation = std::atomic<std::uint32_t>;

// The number of forks between the first process and this one, of those whose processes had a use
// for it: a child inherits `last_generation` and finds the word, of a page that a fork empties, 0.
constinit std::atomic<std::uint32_t> last_generation{0};
constinit std::atomic<Generation*> generation_word{nullptr};

Generation* make_word() {
  constexpr std::size_t kBytes = sizeof(Generation);  // of a page
  void* const at =
      ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (at == MAP_FAILED) return nullptr;
  if (::madvise(at, kBytes, MADV_WIPEONFORK) != 0) {
    (void)::munmap(at, kBytes);
    return nullptr;
  }
  auto* const made = new (at) Generation{0};
  Generation* found = nullptr;
  if (generation_word.compare_exchange_strong(found, made, std::memory_order_acq_rel)) return made;
  (void)::munmap(at, kBytes);
  return found;
}

// 0 if there is no such page: before Linux 4.14, or without memory.
std::uint32_t generation() {
  Generation* word = generation_word.load(std::memory_order_acquire);
  if (word == nullptr) word = make_word();
  if (word == nullptr) return 0;
  std::uint32_t known = word->load(std::memory_order_acquire);
  if (known != 0) return known;
  const std::uint32_t next = last_generation.fetch_add(1, std::memory_order_acq_rel) + 1;
  return word->compare_exchange_strong(known, next, std::memory_order_acq_rel) ? next : known;
}

}  // namespace

std::uint64_t process_number() {
  return std::uint64_t{generation()} << 32 | static_cast<std::uint32_t>(::getpid());
}

}  // namespace ib::os
