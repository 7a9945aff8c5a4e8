// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Against the libibverbs that is installed here.
#include "host_abi/provider/abi/abi_check.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <memory>
#include <utility>

namespace ib::host_abi {
namespace {

VerbsPrivate g_library{};

TEST(AbiCheck, TheInstalledLibraryHasTheLayoutWeDeclare) {
  ASSERT_NE(ibv_get_device_name, nullptr);  // loads the library
  std::string reason;
  EXPECT_TRUE(load_verbs_private(g_library, reason)) << reason;
}

// A library that has two operations in another order must be noticed.
void set_ops_swapped(verbs_context* context, const VerbsContextOps* ops) {
  const auto table = std::make_unique<VerbsContextOps>(*ops);
  void* place = table.get();
  auto* words = static_cast<void**>(place);
  std::swap(words[offsetof(VerbsContextOps, post_recv) / sizeof(void*)],
            words[offsetof(VerbsContextOps, post_send) / sizeof(void*)]);
  g_library.set_ops(context, table.get());
}
TEST(AbiCheck, AnotherOrderOfOperationsIsNoticed) {
  std::string reason;
  ASSERT_TRUE(load_verbs_private(g_library, reason)) << reason;
  EXPECT_FALSE(set_ops_matches_layout(set_ops_swapped));
}

// So must a library that has one operation less in the middle.
void set_ops_shorter(verbs_context* context, const VerbsContextOps* ops) {
  std::array<void*, kVerbsOpCount> table{};
  const void* from = ops;
  const auto* words = static_cast<void* const*>(from);
  std::copy_n(words + 1, kVerbsOpCount - 1, table.begin());
  const void* shifted = table.data();
  g_library.set_ops(context, static_cast<const VerbsContextOps*>(shifted));
}
TEST(AbiCheck, AMissingOperationIsNoticed) {
  std::string reason;
  ASSERT_TRUE(load_verbs_private(g_library, reason)) << reason;
  EXPECT_FALSE(set_ops_matches_layout(set_ops_shorter));
}

TEST(AbiCheck, MarkerOfExtendedQueuePairsIsWhereTheLibraryLooks) {
  VerbsQp qp{};
  EXPECT_EQ(ibv_qp_to_qp_ex(&qp.qp), nullptr);
  qp.comp_mask = kVerbsQpEx;
  EXPECT_EQ(ibv_qp_to_qp_ex(&qp.qp), &qp.qp_ex);
}

TEST(AbiCheck, ReregistrationOfOtherThanPlainRegionsIsRefusedByTheLibrary) {
  VerbsMr mr{};
  mr.type = VerbsMrType::DmaBuf;
  EXPECT_EQ(ibv_rereg_mr(&mr.mr, IBV_REREG_MR_CHANGE_ACCESS, nullptr, nullptr, 0, 0),
            IBV_REREG_MR_ERR_INPUT);
}

}  // namespace
}  // namespace ib::host_abi
