// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "host_abi/sockets/aside.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <string_view>

namespace ib::host_abi::sockets {
namespace {

bool put(Aside& aside, std::string_view bytes) {
  char* const room = aside.room_for(bytes.size());
  if (room == nullptr) return false;
  std::memcpy(room, bytes.data(), bytes.size());
  aside.add(bytes.size());
  return true;
}

std::string take(Aside& aside, std::size_t most, bool peeks = false) {
  std::string bytes(most, '?');
  bytes.resize(aside.take(bytes.data(), most, peeks));
  return bytes;
}

TEST(Aside, GivesBytesInTheirOrder) {
  Aside aside;
  ASSERT_TRUE(put(aside, "abcdef"));
  EXPECT_EQ(take(aside, 2), "ab");
  ASSERT_TRUE(put(aside, "ghi"));
  EXPECT_EQ(aside.size(), 7u);
  EXPECT_EQ(take(aside, 3, true), "cde");
  EXPECT_EQ(take(aside, 4), "cdef");
  EXPECT_EQ(take(aside, 10), "ghi");
  EXPECT_EQ(aside.size(), 0u);
  ASSERT_TRUE(put(aside, "j"));
  EXPECT_EQ(take(aside, 10), "j");
}

TEST(Aside, HasNoRoomBeyondTheMost) {
  Aside aside;
  const std::string half(Aside::kMost / 2, 'x');
  EXPECT_TRUE(put(aside, half));
  EXPECT_TRUE(put(aside, half));
  EXPECT_FALSE(put(aside, "y"));
  EXPECT_EQ(take(aside, 1), "x");
  EXPECT_TRUE(put(aside, "y"));
}

}  // namespace
}  // namespace ib::host_abi::sockets
