// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Fields of an attribute: where a number stands in its bytes, to the bit, and how it is read and
// written. An attribute lists its fields once (visit_fields in its header); its encoder, its
// decoder and the comparison of components (components.h) use that list.
#pragma once

#include "verbs/types.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <type_traits>

namespace ib::sa {

// `bit` counts from the most significant bit of the byte; a field that is wider than 64 bits starts
// and ends with a byte.
struct Field {
  std::uint16_t byte = 0;
  std::uint16_t bit = 0;
  std::uint16_t width = 0;  // bits
};
constexpr Field whole(std::uint16_t byte, std::uint16_t bytes) {
  return {byte, 0, static_cast<std::uint16_t>(bytes * 8)};
}
constexpr std::size_t bytes_covered(Field field) {
  return (std::size_t{field.bit} + field.width + 7) / 8;
}
constexpr std::uint64_t mask_of(Field field) {
  return field.width >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << field.width) - 1;
}

// A field of at most 64 bits that does not touch more than eight bytes.
constexpr std::uint64_t get(std::span<const std::byte> bytes, Field field) {
  std::uint64_t value = 0;
  const std::size_t covered = bytes_covered(field);
  for (const std::byte b : bytes.subspan(field.byte, covered)) {
    value = value << 8 | std::to_integer<std::uint64_t>(b);
  }
  return value >> (covered * 8 - field.bit - field.width) & mask_of(field);
}
constexpr void put(std::span<std::byte> bytes, Field field, std::uint64_t value) {
  const std::size_t covered = bytes_covered(field);
  const std::size_t shift = covered * 8 - field.bit - field.width;
  const std::uint64_t mask = mask_of(field) << shift;
  value = value << shift & mask;
  for (std::size_t i = 0; i < covered; ++i) {
    const std::size_t down = 8 * (covered - 1 - i);
    const auto keep = static_cast<std::byte>(~(mask >> down) & 0xff);
    std::byte& b = bytes[field.byte + i];
    b = (b & keep) | static_cast<std::byte>(value >> down & 0xff);
  }
}
// Returns whether the field has the same content in both.
inline bool equal(std::span<const std::byte> a, std::span<const std::byte> b, Field field) {
  if (field.width <= 64) return get(a, field) == get(b, field);
  return std::memcmp(a.data() + field.byte, b.data() + field.byte, field.width / 8) == 0;
}

// For visit_fields(): a record that is read, or one that is written.
template <class T, class Record>
concept RecordOf = std::is_same_v<std::remove_const_t<T>, Record>;

// Visitors of fields.
class FieldReader {
 public:
  explicit FieldReader(std::span<const std::byte> bytes) : bytes_(bytes) {}
  template <class T>
  requires std::is_integral_v<T> || std::is_enum_v<T>
  void operator()(Field field, T& value) const { value = static_cast<T>(get(bytes_, field)); }
  template <std::size_t N>
  void operator()(Field field, std::array<std::uint8_t, N>& value) const {
    std::memcpy(value.data(), bytes_.data() + field.byte, N);
  }
  template <class T, std::size_t N>
  void operator()(Field field, std::array<T, N>& value) const {
    for (std::size_t i = 0; i < N; ++i) {
      value[i] = static_cast<T>(
          get(bytes_, whole(field.byte + static_cast<std::uint16_t>(i * sizeof(T)), sizeof(T))));
    }
  }

 private:
  std::span<const std::byte> bytes_;
};

class FieldWriter {
 public:
  explicit FieldWriter(std::span<std::byte> bytes) : bytes_(bytes) {}
  template <class T>
  requires std::is_integral_v<T> || std::is_enum_v<T>
  void operator()(Field field, const T& value) const {
    put(bytes_, field, static_cast<std::uint64_t>(value));
  }
  template <std::size_t N>
  void operator()(Field field, const std::array<std::uint8_t, N>& value) const {
    std::memcpy(bytes_.data() + field.byte, value.data(), N);
  }
  template <class T, std::size_t N>
  void operator()(Field field, const std::array<T, N>& value) const {
    for (std::size_t i = 0; i < N; ++i) {
      put(bytes_, whole(field.byte + static_cast<std::uint16_t>(i * sizeof(T)), sizeof(T)),
          value[i]);
    }
  }

 private:
  std::span<std::byte> bytes_;
};

// An attribute of `Record::kSize` bytes, and back. Reserved bits are written as zero.
template <class Record>
std::array<std::byte, Record::kSize> encode(const Record& record) {
  std::array<std::byte, Record::kSize> bytes{};
  visit_fields(record, FieldWriter(bytes));
  return bytes;
}
template <class Record>
Record decode(std::span<const std::byte, Record::kSize> bytes) {
  Record record;
  visit_fields(record, FieldReader(bytes));
  return record;
}
// Of an attribute in a longer buffer, or in a shorter one, whose missing bytes are zero.
template <class Record>
Record decode_some(std::span<const std::byte> bytes) {
  std::array<std::byte, Record::kSize> padded{};
  std::copy_n(bytes.begin(), std::min(bytes.size(), padded.size()), padded.begin());
  return decode<Record>(padded);
}

}  // namespace ib::sa
