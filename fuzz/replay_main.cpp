// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// main() of a fuzzer in a build without libFuzzer: replays the corpus folders and files of the
// command line, then runs a fixed set of seeded inputs, so that every build executes the fuzzers.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

namespace fs = std::filesystem;

constexpr unsigned kSeededInputs = 2000;
constexpr std::size_t kLongestInput = 512;

std::size_t replay_file(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  const std::vector<char> text{std::istreambuf_iterator<char>(in), {}};
  const std::vector<std::uint8_t> bytes(text.begin(), text.end());  // exact size: overruns show
  LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
  return 1;
}

std::size_t replay(const fs::path& path) {
  if (!fs::is_directory(path)) return fs::exists(path) ? replay_file(path) : 0;
  std::size_t count = 0;
  for (const auto& entry : fs::recursive_directory_iterator(path)) {
    if (entry.is_regular_file()) count += replay_file(entry.path());
  }
  return count;
}

void feed_seeded_inputs() {
  LLVMFuzzerTestOneInput(nullptr, 0);
  std::mt19937 random(1);  // NOLINT(bugprone-random-generator-seed): the same inputs in every run
  for (unsigned i = 0; i < kSeededInputs; ++i) {
    std::vector<std::uint8_t> bytes(random() % kLongestInput);
    for (auto& byte : bytes) byte = static_cast<std::uint8_t>(random());
    LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
  }
}

}  // namespace

int main(int argc, char** argv) {
  std::size_t replayed = 0;
  for (int i = 1; i < argc; ++i) replayed += replay(argv[i]);
  feed_seeded_inputs();
  std::printf("%zu corpus files and %u seeded inputs: ok\n", replayed, kSeededInputs);
  return 0;
}
