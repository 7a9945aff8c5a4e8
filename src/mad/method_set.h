// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// MethodSet: methods of requests (0x00 to 0x7f), as an agent registers them.
#pragma once

#include <bitset>
#include <cstdint>
#include <initializer_list>

namespace ib::mad {

class MethodSet {
 public:
  static constexpr std::size_t kMethods = 128;

  MethodSet() = default;
  // Methods with the response bit are those of requests without it.
  MethodSet(std::initializer_list<std::uint8_t> methods) {
    for (const std::uint8_t method : methods) bits_.set(method % kMethods);
  }
  void add(std::uint8_t method) { bits_.set(method % kMethods); }
  bool has(std::uint8_t method) const { return method < kMethods && bits_.test(method); }
  bool is_empty() const { return bits_.none(); }
  bool meets(const MethodSet& other) const { return (bits_ & other.bits_).any(); }
  // The lowest method of both; 128 if there is none.
  std::uint8_t first_of_both(const MethodSet& other) const {
    std::uint8_t method = 0;
    while (method < kMethods && !(has(method) && other.has(method))) ++method;
    return method;
  }

 private:
  std::bitset<kMethods> bits_;
};

}  // namespace ib::mad
