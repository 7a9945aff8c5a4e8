// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "host_abi/preload/umad/umad_mirror.h"

#include <gtest/gtest.h>

#include <memory>

namespace ib::host_abi::preload {
namespace {

class UmadMirrorTest : public ::testing::Test {
 protected:
  std::unique_ptr<UmadMirror> mirror = std::make_unique<UmadMirror>();
};

TEST_F(UmadMirrorTest, KnowsOnlyWhatItWasTold) {
  EXPECT_EQ(mirror->header_size(0), 0u);
  EXPECT_FALSE(mirror->has_agent(0, 0));
  mirror->note(5, 64, 0b1001);
  EXPECT_EQ(mirror->header_size(5), 64u);
  EXPECT_TRUE(mirror->has_agent(5, 0));
  EXPECT_FALSE(mirror->has_agent(5, 1));
  EXPECT_TRUE(mirror->has_agent(5, 3));
  EXPECT_FALSE(mirror->has_agent(5, 32));
  EXPECT_FALSE(mirror->has_agent(5, 64 + 3));
  mirror->note(6, 56, ~0u);
  EXPECT_EQ(mirror->header_size(6), 56u);
  EXPECT_TRUE(mirror->has_agent(6, 31));
}

TEST_F(UmadMirrorTest, AFileThatTakesThePlaceOfAnotherIsNotTakenForIt) {
  mirror->note(5, 64, 1);
  mirror->note(5 + 64, 56, 2);
  EXPECT_EQ(mirror->header_size(5), 0u);
  EXPECT_FALSE(mirror->has_agent(5, 1));
  EXPECT_TRUE(mirror->has_agent(5 + 64, 1));
}

TEST_F(UmadMirrorTest, AnAgentIsForgotten) {
  mirror->note(5, 64, 0b11);
  mirror->forget_agent(5, 1);
  EXPECT_FALSE(mirror->has_agent(5, 1));
  EXPECT_TRUE(mirror->has_agent(5, 0));
  mirror->forget_agent(9, 0);
  EXPECT_TRUE(mirror->has_agent(5, 0));
}

TEST_F(UmadMirrorTest, AnIdThatMayBeWaitingIsReported) {
  EXPECT_TRUE(mirror->may_send(5, 77, false)) << "nothing waits";
  EXPECT_TRUE(mirror->may_send(5, 77, true));
  EXPECT_FALSE(mirror->may_send(5, 77, true));
  EXPECT_FALSE(mirror->may_send(5, 77, false));
  EXPECT_TRUE(mirror->may_send(6, 77, true)) << "of another file";
  mirror->received(5, 77);
  EXPECT_TRUE(mirror->may_send(5, 77, true));
  for (std::uint32_t tid = 1000; tid < 1100; ++tid) EXPECT_TRUE(mirror->may_send(5, tid, true));
}

}  // namespace
}  // namespace ib::host_abi::preload
