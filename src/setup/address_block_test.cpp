// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "setup/address_block.h"

#include "fabric/model.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace ib::softib {
namespace {

using fabric::AddressBlock;

// The fabrics of a machine, and the units that each has.
struct Machine {
  std::set<std::uint32_t> taken;
  bool claim(std::uint32_t first, std::uint32_t count) {
    for (std::uint32_t unit = first; unit < first + count; ++unit) {
      if (taken.contains(unit)) return false;
    }
    for (std::uint32_t unit = first; unit < first + count; ++unit) taken.insert(unit);
    return true;
  }
  std::optional<AddressBlock> start(std::uint32_t uid, const std::string& name, std::size_t nodes) {
    return choose_block(uid, name, nodes, [this](std::uint32_t first, std::uint32_t count) {
      return claim(first, count);
    });
  }
};

bool same(const AddressBlock& a, const AddressBlock& b) {
  return a.first == b.first && a.stride == b.stride;
}

TEST(AddressBlock, FollowsFromUserAndName) {
  const auto block = Machine().start(1000, "default", 2);
  ASSERT_TRUE(block);
  EXPECT_TRUE(same(*block, *Machine().start(1000, "default", 254)));
  EXPECT_FALSE(same(*block, *Machine().start(1001, "default", 2)));
  EXPECT_FALSE(same(*block, *Machine().start(1000, "lab", 2)));
}

TEST(AddressBlock, IsOfOneFabricOnly) {
  Machine machine;
  std::set<std::uint32_t> firsts;
  for (int i = 0; i < 500; ++i) {
    const auto block = machine.start(1000, "default", 2);
    ASSERT_TRUE(block);
    EXPECT_TRUE(firsts.insert(block->first).second) << i;
  }
  const auto large = machine.start(1000, "large", fabric::kMaxNodes);
  ASSERT_TRUE(large) << "there is room for one beside many small ones";
}

TEST(AddressBlock, HasAnAddressForEachPortOfEachNodeAndNoneOfLocalhost) {
  for (const std::size_t nodes : {1u, 254u, 255u, 1000u, 32767u, 32768u}) {
    Machine machine;
    for (std::uint32_t i = 0; i < kUnits; ++i) {
      const auto block = machine.start(0, "default", nodes);
      if (!block) break;
      const std::uint32_t end = block->first + 32 * block->stride;
      EXPECT_GE(block->stride, nodes + 2);
      const auto found = block_of(block->first + static_cast<std::uint32_t>(nodes), nodes);
      EXPECT_EQ(found.first, block->first) << "of the last node";
      EXPECT_EQ(found.stride, block->stride);
      EXPECT_EQ(block->first % block->stride, 0u);
      EXPECT_TRUE(machine.taken.contains((end - 1 - (127u << 24)) >> kUnitBits));
      EXPECT_GT(block->first, 0x7f00ffffu) << "localhost's";
      EXPECT_LT(end - 1, 0x7fffffffu);
      EXPECT_TRUE(end <= 0x7f4d0000 || block->first >= 0x7f4e0000) << "of configuration files";
    }
    EXPECT_FALSE(machine.taken.empty());
  }
}

TEST(AddressBlock, IsAbsentWhenAllHaveOwners) {
  EXPECT_FALSE(choose_block(0, "x", 1, [](std::uint32_t, std::uint32_t) { return false; }));
}

}  // namespace
}  // namespace ib::softib
