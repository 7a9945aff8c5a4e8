// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "ipoib/offload_word.h"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <initializer_list>

namespace ib::ipoib::driver {
namespace {

Offload tcp() {
  Offload offload;
  offload.needs_checksum = true;
  offload.checksum_start = 20;
  offload.checksum_offset = 16;
  offload.segmentation = Segmentation::Tcp4;
  offload.segment_size = 1448;
  return offload;
}

TEST(OffloadWord, ASegmentThatIsStillToBeCutArrivesAsItWas) {
  const auto word = to_immediate(tcp());
  ASSERT_TRUE(word.has_value());
  EXPECT_EQ(from_immediate(*word), tcp());
}

TEST(OffloadWord, EveryKindAndPlaceArrives) {
  for (const auto kind :
       {Segmentation::None, Segmentation::Tcp4, Segmentation::Tcp6, Segmentation::Udp}) {
    for (const std::uint16_t place : std::initializer_list<std::uint16_t>{16, 6, 2, 0}) {
      for (const std::uint16_t start : std::initializer_list<std::uint16_t>{0, 20, 40, 60, 1020}) {
        Offload offload;
        offload.needs_checksum = true;
        offload.ecn = start == 40;
        offload.checksum_start = start;
        offload.checksum_offset = place;
        offload.segmentation = kind;
        if (kind != Segmentation::None) offload.segment_size = 65535;
        const auto word = to_immediate(offload);
        ASSERT_TRUE(word.has_value());
        EXPECT_EQ(from_immediate(*word), offload);
      }
    }
  }
}

TEST(OffloadWord, APlaceThatHasNoCodeIsRefused) {
  Offload offload = tcp();
  offload.checksum_offset = 8;
  EXPECT_FALSE(to_immediate(offload).has_value());
  offload = tcp();
  offload.checksum_start = 1024;
  EXPECT_FALSE(to_immediate(offload).has_value());
  offload.checksum_start = 22;
  EXPECT_FALSE(to_immediate(offload).has_value());
}

TEST(OffloadWord, ItIsBigEndianOnTheWire) {
  const auto word = to_immediate(tcp());
  ASSERT_TRUE(word.has_value());
  std::array<unsigned char, 4> wire{};
  std::memcpy(wire.data(), &*word, wire.size());
  EXPECT_EQ(wire, (std::array<unsigned char, 4>{0x80, 0x59, 0x05, 0xa8}));
}

TEST(OffloadWord, OtherWordsAreNone) {
  EXPECT_FALSE(from_immediate(0).has_value());
  std::array<unsigned char, 4> wire{0x80, 0x07, 0, 0};  // no such segmentation
  std::uint32_t word = 0;
  std::memcpy(&word, wire.data(), wire.size());
  EXPECT_FALSE(from_immediate(word).has_value());
}

}  // namespace
}  // namespace ib::ipoib::driver
