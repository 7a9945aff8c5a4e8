// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "ipoib/offload_word.h"

#include "base/big_endian.h"

#include <array>

namespace ib::ipoib::driver {

namespace {

constexpr std::uint32_t kPresent = 1u << 31;
constexpr std::uint32_t kEcn = 1u << 30;
constexpr unsigned kPlaceShift = 28;
constexpr unsigned kStartShift = 20;
constexpr std::uint32_t kChecksum = 1u << 19;
constexpr unsigned kKindShift = 16;
constexpr std::array<std::uint16_t, 4> kPlaces{16, 6, 2, 0};
constexpr std::uint16_t kStartUnit = 4;

std::optional<std::uint32_t> place_code(std::uint16_t place) {
  for (std::uint32_t code = 0; code < kPlaces.size(); ++code) {
    if (kPlaces[code] == place) return code;
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::uint32_t> to_immediate(const Offload& offload) {
  std::uint32_t word = kPresent;
  if (offload.ecn) word |= kEcn;
  if (offload.needs_checksum) {
    const auto place = place_code(offload.checksum_offset);
    const bool fits =
        offload.checksum_start % kStartUnit == 0 && offload.checksum_start / kStartUnit <= 0xff;
    if (!place || !fits) return std::nullopt;
    word |= kChecksum | *place << kPlaceShift |
            std::uint32_t{offload.checksum_start} / kStartUnit << kStartShift;
  }
  if (offload.segmentation != Segmentation::None) {
    word |= static_cast<std::uint32_t>(offload.segmentation) << kKindShift | offload.segment_size;
  }
  return to_big_endian(word);
}

std::optional<Offload> from_immediate(std::uint32_t immediate) {
  const std::uint32_t word = to_big_endian(immediate);
  if ((word & kPresent) == 0) return std::nullopt;
  Offload offload;
  offload.ecn = (word & kEcn) != 0;
  offload.needs_checksum = (word & kChecksum) != 0;
  if (offload.needs_checksum) {
    offload.checksum_offset = kPlaces[word >> kPlaceShift & 3];
    offload.checksum_start = static_cast<std::uint16_t>((word >> kStartShift & 0xff) * kStartUnit);
  }
  const std::uint32_t kind = word >> kKindShift & 7;
  if (kind > static_cast<std::uint32_t>(Segmentation::Udp)) return std::nullopt;
  offload.segmentation = static_cast<Segmentation>(kind);
  if (kind != 0) offload.segment_size = static_cast<std::uint16_t>(word);
  return offload;
}

bool put_offload(const Offload& offload, user::SendWqe& request) {
  request.opcode = verbs::WrOpcode::Send;
  if (offload.is_nothing()) return true;
  const auto immediate = to_immediate(offload);
  if (!immediate) return false;
  request.opcode = verbs::WrOpcode::SendWithImm;
  request.imm = *immediate;
  return true;
}

bool take_offload(const user::Completion& completion, Offload& offload) {
  if ((completion.flags & verbs::wc_flag::kWithImm) == 0) return true;
  const auto word = from_immediate(completion.imm);
  if (!word) return false;
  offload = *word;
  return true;
}

}  // namespace ib::ipoib::driver
