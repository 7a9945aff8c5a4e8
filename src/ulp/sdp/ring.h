// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Ring<T, N>: a queue of at most N values inside a struct that lies in shared memory.
//
// It has no pointers and can be copied as bytes. Another process may have written its positions:
// each access masks its index, and size() never exceeds N, so no content of the struct leads
// outside of it.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace ib::sdp {

template <class T, std::size_t N>
struct Ring {
  static_assert(std::has_single_bit(N) && std::is_trivially_copyable_v<T>);

  std::array<T, N> places{};
  std::uint32_t first = 0;  // both grow without end
  std::uint32_t last = 0;

  std::uint32_t size() const {
    const std::uint32_t count = last - first;
    return count <= N ? count : 0;  // positions that cannot be: nothing is in it
  }
  bool is_empty() const { return size() == 0; }
  bool is_full() const { return size() == N; }
  // The i-th from the front. Any i is inside the array.
  T& operator[](std::uint32_t i) { return places[(first + i) & (N - 1)]; }
  const T& operator[](std::uint32_t i) const { return places[(first + i) & (N - 1)]; }
  T& front() { return (*this)[0]; }
  const T& front() const { return (*this)[0]; }
  T& back() { return (*this)[size() - 1]; }
  // Returns false if it is full.
  bool push(const T& value) {
    if (is_full()) return false;
    places[last & (N - 1)] = value;
    ++last;
    return true;
  }
  void pop() {
    if (!is_empty()) ++first;
  }
  void clear() { first = last; }
};

}  // namespace ib::sdp
