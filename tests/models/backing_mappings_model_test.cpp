// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The mapped pages of peers: threads that find those of a new file where an old one was.
#include "tests/models/device_memory.h"

// One source has it, and the model links no library.
#include "hca/memory/backing_mappings.cpp"  // NOLINT(bugprone-suspicious-include)

namespace ib::models {
namespace {

constexpr std::uint64_t kPage = 4096;

struct Pages {
  Pages() {
    host.map = [this](std::uint32_t, std::uint32_t generation, std::uint64_t& size) {
      size = kPage;
      return at(generation);
    };
  }
  std::byte* at(std::uint32_t generation) { return &files[generation * kPage]; }

  std::array<std::byte, 3 * kPage> files{};
  ModelHost host;
  hca::BackingMappings mappings{host};
  hca::KeyEntry region;
};

// The region is in the second file; the mapping of the first one is still remembered.
TEST(BackingMappingsModel, NobodyFindsTheOldFileForTheNew) {
  expect_holds([](Scene& scene) {
    auto pages = std::make_shared<Pages>();
    pages->region.adopted.length = kPage;
    pages->region.adopted.backing = 0;
    pages->region.adopted.backing_generation = 1;
    EXPECT_EQ(pages->mappings.map(pages->region, 0, 8), pages->at(1));
    pages->region.adopted.backing_generation = 2;
    scene.thread([pages] {
      require(pages->mappings.map(pages->region, 0, 8) == pages->at(2), "the old file is found");
    });
    scene.thread([pages] {
      std::byte* const found = pages->mappings.find(pages->region, 0, 8);
      require(found == nullptr || found == pages->at(2), "the old file is found");
    });
  });
}

}  // namespace
}  // namespace ib::models
