// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "softib/pages/explanation.h"

#include <gtest/gtest.h>

#include <set>

namespace ib::softib {
namespace {

TEST(Explanation, EveryStatusAndCauseHasItsOwnName) {
  std::set<std::string> names;
  for (std::uint32_t i = 0; i < verbs::kWcStatusCount; ++i) {
    const Explanation it = explain(static_cast<verbs::WcStatus>(i));
    ASSERT_NE(it.name, nullptr) << i;
    EXPECT_NE(it.meaning, nullptr);
    EXPECT_NE(it.advice, nullptr);
    EXPECT_NE(verbs::wc_status_name(static_cast<verbs::WcStatus>(i)), nullptr);
    EXPECT_TRUE(names.insert(it.name).second) << it.name;
  }
  for (std::uint32_t i = 0; i < verbs::kCauseCount; ++i) {
    const Explanation it = explain(static_cast<verbs::control::Cause>(i));
    ASSERT_NE(it.name, nullptr) << i;
    EXPECT_NE(it.advice, nullptr);
    EXPECT_TRUE(names.insert(it.name).second) << it.name;
  }
}

TEST(Explanation, EveryRefusalHasItsOwnCard) {
  std::set<std::string> names;
  for (std::uint32_t i = 0; i < verbs::control::kPostRefusalCount; ++i) {
    const Explanation it =
        explain(static_cast<verbs::control::PostRefusal>(verbs::control::kFirstPostRefusal + i));
    ASSERT_NE(it.name, nullptr) << i;
    EXPECT_TRUE(names.insert(it.name).second) << it.name;
    EXPECT_NE(explain_word(it.name).find(std::string("refused: ") + it.name), std::string::npos);
  }
  EXPECT_EQ(refusals_of("").size(), names.size());
}

TEST(Explanation, ACallHasTheCardsOfAllThatItRefuses) {
  const std::string cards = explain_word("ibv_post_srq_recv");
  EXPECT_NE(cards.find("SrqSges"), std::string::npos);
  EXPECT_NE(cards.find("SrqQueueFull"), std::string::npos);
  EXPECT_EQ(cards.find("RecvState"), std::string::npos);
}

TEST(Explanation, TheCountsAreThoseOfTheEnums) {
  EXPECT_EQ(explain(static_cast<verbs::WcStatus>(verbs::kWcStatusCount)).name, nullptr);
  EXPECT_EQ(explain(static_cast<verbs::control::Cause>(verbs::kCauseCount)).name, nullptr);
}

TEST(Explanation, AStatusIsFoundInAnySpelling) {
  const std::string card = explain_word("12");
  EXPECT_NE(card.find("IBV_WC_RETRY_EXC_ERR"), std::string::npos);
  for (const char* word : {"IBV_WC_RETRY_EXC_ERR", "ibv_wc_retry_exc_err", "RetryExcErr",
                           "retry exc err", "0xc", "status 12", "WcStatus::RetryExcErr"}) {
    EXPECT_EQ(explain_word(word), card) << word;
  }
}

TEST(Explanation, ACauseIsFoundByNameAndByVendorErr) {
  const std::string card = explain_word("NoReceive");
  EXPECT_NE(card.find("no receive posted"), std::string::npos);
  EXPECT_EQ(explain_word("vendor_err 14"), card);
  EXPECT_EQ(explain_word("vendor_err: 0xe"), card);
  EXPECT_EQ(explain_word("cause 14"), card);
  EXPECT_EQ(explain_word("no_receive"), card);
}

TEST(Explanation, WhatIsUnknownGivesNothing) {
  for (const char* word :
       {"", "22", "4711", "-1", "vendor_err", "cause 99", "bogus", "IBV_WC_", "0x"}) {
    EXPECT_EQ(explain_word(word), "") << word;
  }
}

}  // namespace
}  // namespace ib::softib
