// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// InlineBytes: a number of bytes that has a limit, without an allocation.
#pragma once

#include "base/assert.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <type_traits>

namespace ib {

template <std::size_t kMost>
class InlineBytes {
 public:
  InlineBytes() {}  // NOLINT(modernize-use-equals-default): this leaves the bytes as they are

  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  const std::uint8_t* data() const { return bytes_.data(); }
  const std::uint8_t* begin() const { return data(); }
  const std::uint8_t* end() const { return data() + size_; }

  void append(std::span<const std::uint8_t> more) {
    IB_ASSERT(more.size() <= kMost - size_);
    if (!more.empty()) std::memcpy(bytes_.data() + size_, more.data(), more.size());
    size_ += more.size();
  }
  template <class T>
  void append_object(const T& object) {
    static_assert(std::is_trivially_copyable_v<T>);
    append({reinterpret_cast<const std::uint8_t*>(&object), sizeof object});
  }
  // Zeros up to the next multiple.
  void pad_to(std::size_t multiple) {
    while (size_ % multiple != 0) {
      const std::uint8_t zero = 0;
      append({&zero, 1});
    }
  }

 private:
  std::array<std::uint8_t, kMost> bytes_;
  std::size_t size_ = 0;
};

}  // namespace ib
