// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Kept mappings: they make pages that are given back one mapping with the memory around them.
//
// The kernel joins neighbouring mappings of private memory only if they descend from one mapping
// (they have one anon_vma) and count their pages alike (vm_pgoff). Memory that is made for pages
// which are given back has neither, and moves with what it has: each adoption and return would
// leave one more mapping behind, and a process may have 65,530 (vm.max_map_count). So one page of
// each mapping whose pages move is put aside, empty: address space without memory. Given back, it
// grows to the length of the moved part, is filled, and moves to where it was. The kernel joins it
// with its neighbours then. Flags, memory policy and advice come back with it.
#pragma once

#include <cstdint>
#include <vector>

namespace ib::os {

// The part [start, end) of an adopted range that was one mapping before.
struct KeptMapping {
  std::uint64_t start = 0;
  std::uint64_t end = 0;
  std::uint64_t at = 0;  // where its page is; 0: not kept
};

// Puts the page at `start` aside, with its content. Threads that have been stopped there wait on.
// Returns its new address; 0: the kernel cannot.
std::uint64_t put_aside(std::uint64_t start, std::uint64_t page_size);
// Frees the content of the page.
void empty_kept(std::uint64_t at, std::uint64_t page_size);

// Makes `length` bytes of a page that was put aside. They lie as `like` does within huge pages.
// Returns their address; 0: the kernel cannot, and the page is gone.
std::uint64_t grow_kept(std::uint64_t at, std::uint64_t page_size, std::uint64_t length,
                        std::uint64_t like);
void drop_kept(std::uint64_t at, std::uint64_t page_size);
void drop_kept(const std::vector<KeptMapping>& kept, std::uint64_t page_size);

}  // namespace ib::os
