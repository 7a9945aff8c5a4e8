// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "host_abi/provider/send_batch.h"

#include <gtest/gtest.h>

#include <array>
#include <string>

namespace ib::host_abi {
namespace {

using verbs::WrOpcode;

// A request as the engine sees it, copied during the call.
struct Seen {
  WrOpcode opcode;
  std::uint64_t wr_id;
  std::uint32_t flags;
  std::string bytes;
  std::size_t sges;
};

struct SendBatchTest : testing::Test {
  SendBatch batch{{.max_wr = 4, .max_sge = 2, .max_inline = 8}};
  std::vector<Seen> seen;

  Status post() {
    return batch.post([this](const hca::SendWqe& request, user::MemoryWindow*) {
      std::string bytes;
      for (const user::Sge& sge : std::span(request.sge, request.num_sge)) {
        bytes.append(reinterpret_cast<const char*>(sge.address), sge.length);
      }
      seen.push_back({request.opcode, request.wr_id, request.flags, bytes, request.num_sge});
      return request.wr_id == 99 ? Status::InvalidState : Status::Ok;
    });
  }
  static user::Sge sge(const char* text) {
    return {.address = reinterpret_cast<std::uint64_t>(text),
            .length = static_cast<std::uint32_t>(std::strlen(text)),
            .lkey = 5};
  }
};

TEST_F(SendBatchTest, RequestsArePostedInOrderWithTheirOwnLists) {
  batch.start();
  batch.begin(WrOpcode::Send, 1, verbs::send_flag::kSignaled);
  batch.set_sge(sge("one"));
  batch.begin(WrOpcode::RdmaWrite, 2, 0);
  const std::array list{sge("two"), sge("2")};
  batch.set_sges(list);
  batch.begin(WrOpcode::RdmaRead, 3, 0);  // of no bytes
  EXPECT_EQ(batch.error(), 0);
  ASSERT_EQ(post(), Status::Ok);
  ASSERT_EQ(seen.size(), 3u);
  EXPECT_EQ(seen[0].bytes, "one");
  EXPECT_EQ(seen[0].flags, verbs::send_flag::kSignaled);
  EXPECT_EQ(seen[1].bytes, "two2");
  EXPECT_EQ(seen[2].sges, 0u);
}

TEST_F(SendBatchTest, InlineBytesAreCopiedWhenTheyAreGiven) {
  batch.start();
  for (std::uint64_t i = 0; i < 4; ++i) {
    std::string text(8, static_cast<char>('a' + i));
    batch.begin(WrOpcode::Send, i, 0);
    batch.start_inline();
    batch.add_inline(text.data(), 3);
    batch.add_inline(text.data(), 5);
    text.assign(8, '!');
  }
  ASSERT_EQ(batch.error(), 0);
  ASSERT_EQ(post(), Status::Ok);
  EXPECT_EQ(seen[0].bytes, "aaaaaaaa");
  EXPECT_EQ(seen[3].bytes, "dddddddd");
  EXPECT_EQ(seen[3].flags, verbs::send_flag::kInline);
  EXPECT_EQ(seen[3].sges, 1u);
}

TEST_F(SendBatchTest, EmptyInlineDataIsAMessageWithoutBytes) {
  batch.start();
  batch.begin(WrOpcode::Send, 1, 0);
  batch.start_inline();
  batch.add_inline(nullptr, 0);
  ASSERT_EQ(batch.error(), 0);
  ASSERT_EQ(post(), Status::Ok);
  EXPECT_EQ(seen[0].sges, 0u);
}

TEST_F(SendBatchTest, TheLastListGivenToARequestCounts) {
  batch.start();
  batch.begin(WrOpcode::Send, 1, 0);
  batch.set_sge(sge("first"));
  batch.set_sge(sge("second"));
  ASSERT_EQ(post(), Status::Ok);
  EXPECT_EQ(seen[0].bytes, "second");
}

TEST_F(SendBatchTest, TooMuchInlineDataIsRefused) {
  batch.start();
  batch.begin(WrOpcode::Send, 1, 0);
  batch.start_inline();
  batch.add_inline("12345678", 8);
  EXPECT_EQ(batch.error(), 0);
  batch.add_inline("9", 1);
  EXPECT_EQ(batch.error(), EINVAL);
}

TEST_F(SendBatchTest, TooManyElementsAreRefused) {
  batch.start();
  batch.begin(WrOpcode::Send, 1, 0);
  const std::array list{sge("a"), sge("b"), sge("c")};
  batch.set_sges(list);
  EXPECT_EQ(batch.error(), EINVAL);
}

TEST_F(SendBatchTest, MoreRequestsThanTheQueueHoldsAreRefused) {
  batch.start();
  for (std::uint64_t i = 0; i < 5; ++i) batch.begin(WrOpcode::Send, i, 0).imm = 1;
  EXPECT_EQ(batch.error(), ENOMEM);
}

TEST_F(SendBatchTest, SettersWithoutARequestAreAnError) {
  batch.start();
  batch.set_sge(sge("x"));
  EXPECT_EQ(batch.error(), EINVAL);
  batch.start();
  batch.start_inline();
  batch.add_inline("x", 1);
  EXPECT_EQ(batch.error(), EINVAL);
}

TEST_F(SendBatchTest, TheFirstErrorIsKnownWithItsRequestAndItsValue) {
  batch.start();
  batch.begin(WrOpcode::Send, 1, 0);
  batch.begin(WrOpcode::RdmaWrite, 2, 0);
  const std::array list{sge("a"), sge("b"), sge("c")};
  batch.set_sges(list);
  batch.begin(WrOpcode::Send, 3, 0);
  batch.set_error(EINVAL, PostRefusal::SendOther);
  EXPECT_EQ(batch.refusal().cause, static_cast<verbs::control::Cause>(PostRefusal::SendSges));
  EXPECT_EQ(batch.refusal().opcode, WrOpcode::RdmaWrite);
  EXPECT_EQ(batch.refusal().wr_id, 2u);
  EXPECT_EQ(batch.refusal().length, 3u);
  EXPECT_EQ(batch.refusal().detail, 2u);
  batch.start();
  EXPECT_EQ(batch.refusal().cause, verbs::control::Cause::None);
}

TEST_F(SendBatchTest, InlineDataOfARequestThatTakesNoneIsRefusedForThat) {
  batch.start();
  batch.begin(WrOpcode::RdmaRead, 1, 0);
  batch.start_inline();
  batch.add_inline("x", 1);
  EXPECT_EQ(batch.error(), EINVAL);
  EXPECT_EQ(batch.refusal().cause, static_cast<verbs::control::Cause>(PostRefusal::SendNoInline));
}

TEST_F(SendBatchTest, StartForgetsWhatWasBefore) {
  batch.start();
  batch.begin(WrOpcode::Send, 1, 0);
  batch.set_error(EINVAL, PostRefusal::SendOther);
  batch.start();
  EXPECT_EQ(batch.error(), 0);
  EXPECT_EQ(batch.size(), 0u);
  EXPECT_EQ(post(), Status::Ok);
  EXPECT_TRUE(seen.empty());
}

TEST_F(SendBatchTest, PostingStopsAtTheFirstRefusal) {
  batch.start();
  batch.begin(WrOpcode::Send, 1, 0);
  batch.begin(WrOpcode::Send, 99, 0);
  batch.begin(WrOpcode::Send, 2, 0);
  EXPECT_EQ(post(), Status::InvalidState);
  EXPECT_EQ(seen.size(), 2u);
}

}  // namespace
}  // namespace ib::host_abi
