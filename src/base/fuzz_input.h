// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The input of a fuzzer, read step by step.
#pragma once

#include <cstddef>
#include <cstdint>

namespace ib {

// Bytes of a fuzzer's input; zeros once they are used up.
class FuzzInput {
 public:
  FuzzInput(const std::uint8_t* data, std::size_t size) : data_(data), left_(size) {}
  bool is_over() const { return left_ == 0; }
  std::uint8_t byte() {
    if (left_ == 0) return 0;
    --left_;
    return *data_++;
  }
  std::uint64_t number(unsigned bytes) {
    std::uint64_t value = 0;
    for (unsigned i = 0; i < bytes; ++i) value = value << 8 | byte();
    return value;
  }
  template <class T, std::size_t N>
  const T& one_of(const T (&all)[N]) {
    return all[byte() % N];
  }

 private:
  const std::uint8_t* data_;
  std::size_t left_;
};

}  // namespace ib
