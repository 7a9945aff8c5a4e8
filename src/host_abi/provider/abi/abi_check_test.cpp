// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Against the libibverbs that is installed here; tests/system/rdma_core/private_abi_test.py has
// stand-ins.
#include "host_abi/provider/abi/abi_check.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>

namespace ib::host_abi {
namespace {

VerbsPrivate g_library{};

class AbiCheck : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_NE(ibv_get_device_name, nullptr);  // loads the library
    std::string reason;
    ASSERT_TRUE(load_verbs_private(g_library, reason)) << reason;
  }
};

TEST_F(AbiCheck, TheInstalledLibraryHasALayoutThatWeKnow) {
  EXPECT_EQ(find_ops_table(g_library.set_ops), g_library.ops_table);
  EXPECT_GE(g_library.qp_ex_functions, kQpExLeast);
}

// A library that has two operations in another order must be noticed.
void set_ops_swapped(verbs_context* context, const void* ops) {
  std::array<void*, 2 * kVerbsOpCount> table{};
  std::copy_n(static_cast<void* const*>(ops), table.size() / 2, table.begin());
  std::swap(table[place_in_table(offsetof(VerbsContextOps, post_recv) / sizeof(void*), 0)],
            table[place_in_table(offsetof(VerbsContextOps, post_send) / sizeof(void*), 0)]);
  g_library.set_ops(context, table.data());
}
TEST_F(AbiCheck, AnotherOrderOfOperationsIsNoticed) {
  EXPECT_EQ(find_ops_table(set_ops_swapped), std::nullopt);
}

// And one that has them in another order itself: it calls the wrong one.
void set_ops_that_lands_elsewhere(verbs_context* context, const void* ops) {
  g_library.set_ops(context, ops);
  void* const place = reinterpret_cast<std::byte*>(context) + g_library.context_head();
  ibv_context_ops& landed = static_cast<ibv_context*>(place)->ops;
  std::swap(landed._compat_create_qp, landed._compat_create_cq);
}
TEST_F(AbiCheck, AnotherPlaceOfOperationsIsNoticed) {
  EXPECT_EQ(find_ops_table(set_ops_that_lands_elsewhere), std::nullopt);
}

// So must a library that has one operation less in the middle.
void set_ops_shorter(verbs_context* context, const void* ops) {
  std::array<void*, 2 * kVerbsOpCount> table{};
  std::copy_n(static_cast<void* const*>(ops) + 1, kVerbsOpCount, table.begin());
  g_library.set_ops(context, table.data());
}
TEST_F(AbiCheck, AMissingOperationIsNoticed) {
  EXPECT_EQ(find_ops_table(set_ops_shorter), std::nullopt);
}

// A library of another version, as far as ibv_qp_to_qp_ex goes.
template <std::size_t functions>
ibv_qp_ex* qp_to_qp_ex_of(ibv_qp* qp) {
  std::uint32_t comp_mask = 0;
  std::memcpy(&comp_mask,
              reinterpret_cast<std::byte*>(qp) + sizeof(QpExHead) + functions * sizeof(void*),
              sizeof comp_mask);
  return (comp_mask & kVerbsQpEx) != 0 ? reinterpret_cast<ibv_qp_ex*>(qp) : nullptr;
}
TEST_F(AbiCheck, TheNumberOfFunctionsOfAnExtendedQueuePairIsFound) {
  EXPECT_EQ(find_qp_ex_functions(qp_to_qp_ex_of<20>), 20u);
  EXPECT_EQ(find_qp_ex_functions(qp_to_qp_ex_of<21>), 21u);
  EXPECT_EQ(find_qp_ex_functions(qp_to_qp_ex_of<22>), 22u);
  EXPECT_EQ(find_qp_ex_functions(qp_to_qp_ex_of<23>), 23u);
  EXPECT_EQ(find_qp_ex_functions([](ibv_qp*) -> ibv_qp_ex* { return nullptr; }), std::nullopt);
  EXPECT_EQ(find_qp_ex_functions([](ibv_qp* qp) { return reinterpret_cast<ibv_qp_ex*>(qp); }),
            std::nullopt);
}

TEST_F(AbiCheck, MarkerOfExtendedQueuePairsIsWhereTheLibraryLooks) {
  VerbsQp qp{};
  EXPECT_EQ(ibv_qp_to_qp_ex(&qp.qp), nullptr);
  mark_extended(qp, g_library.qp_ex_functions);
  const void* const place = &qp;
  EXPECT_EQ(static_cast<const void*>(ibv_qp_to_qp_ex(&qp.qp)), place);
}

// advise_mr, the first, and unimport_pd, the last, are in all tables.
TEST_F(AbiCheck, ATableHasTheOperationsOfItsVersionOnly) {
  VerbsContextOps ops{};
  ops.advise_mr = [](ibv_pd*, ibv_advise_mr_advice, std::uint32_t, ibv_sge*, std::uint32_t) {
    return 0;
  };
  ops.reg_mr_ex = [](ibv_pd*, VerbsMrInitAttr*) -> ibv_mr* { return nullptr; };
  ops.unimport_pd = [](ibv_pd*) {};
  for (std::size_t table = 0; table < kOpsTables.size(); ++table) {
    const PackedOps packed = pack(ops, table);
    EXPECT_NE(packed.front(), nullptr);
    EXPECT_NE(packed[kOpsTables[table].ops - 1], nullptr);
    const auto given =
        std::count_if(packed.begin(), packed.end(), [](const void* op) { return op != nullptr; });
    EXPECT_EQ(given, table == 0 ? 2 : 3) << table;
  }
}

TEST_F(AbiCheck, ReregistrationOfOtherThanPlainRegionsIsRefusedByTheLibrary) {
  VerbsMr mr{};
  mr.type = VerbsMrType::DmaBuf;
  EXPECT_EQ(ibv_rereg_mr(&mr.mr, IBV_REREG_MR_CHANGE_ACCESS, nullptr, nullptr, 0, 0),
            IBV_REREG_MR_ERR_INPUT);
}

}  // namespace
}  // namespace ib::host_abi
