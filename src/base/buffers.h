// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Structures as the byte buffers of requests, and text in their fixed arrays.
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <string_view>

namespace ib {

template <class T>
std::span<const std::byte> bytes_of(const T& value) {
  return std::as_bytes(std::span(&value, 1));
}
template <class T>
std::span<std::byte> room_of(T& value) {
  return std::as_writable_bytes(std::span(&value, 1));
}

// Cut to fit, always terminated.
template <std::size_t N>
void put_text(std::array<char, N>& chars, std::string_view text) {
  chars.fill('\0');
  text.substr(0, N - 1).copy(chars.data(), N - 1);
}

}  // namespace ib
