// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "verbs/link_layer.h"

#include <gtest/gtest.h>

namespace ib::verbs {
namespace {

TEST(LinkLayer, IsFoundByItsNameAlone) {
  EXPECT_EQ(link_layer_of("infiniband"), LinkLayer::InfiniBand);
  EXPECT_EQ(link_layer_of("ethernet"), LinkLayer::Ethernet);
  for (const char* other : {"", "Ethernet", "ether", "unspecified"}) {
    EXPECT_EQ(link_layer_of(other), LinkLayer::Unspecified) << other;
  }
}

}  // namespace
}  // namespace ib::verbs
