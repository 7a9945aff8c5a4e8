// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "softib/launch/rank.h"

#include "setup/cli_error.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <string_view>

namespace ib::softib {
namespace {

struct Launcher {
  std::string_view rank;
  std::string_view size;
};

// A launcher may run under another one (mpirun within srun), so the innermost kind is the first.
constexpr std::array kLaunchers = {
    Launcher{.rank = "OMPI_COMM_WORLD_RANK", .size = "OMPI_COMM_WORLD_SIZE"},  // OpenMPI
    Launcher{.rank = "PMI_RANK", .size = "PMI_SIZE"},                          // MPICH (hydra)
    Launcher{.rank = "SLURM_PROCID", .size = "SLURM_NTASKS"},                  // srun
};

std::optional<std::size_t> number(const Environment& environment, std::string_view name) {
  for (const auto& [key, text] : environment) {
    if (key != name) continue;
    std::size_t value = 0;
    const char* last = text.data() + text.size();
    const auto [end, error] = std::from_chars(text.data(), last, value);
    if (error != std::errc{} || end != last) return std::nullopt;
    return value;
  }
  return std::nullopt;
}

}  // namespace

std::optional<Rank> rank_of(const Environment& environment) {
  for (const Launcher& launcher : kLaunchers) {
    const auto rank = number(environment, launcher.rank);
    const auto size = number(environment, launcher.size);
    if (rank && size && *rank < *size) return Rank{*rank, *size};
  }
  return std::nullopt;
}

std::size_t node_index(const Rank& rank, std::size_t nodes) {
  const std::size_t used = std::min(nodes, rank.of);
  // rank.number * used / rank.of, without the product, which might overflow.
  const std::size_t block = rank.of / used;
  const std::size_t longer = rank.of % used;  // so many nodes have one rank more
  const std::size_t in_longer = longer * (block + 1);
  if (rank.number < in_longer) return rank.number / (block + 1);
  return longer + (rank.number - in_longer) / block;
}

std::size_t node_of_rank(std::size_t nodes, const Environment& environment) {
  const std::optional<Rank> rank = rank_of(environment);
  if (!rank) {
    throw CliError(Exit::Usage,
                   "--node auto is for the ranks of an MPI program, which mpirun, mpiexec or srun "
                   "starts:\n  mpirun -n 4 softib run --nodes 2 --node auto -- ./program");
  }
  return node_index(*rank, nodes);
}

}  // namespace ib::softib
