// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "linux/server/name_claims.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <memory>

namespace ib::os {
namespace {

TEST(NameClaims, AreOfOneOwnerUntilThatEnds) {
  const std::string own = "softib-test/" + std::to_string(::getpid());
  const std::vector<std::string> first{own + "/1", own + "/2"};
  const std::vector<std::string> both{own + "/3", own + "/2"};
  const std::vector<std::string> third{own + "/3"};
  std::string reason;
  auto owner = std::make_unique<NameClaims>();
  NameClaims other;
  ASSERT_EQ(owner->claim(first, reason), Status::Ok) << reason;
  EXPECT_EQ(other.claim(both, reason), Status::AlreadyExists);
  EXPECT_EQ(owner->claim(third, reason), Status::Ok) << "a claim that fails takes nothing";
  owner.reset();
  EXPECT_EQ(other.claim(both, reason), Status::Ok);
}

}  // namespace
}  // namespace ib::os
