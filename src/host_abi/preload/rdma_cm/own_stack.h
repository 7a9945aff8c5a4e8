// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The part of a thread's stack that is there for certain. The kernel's calls that copy within a
// process, and fail where it has no memory, cost more than the rest of a command; librdmacm has its
// commands and answers on its stack.
#pragma once

#include <cstddef>
#include <cstdint>

namespace ib::host_abi::preload {

// From a frame that the thread is in, up to the end of the page where it begins: older frames, or
// whatever lies above a stack in its last page.
class OwnStack {
 public:
  // `frame`: __builtin_frame_address(0) of a function that has not returned yet.
  explicit OwnStack(const void* frame)
      : begin_(reinterpret_cast<std::uintptr_t>(frame)), end_((begin_ | (kSmallestPage - 1)) + 1) {}

  bool has(const void* data, std::size_t size) const {
    const auto at = reinterpret_cast<std::uintptr_t>(data);
    return at >= begin_ && at < end_ && size <= end_ - at;
  }

 private:
  static constexpr std::uintptr_t kSmallestPage = 4096;  // of the machines that there are

  std::uintptr_t begin_;
  std::uintptr_t end_;
};

}  // namespace ib::host_abi::preload
