// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "verbs/private_abi.h"

#include <gtest/gtest.h>

namespace ib::verbs {
namespace {

TEST(PrivateAbi, TheReleaseIsInTheNameOfTheFile) {
  EXPECT_EQ(rdma_core_release("/usr/lib/x86_64-linux-gnu/libibverbs.so.1.14.44.0"), "44.0");
  EXPECT_EQ(rdma_core_release("libibverbs.so.1.18.65.0"), "65.0");
  EXPECT_EQ(rdma_core_release("/usr/lib/libibverbs.so.1"), "");
  EXPECT_EQ(rdma_core_release("libibverbs.so.1.14"), "");
  EXPECT_EQ(rdma_core_release(""), "");
}

TEST(PrivateAbi, AnUnknownNumberIsFoundToo) {
  EXPECT_EQ(find_private_abi([](int abi) { return abi == 57; }), 57);
  EXPECT_EQ(find_private_abi([](int abi) { return abi == 66; }), 66);
  EXPECT_EQ(find_private_abi([](int) { return false; }), 0);
  EXPECT_TRUE(is_known_private_abi(65));
  EXPECT_FALSE(is_known_private_abi(66));
}

}  // namespace
}  // namespace ib::verbs
