// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The part of a thread's stack that is there for certain. The kernel's calls that copy within a
// process, and fail where it has no memory, cost more than the rest of a command; librdmacm has its
// commands and answers on its stack.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

// The upper end of the first thread's stack: glibc has it from the kernel.
// NOLINTNEXTLINE(bugprone-reserved-identifier,readability-identifier-naming)
extern "C" [[gnu::weak]] void* __libc_stack_end;

namespace ib::host_abi::preload {

// From a frame that the thread is in, up to the end of the page where it begins: older frames, or
// whatever lies above a stack in its last page. A frame near the end of the first thread's stack is
// of that stack, and all that is above it: the kernel has mapped so much for it since exec().
class OwnStack {
 public:
  static constexpr std::uintptr_t kMappedAtExec = std::uintptr_t{128} * 1024;

  // `frame`: __builtin_frame_address(0) of a function that has not returned yet.
  explicit OwnStack(const void* frame) : OwnStack(frame, first_stack_end()) {}
  OwnStack(const void* frame, std::uintptr_t first_stack_end)
      : begin_(reinterpret_cast<std::uintptr_t>(frame)), end_((begin_ | (kSmallestPage - 1)) + 1) {
    const bool is_first = begin_ < first_stack_end && first_stack_end - begin_ <= kMappedAtExec;
    if (is_first) end_ = std::max(end_, first_stack_end);
  }

  bool has(const void* data, std::size_t size) const {
    const auto at = reinterpret_cast<std::uintptr_t>(data);
    return at >= begin_ && at < end_ && size <= end_ - at;
  }

 private:
  static std::uintptr_t first_stack_end() {
    return &__libc_stack_end == nullptr ? 0 : reinterpret_cast<std::uintptr_t>(__libc_stack_end);
  }

  static constexpr std::uintptr_t kSmallestPage = 4096;  // of the machines that there are

  std::uintptr_t begin_;
  std::uintptr_t end_;
};

}  // namespace ib::host_abi::preload
