// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "softib/launch/rank.h"

#include "setup/cli_error.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>

namespace ib::softib {
namespace {

std::vector<std::size_t> places(std::size_t ranks, std::size_t nodes) {
  std::vector<std::size_t> result;
  for (std::size_t i = 0; i < ranks; ++i) result.push_back(node_index({i, ranks}, nodes));
  return result;
}

TEST(Rank, EachLauncherSaysWhichOneAProcessIs) {
  for (const auto& [rank, size] :
       {std::pair{"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
        std::pair{"PMI_RANK", "PMI_SIZE"}, std::pair{"SLURM_PROCID", "SLURM_NTASKS"}}) {
    const auto it = rank_of({{"HOME", "/"}, {rank, "3"}, {size, "8"}});
    ASSERT_TRUE(it.has_value()) << rank;
    EXPECT_EQ(it->number, 3u);
    EXPECT_EQ(it->of, 8u);
  }
}

TEST(Rank, MpirunWithinAJobOfSlurmDecides) {
  const auto it = rank_of({{"SLURM_PROCID", "0"},
                           {"SLURM_NTASKS", "1"},
                           {"OMPI_COMM_WORLD_RANK", "2"},
                           {"OMPI_COMM_WORLD_SIZE", "4"}});
  ASSERT_TRUE(it.has_value());
  EXPECT_EQ(it->number, 2u);
}

TEST(Rank, VariablesThatMakeNoSenseAreNone) {
  EXPECT_FALSE(rank_of({}).has_value());
  EXPECT_FALSE(rank_of({{"PMI_RANK", "1"}}).has_value());
  EXPECT_FALSE(rank_of({{"PMI_RANK", "4"}, {"PMI_SIZE", "4"}}).has_value());
  EXPECT_FALSE(rank_of({{"PMI_RANK", "-1"}, {"PMI_SIZE", "4"}}).has_value());
  EXPECT_FALSE(rank_of({{"PMI_RANK", ""}, {"PMI_SIZE", "4"}}).has_value());
  EXPECT_FALSE(rank_of({{"PMI_RANK", "1x"}, {"PMI_SIZE", "4"}}).has_value());
}

TEST(Rank, RanksFillNodesInBlocks) {
  EXPECT_EQ(places(4, 2), (std::vector<std::size_t>{0, 0, 1, 1}));
  EXPECT_EQ(places(5, 2), (std::vector<std::size_t>{0, 0, 0, 1, 1}));
  EXPECT_EQ(places(4, 1), (std::vector<std::size_t>{0, 0, 0, 0}));
  EXPECT_EQ(places(3, 3), (std::vector<std::size_t>{0, 1, 2}));
}

TEST(Rank, WithMoreNodesThanRanksTheFirstNodesAreUsed) {
  EXPECT_EQ(places(2, 32768), (std::vector<std::size_t>{0, 1}));
}

TEST(Rank, ForgedNumbersNameANodeThatExists) {
  constexpr std::size_t kMost = std::numeric_limits<std::size_t>::max();
  EXPECT_EQ(node_index({kMost - 1, kMost}, 2), 1u);
  EXPECT_EQ(node_index({kMost - 1, kMost}, 32768), 32767u);
  EXPECT_EQ(node_index({0, kMost}, 2), 0u);
}

TEST(Rank, HasANodeOrTheUserAnExample) {
  EXPECT_EQ(node_of_rank(2, {{"PMI_RANK", "1"}, {"PMI_SIZE", "2"}}), 1u);
  try {
    (void)node_of_rank(2, {});
    FAIL() << "a process without a rank has got a node";
  } catch (const CliError& error) {
    EXPECT_EQ(error.code(), Exit::Usage);
    EXPECT_NE(std::string(error.what()).find("mpirun -n 4 softib run"), std::string::npos);
  }
}

}  // namespace
}  // namespace ib::softib
