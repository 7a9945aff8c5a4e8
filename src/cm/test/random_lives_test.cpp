// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The promises of random_lives_test.h for many seeds. A failing seed is printed with the command
// that repeats it. More seeds: SOFTIB_SEEDS=1000000; others: SOFTIB_FIRST_SEED.
#include "cm/test/random_lives_test.h"

#include "base/sanitizer.h"

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>

namespace ib::cm::test {
namespace {

std::array<char, 512> command;

void name_command(unsigned seed) {
  static const std::string program = std::filesystem::read_symlink("/proc/self/exe");
  std::snprintf(command.data(), command.size(),
                "repeat with: SOFTIB_FIRST_SEED=%u SOFTIB_SEEDS=1 %s "
                "--gtest_filter='RandomLivesProperty.*'\n",
                seed, program.c_str());
}

// An assertion ends the program before a trace is printed.
void print_command(int signal) {
  std::fputs(command.data(), stderr);
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

unsigned number_from(const char* variable, unsigned otherwise) {
  const char* text = std::getenv(variable);
  return text != nullptr ? static_cast<unsigned>(std::strtoul(text, nullptr, 10)) : otherwise;
}

TEST(RandomLivesProperty, TwoEndsAgreeOrBothHaveBeenTold) {
  constexpr unsigned kSeeds = IB_ADDRESS_SANITIZER != 0 ? 1500 : 100000;
  const unsigned first = number_from("SOFTIB_FIRST_SEED", 1);
  const unsigned seeds = number_from("SOFTIB_SEEDS", kSeeds);
  std::signal(SIGABRT, &print_command);
  for (unsigned seed = first; seed - first < seeds && !HasFailure(); ++seed) {
    name_command(seed);
    SCOPED_TRACE(command.data());
    RandomLives(seed, 2 + seed % 2).run();
  }
  std::signal(SIGABRT, SIG_DFL);
  if (seeds < 1000) return;
  // How often 1,000 seeds get there at least; it is about three times as often.
  const LifeCounts& counts = life_counts;
  const struct {
    const char* what;
    unsigned count, floor;
  } floors[] = {
      {"pairs", counts.pairs, 1000},        {"crossed", counts.crossed, 10},
      {"peers", counts.peers, 150},         {"paths", counts.paths, 100},
      {"delays", counts.delays, 60},        {"by_data", counts.by_data, 30},
      {"refused", counts.refused, 800},     {"timed_out", counts.timed_out, 500},
      {"datagrams", counts.datagrams, 500},
  };
  for (const auto& [what, count, floor] : floors) {
    EXPECT_GE(count, seeds / 1000 * floor) << what << ": the seeds do not get there";
    RecordProperty(what, static_cast<int>(count));
  }
  EXPECT_LT(counts.alone, counts.pairs / 5);
  RecordProperty("established_alone", static_cast<int>(counts.alone));
}

}  // namespace
}  // namespace ib::cm::test
