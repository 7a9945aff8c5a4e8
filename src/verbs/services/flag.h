// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#pragma once

#include <cstdint>

namespace ib::verbs::control {

// A bool in a buffer that a program fills in: every byte is a value, and any but 0 is true.
class Flag {
 public:
  constexpr Flag() = default;
  constexpr Flag(bool on) : byte_(on ? 1 : 0) {}  // NOLINT(google-explicit-constructor): as a bool
  constexpr operator bool() const { return byte_ != 0; }  // NOLINT(google-explicit-constructor)

 private:
  std::uint8_t byte_ = 0;
};

}  // namespace ib::verbs::control
